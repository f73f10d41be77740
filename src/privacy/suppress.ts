import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError } from "../base/errors.ts";
import { fromLatin1 } from "../base/text.ts";
import { type ItemKind, normalizeItem } from "../config/items.ts";
import { reasonOf } from "../output/files/reason.ts";

/** A field by which somebody is known, and how its values are compared. */
export type NamingField = "id" | ItemKind;

/** By which fields the rows of a stream are suppressed, the key first. */
export const SUPPRESSED_BY: ReadonlyMap<string, readonly NamingField[]> = new Map([
  ["people", ["id", "email"]],
  ["companies", ["domain"]],
]);

/** A character of an id or an e-mail that has no other spelling but in the other case. */
export const USUAL_CHARACTER = "[!#-&(-+./0-9:<-\\[\\]-_a-~-]";
const USUAL = new RegExp(`^"${USUAL_CHARACTER}+"$`);
const DOT = 46;
/** The filter looks at so many characters at each end of a value. */
const LOOKED_AT = 13;
/** A table of 2 to the power of so many bits tells of most values that they name nobody, and fits into a processor's cache. */
const FILTER_BITS = 21;
/** An entry whose normal form is its lower case: an e-mail, or an id that is no host name. */
const PLAIN_ENTRY = /^(?:[\w+-][\w.+-]*@(?:[a-z0-9-]+\.)+[a-z]{2,}|[\w-]+)$/i;
const LIST = /[,;\r\n]/;
/** What a value may hold without being another: spaces, control characters, and what has no width. */
const UNSEEN = /[\s\p{Cc}\p{Cf}]/gu;
const NO_ID = /[\s,;"<>@\ufffd]|\/\//;
const LINES_TOLD = 5;

/** Whom `suppress_file` names, in normal forms and digests of them. */
export class Suppression {
  /** How many lines name somebody. */
  readonly entries: number;
  readonly #names: ReadonlySet<string>;
  readonly #filter = new Uint8Array(1 << (FILTER_BITS - 3));
  readonly #hasDigests: boolean;

  constructor(entries: readonly (readonly string[])[]) {
    this.entries = entries.length;
    this.#names = new Set(entries.flat());
    this.#hasDigests = entries.some(([name]) => name?.startsWith("sha256:") === true);
    for (const name of this.#names) {
      const place = placeOf(`"${name}"`);
      this.#filter[place >>> 3] = (this.#filter[place >>> 3] ?? 0) | (1 << (place & 7));
    }
  }

  /** Of all that is named. */
  get digest(): string {
    return hash("sha256", [...this.#names].sort().join("\n"));
  }

  /** Whether a value names somebody who is suppressed, whichever way it is spelt. A text may be a list of domains or e-mails. */
  has(field: NamingField, value: unknown): boolean {
    if (this.entries === 0 || typeof value !== "string") return false;
    const parts = field === "id" ? [value] : value.split(LIST);
    return parts.some((part) => {
      const bare = bareOf(part);
      return this.#hasName((field === "id" ? null : normalizeItem(field, bare)) ?? bare);
    });
  }

  /** As `has`. @param json the value in a row: UTF-8 with one byte a character */
  hasJson(field: NamingField, json: string): boolean {
    if (field !== "domain" && USUAL.test(json)) return this.hasUsual(field, json);
    return this.#hasAny(field, json);
  }

  /** As `hasJson`, of an id or e-mail that is a string of usual characters. */
  hasUsual(field: "id" | "email", json: string): boolean {
    if (json.charCodeAt(json.length - 2) === DOT) return this.#hasAny(field, json);
    const place = placeOf(json);
    const isListed = ((this.#filter[place >>> 3] ?? 0) >>> (place & 7)) & 1;
    return (isListed === 1 || this.#hasDigests) && this.#hasName(json.slice(1, -1).toLowerCase());
  }

  #hasAny(field: NamingField, json: string): boolean {
    const value: unknown = JSON.parse(fromLatin1(json));
    const values = [typeof value === "number" ? json : value].flat(Number.POSITIVE_INFINITY);
    return values.some((one) => this.has(field, one));
  }

  #hasName(name: string): boolean {
    return this.#names.has(name) || (this.#hasDigests && this.#names.has(`sha256:${hash("sha256", name)}`));
  }
}

/** Where the filter has a JSON string: of ASCII in either case at the same place. */
function placeOf(json: string): number {
  const { length } = json;
  let hash = length;
  const first = Math.min(LOOKED_AT, length);
  for (let at = 0; at < first; at++) hash = Math.imul(hash ^ (json.charCodeAt(at) | 32), 0x01000193);
  for (let at = Math.max(first, length - LOOKED_AT); at < length; at++)
    hash = Math.imul(hash ^ (json.charCodeAt(at) | 32), 0x01000193);
  return hash >>> (32 - FILTER_BITS);
}

const bareOf = (text: string): string => text.replace(UNSEEN, "").normalize("NFC").toLowerCase();

/**
 * Reads the file: one entry a line, an e-mail, a domain, an id, or `sha256:` of one in its normal form. `#` begins a comment.
 * Throws ConfigError, which names lines and never quotes them.
 * @param path null: nobody is suppressed
 */
export function readSuppression(path: string | null): Suppression {
  if (path === null) return new Suppression([]);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new ConfigError(`Cannot read the suppress_file "${path}": ${reasonOf(cause)}`, { cause });
  }
  const lines = text.split(/\r\n?|\n/).map((line) => line.trim().replace(/(?:^|\s+)#.*/, ""));
  const entries = lines.map((line) => (line === "" ? [] : namesOf(line)));
  const wrong = entries.flatMap((names, nth) => (names === undefined ? [nth + 1] : []));
  if (wrong.length === 0) return new Suppression(entries.filter((names) => names?.length) as string[][]);
  const more = wrong.length > LINES_TOLD ? " and others" : "";
  throw new ConfigError(
    `Cannot use the suppress_file "${path}": line ${wrong.slice(0, LINES_TOLD).join(", ")}${more} is no e-mail, domain or id, ` +
      'nor "sha256:" and 64 hexadecimal digits of one. Write one a line',
  );
}

/** The normal forms of an entry; undefined for what is none. A host name is a domain, and an id that is spelt so. */
function namesOf(entry: string): readonly string[] | undefined {
  if (/^sha256:/i.test(entry))
    return /^sha256:[0-9a-f]{64}$/i.test(entry) ? [entry.toLowerCase()] : undefined;
  if (PLAIN_ENTRY.test(entry) && !entry.includes("xn--")) return [entry.toLowerCase()];
  const bare = bareOf(entry);
  const isEmail = bare.includes("@");
  if (bare === "" || /\s/.test(entry) || (!isEmail && NO_ID.test(bare))) return undefined;
  const item = normalizeItem(isEmail ? "email" : "domain", bare);
  if (isEmail) return item === null ? undefined : [item];
  return item === null ? [bare] : [item, bare];
}
