export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the value if it is an object, else an empty object. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** Returns the value if it is a list, else an empty list. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The type of a JSON value, in JSON's words. */
export const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value;

/** Returns the value at a path of names and list indexes, or undefined. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, part) => {
    if (Array.isArray(inner)) return inner[Number(part)];
    return isObject(inner) && Object.hasOwn(inner, part) ? inner[part] : undefined;
  }, value);
}

/** Adds the keys of `over` to `base`. If both have an object at a key, the objects are merged too. */
export function merged(base: JsonObject, over: JsonObject): JsonObject {
  const entries = Object.entries(over).map(([key, value]) => {
    const below = Object.hasOwn(base, key) ? base[key] : undefined;
    return [key, isObject(below) && isObject(value) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(entries) };
}

/** True if lists and objects are nested more than `levels` deep. */
function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner));
}

/** Quotes a text from outside for a message: at most 200 characters, with line breaks and controls escaped. */
export function quoted(text: string): string {
  const cut = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return JSON.stringify(cut).replace(UNPRINTABLE, toEscape);
}

const UNPRINTABLE = /[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]/g;

/** As `quoted`, without the quotes. */
export const printable = (text: string): string => quoted(text).slice(1, -1);

/** Escapes the control characters of a terminal, except line breaks and tabs. */
export const printableLines = (text: string): string => text.replace(UNSAFE_IN_LINES, toEscape);

const UNSAFE_IN_LINES = /[^\P{Cc}\t\n]|[\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

const toEscape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Recursive functions overflow the stack if a value has more levels. */
const MAX_LEVELS = 1000;

/** Parses JSON from outside; undefined if it is not JSON, or has more than 1,000 levels. */
export function tryParseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return text.length > MAX_LEVELS && isDeeperThan(MAX_LEVELS, value) ? undefined : value;
  } catch {
    return undefined;
  }
}

export const QUOTE = 34;
const BACKSLASH = 92;

/** Returns the index of the quote that ends the string at `start`, or -1. Before an ending quote, backslashes are paired. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return -1;
}
