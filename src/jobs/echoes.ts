import { domainToUnicode } from "node:url";
import { isObject, type JsonObject } from "../base/json.ts";
import { type ItemKind, normalizeItem } from "../config/items.ts";
import type { Suppression } from "../privacy/suppress.ts";
import { type RowCheck, RowParser } from "../service/rows.ts";
import type { RawLine } from "../sync/event.ts";

/** Replaces repeats of an item in a record; null: repeats are sent unchanged. */
type Hide = ((item: string) => string) | null;

/** Returns a function that makes lines of records, without suppressed and hidden values. */
export function linesOf(
  check: RowCheck,
  kind: ItemKind,
  suppression: Suppression,
  hide: Hide,
): (records: readonly JsonObject[]) => { readonly lines: readonly RawLine[]; readonly suppressed: number } {
  const parser = new RowParser({ key: "", cursor: null, ...check });
  return (records) => {
    const { left, suppressed } = unsuppressed(records, suppression);
    const masked = hide === null ? left : left.map((record) => maskRepeats(record, kind, hide));
    return { lines: parser.toLines(masked), suppressed };
  };
}

/** Removes records of suppressed domains and e-mails, and suppressed contacts, also in lists of lists. */
function unsuppressed(records: readonly JsonObject[], suppression: Suppression) {
  let suppressed = 0;
  const isShown = (value: unknown): boolean => {
    const { domain, email } = isObject(value) ? value : { domain: value, email: value };
    const isSuppressed =
      !Array.isArray(value) && (suppression.has("domain", domain) || suppression.has("email", email));
    if (isSuppressed) suppressed += 1;
    return !isSuppressed;
  };
  const shown = (contacts: unknown): unknown =>
    Array.isArray(contacts) ? contacts.filter(isShown).map(shown) : contacts;
  const left = records
    .filter(isShown)
    .map((record) => ("contacts" in record ? { ...record, contacts: shown(record["contacts"]) } : record));
  return { left, suppressed };
}

/**
 * Replaces repeats of a record's item outside the field that the config hashes or drops. Texts and names of any depth are
 * searched. Upper and lower case, both forms of a Unicode domain, and the escapes of URLs and JSON count as repeats.
 */
function maskRepeats(record: JsonObject, kind: ItemKind, hide: NonNullable<Hide>): JsonObject {
  const { [kind]: item } = record;
  if (typeof item !== "string" || item === "") return record;
  const [instead, echo] = [hide(item), echoOf(kind, item)];
  const hidden = (text: string): string => text.replace(echo, () => instead);
  const clean = (value: unknown): unknown => {
    if (typeof value === "string") return hidden(value);
    if (Array.isArray(value)) return value.map(clean);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [hidden(name), clean(inner)]));
  };
  const fields = Object.entries(record).map(([name, value]) => [name, clean(value)]);
  return { ...Object.fromEntries(fields), [kind]: item };
}

/** An item begins after a sign or an escape. The last letter or digit of an escape is not a part of a word. */
const BEFORE = String.raw`(?<=^|[^\p{L}\p{N}]|%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\[bfnrt])`;
const AFTER = String.raw`(?![\p{L}\p{N}])`;

function echoOf(kind: ItemKind, text: string): RegExp {
  const item = normalizeItem(kind, text) ?? text;
  const at = item.lastIndexOf("@") + 1;
  const host = item.slice(at);
  const spellings = [text, item, item.slice(0, at) + (domainToUnicode(host) || host)];
  return new RegExp(`${BEFORE}(?:${[...new Set(spellings)].map(patternOf).join("|")})${AFTER}`, "giu");
}

const patternOf = (text: string): string =>
  Array.from(text, (character) => {
    const percent = Buffer.from(character).toString("hex").replace(/../g, "%$&");
    const code =
      character.length === 1 ? `|\\\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : "";
    return `(?:\\u{${(character.codePointAt(0) ?? 0).toString(16)}}|${percent}${code})`;
  }).join("");
