import { endOfString, QUOTE } from "./json.ts";
import { fromLatin1, toLatin1 } from "./text.ts";

// Reads JSON text token by token, because JSON.parse rounds integers above 2^53. Texts are UTF-8 as latin1.
// Every function throws if the part that it reads is not JSON.

const COMMA = 44;
export const OPEN_LIST = 91;
export const CLOSE_LIST = 93;
export const OPEN_OBJECT = 123;
export const CLOSE_OBJECT = 125;

/** The text of an object's member, or undefined. If a name occurs twice, the last member counts, as for JSON.parse. */
export const memberText = (text: string, name: string): string | undefined => memberTexts(text, name).at(-1);

/** The texts of all members of an object that have a name. */
export function memberTexts(text: string, name: string): readonly string[] {
  const found: string[] = [];
  const start = skipSpace(text, 0);
  if (text.charCodeAt(start) !== OPEN_OBJECT) return found;
  let at = skipSpace(text, start + 1);
  while (text.charCodeAt(at) !== CLOSE_OBJECT) {
    const end = skipString(text, at);
    const value = skipSpace(text, skipSpace(text, end) + 1);
    const next = skipValue(text, value);
    if (nameOf(text, at, end) === name) found.push(text.slice(value, next));
    at = toNext(text, next, CLOSE_OBJECT);
  }
  return found;
}

/** The texts of the elements of a list in an object. Without the list there are none. */
export function elementTexts(text: string, name: string): readonly string[] {
  const list = memberText(text, name) ?? "";
  if (list.charCodeAt(0) !== OPEN_LIST) return [];
  const texts: string[] = [];
  let at = skipSpace(list, 1);
  while (list.charCodeAt(at) !== CLOSE_LIST) {
    const end = skipValue(list, at);
    texts.push(list.slice(at, end));
    at = toNext(list, end, CLOSE_LIST);
  }
  return texts;
}

/** The index of the next element or member, or of the end. */
export function toNext(text: string, end: number, close: number): number {
  const at = skipSpace(text, end);
  const next = text.charCodeAt(at);
  if (next !== COMMA && next !== close) throw malformedJson();
  return next === COMMA ? skipSpace(text, at + 1) : at;
}

/** Removes white space and escapes as JSON.stringify does, but never rounds a number. */
export function compactJson(json: string): string {
  let built = "";
  let from = 0;
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const start = at;
      at = skipString(json, start);
      const token = json.slice(start, at);
      if (!token.includes("\\")) continue;
      built += json.slice(from, start) + toLatin1(JSON.stringify(JSON.parse(fromLatin1(token))));
      from = at;
    } else if (code <= 32) {
      built += json.slice(from, at);
      at = skipSpace(json, at);
      from = at;
    } else at += 1;
  }
  return built + json.slice(from);
}

/** Decodes the name between two indexes. */
export function nameOf(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1);
  return WITHOUT_ESCAPES.test(raw) ? raw : JSON.parse(fromLatin1(text.slice(start, end)));
}

const WITHOUT_ESCAPES = /^[ !#-[\]-~]*$/;

/** The index after a value. */
export function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first === OPEN_OBJECT || first === OPEN_LIST) return skipNested(text, at);
  let end = at;
  while (isScalar(text.charCodeAt(end))) end += 1;
  if (end === at) throw malformedJson();
  return end;
}

/** Numbers, `true`, `false` and `null` have letters, digits and signs only. */
const isScalar = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 43 && code <= 57 && code !== COMMA) || code === 69;

function skipNested(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth += 1;
    if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
  throw malformedJson();
}

/** The index after a string. */
export function skipString(text: string, start: number): number {
  const end = text.charCodeAt(start) === QUOTE ? endOfString(text, start) : -1;
  if (end < 0) throw malformedJson();
  return end + 1;
}

/** The index of the next character that is not JSON white space. */
export function skipSpace(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code <= 32; code = text.charCodeAt(at)) {
    if (code !== 32 && code !== 9 && code !== 10 && code !== 13) throw malformedJson();
    at += 1;
  }
  return at;
}

export const malformedJson = (): Error =>
  new Error("Cannot read values from a text that is not a JSON object");

export const hasNuls = (line: string): boolean => line.includes("\\u0000");

/** Replaces escaped NULs, which SQL targets cannot store, with U+FFFD. @param replaced called for each */
export function withoutNuls(line: string, replaced: () => void): string {
  return line.replace(/\\(?:u0000|.)/gs, (found) => {
    if (found !== "\\u0000") return found;
    replaced();
    return "\\ufffd";
  });
}
