/**
 * What a line of an export is, told by nothing that the connector uses: what must leave, what must not, and as what.
 * Lines hold one byte a character.
 */
export type Judged =
  /** `key`: its JSON, "" for none. */
  { readonly kind: "row"; readonly key: string } | { readonly kind: "blank" | "junk" | "error" };

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** A row of an export may have ten more, which a page that wraps it may not. */
const MOST_LEVELS = 990;

/** @param keyName the field that is the key of the stream's rows */
export function judgeLine(line: string, keyName: string): Judged {
  if (/^[\t\v\f\r ]*$/.test(line)) return { kind: "blank" };
  const value = parsed(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { kind: "junk" };
  const { success, error } = value as Record<string, unknown>;
  const isEnvelope = typeof error === "object" && error !== null && !Array.isArray(error);
  if (success === false && (isEnvelope || (typeof error === "string" && !(keyName in value)))) {
    return { kind: "error" };
  }
  return { kind: "row", key: keyOf(line, (value as Record<string, unknown>)[keyName], keyName) };
}

/** Undefined for what is no UTF-8, no JSON, or nested too deep. */
function parsed(line: string): unknown {
  try {
    const text = decode(line);
    return text.length > MOST_LEVELS && isDeep(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** With U+FFFD for each half of a surrogate pair. */
const wellFormed = (text: string): string => Buffer.from(text, "utf8").toString("utf8");

const NOT_ASCII = /[^\p{ASCII}]/u;

/** Throws for what is no UTF-8. */
const decode = (line: string): string =>
  NOT_ASCII.test(line) ? UTF8.decode(Buffer.from(line, "latin1")) : line;

function isDeep(text: string): boolean {
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]]/gs)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    if (depth > MOST_LEVELS) return true;
  }
  return false;
}

/** Text and number are told apart, and no integer is rounded. What cannot tell rows apart is no key. */
function keyOf(line: string, value: unknown, name: string): string {
  if (typeof value === "string") return value === "" ? "" : JSON.stringify(wellFormed(value));
  if (typeof value !== "number") return "";
  if (Number.isSafeInteger(value)) return String(value);
  const spelt = [...line.matchAll(new RegExp(`"${name}"\\s*:\\s*(-?[0-9.eE+-]+)`, "g"))];
  // A value within the row may hold a field of the same name.
  return spelt.findLast(([, digits]) => Number(digits) === value)?.[1] ?? String(value);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/gs;

/**
 * The same text for lines that mean the same: without spaces, with escapes resolved, numbers as they are spelt, and
 * U+FFFD for the halves of surrogate pairs. `nul` stands for NULs.
 */
export function canonical(line: string, nul = "\0"): string {
  let text = "";
  for (const [token] of decode(line).matchAll(TOKEN))
    text += token.startsWith('"') ? resolved(token, nul) : token;
  return text;
}

function resolved(token: string, nul: string): string {
  const value = JSON.parse(token) as string;
  return JSON.stringify(wellFormed(value).replaceAll("\0", nul));
}
