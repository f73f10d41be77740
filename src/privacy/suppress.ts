import { hash } from "node:crypto";
import { fromLatin1 } from "../base/text.ts";
import { type ItemKind, normalizeItem } from "../config/items.ts";
import { textOf, unusable } from "../output/files/open-text.ts";

/** A field that identifies a person or a company. */
export type NamingField = "id" | ItemKind;

/** The fields by which the rows of a stream are suppressed. The key is first. */
export const SUPPRESSED_BY: ReadonlyMap<string, readonly [NamingField, ...NamingField[]]> = new Map([
  ["people", ["id", "email"]],
  ["companies", ["domain"]],
]);

/** The first line of a list may be the name of a column. */
const HEADER = /^(?:e-?mail|domain|id)s?$/;
const DIGEST = /^(?:sha256:)?[0-9a-f]{64}$/;
/** The digits of an MD5, SHA-1, SHA-256, SHA-384 or SHA-512 digest. */
const DIGITS = /^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$/i;
/** An e-mail or an id that is already in its normal form. */
const PLAIN_ENTRY = /^(?:[\w+][\w.+-]*@(?:[a-z0-9-]+\.)+[a-z]{2,}|[\w-]*[a-z0-9][\w-]*)$/;
/** A part of an id between bars. Labels of names with dots do not begin or end with a hyphen, as in host names. */
const LABEL = String.raw`[\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_-]*[\p{L}\p{M}\p{N}_])?`;
const ID_PART = new RegExp(String.raw`^(?:[\p{L}\p{M}\p{N}_-]+|${LABEL}(?:\.${LABEL})+)$`, "u");
const LOCAL_PART = /^[\p{L}\p{N}_+][\p{L}\p{M}\p{N}_.+'-]*@/u;
/** Two ways to split a text into addresses. Spaces and some signs may be in an address or between addresses. */
const SEPARATORS = [/[,;<>\r\n]/, /[\s,;:<>()|/&?[\]{}"\u060c\u3001\uff0c\uff1b]/];
/** Characters that do not change a name: spaces, control characters and characters without width. */
const UNSEEN = /[\s\p{Cc}\p{Cf}]/gu;
const MAX_LINES_NAMED = 5;
/** There are 2 to the power of 21 marks, or 20 for each of 100,000 names. The bits take 256 KiB and fit in a processor's cache. */
const MARK_BITS = 21;

/** The people, companies and items of `suppress_file`, as normal forms and digests. */
export class Suppression {
  /** The number of lines with an entry. */
  readonly entries: number;
  /** Warnings about entries that may mean two things. */
  readonly warnings: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #hasDigests: boolean;
  /** One bit for each mark. A value without a mark is not in `#names`. A look at the bits is faster than a look at the Set. */
  readonly #marks = new Uint8Array(1 << (MARK_BITS - 3));

  constructor(entries: readonly (readonly string[])[], warnings: readonly string[] = []) {
    this.entries = entries.length;
    this.warnings = warnings;
    this.#names = new Set(entries.flat());
    this.#hasDigests = [...this.#names].some((name) => name.startsWith("sha256:"));
    for (const name of this.#names) {
      const mark = markOf(`"${name}"`);
      this.#marks[mark >>> 3] = (this.#marks[mark >>> 3] ?? 0) | (1 << (mark & 7));
    }
  }

  /** One digest of all entries. */
  get digest(): string {
    return hash("sha256", [...this.#names].sort().join("\n"));
  }

  /** Whether a value, or any value in a list or object, is suppressed in any spelling. */
  has(field: NamingField, value: unknown): boolean {
    if (this.entries === 0 || value === null) return false;
    if (typeof value === "object") return Object.values(value).some((one) => this.has(field, one));
    if (typeof value !== "string" && typeof value !== "number") return false;
    const parts = field === "id" ? [String(value)] : SEPARATORS.flatMap((one) => String(value).split(one));
    return parts.some((part) => {
      const bare = bareOf(part);
      return this.#hasName(field === "id" ? idOf(bare) : (normalizeItem(field, lower(bare)) ?? lower(bare)));
    });
  }

  /** The fields that decide whether a row of a stream is suppressed; undefined: the stream has no such fields. */
  groupsOf(stream: string) {
    const fields = this.entries === 0 ? undefined : SUPPRESSED_BY.get(stream);
    if (fields === undefined) return undefined;
    const [key] = fields;
    return {
      fields,
      /** @param json the value of a field, as latin1 */
      hasJson: (field: NamingField, json: string): boolean => {
        const value: unknown = JSON.parse(fromLatin1(json));
        return this.has(field, typeof value === "number" ? json : value);
      },
      /** Faster than `hasJson`. For strings whose normal form differs only in case. */
      hasUsual: (keyJson: string, otherJson: string | undefined): boolean =>
        (key === "id" ? this.#hasUsual(keyJson, idOf) : this.has(key, keyJson.slice(1, -1))) ||
        (otherJson !== undefined && this.#hasUsual(otherJson, lower)),
    };
  }

  #hasUsual(json: string, nameOf: (text: string) => string): boolean {
    const mark = markOf(json);
    const isMarked = (((this.#marks[mark >>> 3] ?? 0) >>> (mark & 7)) & 1) === 1;
    return (isMarked || this.#hasDigests) && this.#hasName(nameOf(json.slice(1, -1)));
  }

  #hasName(name: string): boolean {
    // The shell's `echo TEXT | sha256sum` makes the digest of the text with a line break.
    const texts = this.#hasDigests ? [name, `${name}\n`] : [];
    return this.#names.has(name) || texts.some((text) => this.#names.has(`sha256:${hash("sha256", text)}`));
  }
}

/** The number of a text's mark. Upper and lower case of an ASCII letter give equal numbers. */
function markOf(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ (text.charCodeAt(at) | 32), 0x01000193);
  return sum >>> (32 - MARK_BITS);
}

const bareOf = (text: string): string => text.replace(UNSEEN, "").normalize("NFC");
/** Lower case for letters of all scripts. */
const lower = (text: string): string => text.toLowerCase();
/** The normal form of an id. Only the case of UUIDs has no meaning. */
const idOf = (text: string): string => (UUID.test(text) ? lower(text) : text);
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads a suppression list; null: an empty list. @throws ConfigError with the numbers of wrong lines, but not their text */
export function readSuppression(path: string | null): Suppression {
  if (path === null) return new Suppression([]);
  const name = `suppress_file "${path}"`;
  const text = textOf(name, path);
  if (text.trim() === "")
    throw unusable(name, "it is empty. If that is meant, write a comment into it, such as # none");
  const lines = text.split(/\r\n?|\n/).map((line) => line.trim().replace(/(?:^|\s+)#.*/, ""));
  const entries = lines.map((line) => (line === "" ? [] : namesOf(line)));
  const wrong = linesWith(entries, (names) => names === undefined);
  if (wrong !== "") {
    throw unusable(
      name,
      `${wrong} must be an e-mail, a domain, an id, or "sha256:" and 64 hexadecimal digits. Write one entry per line, ` +
        "without quotes, path or port. Write an id with other characters as its digest",
    );
  }
  const digits = linesWith(lines, (line) => DIGITS.test(bareOf(line)));
  const warning =
    `The ${name} has only hexadecimal digits in ${digits}: they are read as an id, and 64 digits as a digest too. ` +
    'Write "sha256:" before a digest. Digests of other kinds match no person';
  return new Suppression(
    entries.flatMap((names) => (names?.length ? [names] : [])),
    digits === "" ? [] : [warning],
  );
}

/** Returns "line 3", "lines 3, 5 and others", or "". */
function linesWith<One>(lines: readonly One[], isSuch: (line: One) => boolean): string {
  const found = lines.flatMap((line, nth) => (isSuch(line) ? [nth + 1] : []));
  if (found.length === 0) return "";
  return `line${found.length === 1 ? "" : "s"} ${found.slice(0, MAX_LINES_NAMED).join(", ")}${found.length > MAX_LINES_NAMED ? " and others" : ""}`;
}

/** Returns the normal forms of an entry; undefined for a wrong entry. A host name or a digest may also be an id. */
function namesOf(entry: string): readonly string[] | undefined {
  // An asterisk is allowed in an address, but here it is probably a pattern.
  if (/[\s*]/.test(entry)) return undefined;
  const id = idOf(bareOf(entry));
  const bare = lower(id);
  if (DIGEST.test(bare)) return bare.length === 64 ? [id, `sha256:${bare}`] : [bare];
  if (HEADER.test(bare)) return [];
  if (PLAIN_ENTRY.test(bare)) return bare.includes("@") ? [bare, id] : [id];
  if (bare.includes("@")) {
    const address = normalizeItem("email", bare);
    return address !== null && LOCAL_PART.test(address) ? [address, bare, id] : undefined;
  }
  const domain = normalizeItem("domain", bare);
  if (domain !== null) return [domain, bare, id];
  const isId = bare.split("|").every((part) => ID_PART.test(part) && normalizeItem("domain", part) === null);
  if (!isId || !/[\p{L}\p{N}]/u.test(bare)) return undefined;
  // A service may name a company by a text that is not a host name.
  return bare.includes(".") ? [id, bare] : [id];
}
