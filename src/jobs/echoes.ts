import { domainToUnicode } from "node:url";
import { isObject, type JsonObject } from "../base/json.ts";
import { type ItemKind, normalizeItem } from "../config/items.ts";

/**
 * A record without repeats of its item outside the field of its kind, which the config hashes or drops. Repeats are in texts
 * and names at any depth, in any case, with a Unicode domain in either form, and escaped as URLs and JSON escape.
 * @param hide returns what replaces the item
 */
export function withoutEchoes(
  record: JsonObject,
  kind: ItemKind,
  hide: (item: string) => string,
): JsonObject {
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
  const fields = Object.entries(record).map(([name, value]) =>
    name === kind ? [name, value] : [name, clean(value)],
  );
  return Object.fromEntries(fields);
}

/** Escapes may end in a letter or digit that is no part of a word. */
const BEFORE = String.raw`(?<=^|[^\p{L}\p{N}]|%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\[bfnrt])`;
const AFTER = String.raw`(?![\p{L}\p{N}])`;

function echoOf(kind: ItemKind, text: string): RegExp {
  const item = normalizeItem(kind, text) ?? text;
  const host = item.lastIndexOf("@") + 1;
  const spellings = [
    text,
    item,
    `${item.slice(0, host)}${domainToUnicode(item.slice(host)) || item.slice(host)}`,
  ];
  return new RegExp(`${BEFORE}(?:${[...new Set(spellings)].map(patternOf).join("|")})${AFTER}`, "giu");
}

const patternOf = (text: string): string =>
  Array.from(text, (character) => {
    const percent = Buffer.from(character).toString("hex").replace(/../g, "%$&");
    const code =
      character.length === 1 ? `|\\\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}` : "";
    return `(?:\\u{${(character.codePointAt(0) ?? 0).toString(16)}}|${percent}${code})`;
  }).join("");
