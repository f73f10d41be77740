export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is an object, or else an empty one. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** The value if it is a list, or else an empty one. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The kind of a JSON value, in JSON's words. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The value at a path of names and places in lists. Undefined: there is none. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, part) => {
    if (Array.isArray(inner)) return inner[Number(part)];
    return isObject(inner) && Object.hasOwn(inner, part) ? inner[part] : undefined;
  }, value);
}

/** Whether lists and objects are nested more than `levels` deep. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner));
}

/**
 * A text from outside in quotes, for a message: at most 200 characters of it, with what breaks a line or moves the
 * cursor as escapes.
 */
export function quoted(text: string): string {
  const cut = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return JSON.stringify(cut).replace(UNPRINTABLE, toEscape);
}

const UNPRINTABLE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;

/** The same without quotes, for codes and names that a message puts where it likes. */
export const printable = (text: string): string => quoted(text).slice(1, -1);

/** A message of our own, in which lines may end, without what moves the cursor or turns the direction of a terminal. */
export const printableLines = (text: string): string => text.replace(UNSAFE_IN_LINES, toEscape);

const UNSAFE_IN_LINES = /[^\P{Cc}\t\n]|[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

const toEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Deeper values are refused: what reads them calls itself once a level, and the stack ends. */
const MAX_LEVELS = 1000;

/** The value of a JSON text from outside; undefined for what is no JSON, or is nested deeper than 1,000 levels. */
export function tryParseJson(text: string): unknown {
  try {
    return isDeep(text) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const QUOTE = 34;
const BACKSLASH = 92;
const OPENING: ReadonlySet<number> = new Set([91, 123]);
const CLOSING: ReadonlySet<number> = new Set([93, 125]);

/** Whether more than 1,000 brackets are open at once. A short text cannot be. */
function isDeep(text: string): boolean {
  if (text.length <= MAX_LEVELS) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = endOfString(text, at);
      if (at < 0) return false;
    } else if (OPENING.has(character)) depth += 1;
    else if (CLOSING.has(character)) depth -= 1;
    if (depth > MAX_LEVELS) return true;
  }
  return false;
}

/** The place of the quote that ends the string which begins at `start`: an even number of backslashes is before it. Or -1. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return -1;
}
