import type { Pruning } from "../source/selection.ts";

/**
 * Drops fields from JSON objects by cutting them out of the text, so that what stays is the bytes it was: big
 * integers, the spelling of numbers, escapes and order survive. Works on one byte a character, because UTF-8 has no
 * byte below 0x80 within a character: only names must be decoded before they are compared.
 */
export function pruner(pruning: Pruning): (line: string) => string {
  return (line) => prunedObject(line, skipSpace(line, 0), pruning).text;
}

type Span = { readonly text: string; readonly end: number };

function prunedObject(text: string, start: number, pruning: Pruning): Span {
  const kept: string[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] !== "}") {
    const member = prunedMember(text, at, pruning);
    if (member.text !== "") kept.push(member.text);
    at = skipSpace(text, member.end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return { text: `{${kept.join(",")}}`, end: at + 1 };
}

/** A member without its dropped parts: no text at all if it is dropped itself. */
function prunedMember(text: string, start: number, pruning: Pruning): Span {
  const nameEnd = skipString(text, start);
  const valueAt = skipSpace(text, skipSpace(text, nameEnd) + 1);
  const rule = pruning.fields.get(nameOf(text.slice(start, nameEnd))) ?? pruning.others;
  if (typeof rule === "object" && text[valueAt] === "{") {
    const value = prunedObject(text, valueAt, rule);
    return { text: text.slice(start, valueAt) + value.text, end: value.end };
  }
  const end = skipValue(text, valueAt);
  return { text: rule === "drop" ? "" : text.slice(start, end), end };
}

const PLAIN_NAME = /^"[ !#-[\]-~]*"$/;

function nameOf(raw: string): string {
  return PLAIN_NAME.test(raw) ? raw.slice(1, -1) : JSON.parse(Buffer.from(raw, "latin1").toString("utf8"));
}

function skipValue(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return skipString(text, at);
  if (first === "{" || first === "[") return skipNested(text, at);
  return at + scalarLength(text, at);
}

function scalarLength(text: string, at: number): number {
  const end = /[\s,\]}]/g;
  end.lastIndex = at;
  const found = end.exec(text);
  if (found === null || found.index === at) throw notJson();
  return found.index - at;
}

function skipNested(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const character = text[at];
    if (character === '"') {
      at = skipString(text, at);
      continue;
    }
    if (character === "{" || character === "[") depth++;
    if (character === "}" || character === "]") depth--;
    at++;
    if (depth === 0) return at;
  }
  throw notJson();
}

/** The index after a string: a quote ends it unless an odd number of backslashes stands before. */
function skipString(text: string, start: number): number {
  if (text[start] !== '"') throw notJson();
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text[before - 1] === "\\") before--;
    if ((end - before) % 2 === 0) return end + 1;
  }
  throw notJson();
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text[at] === " " || text[at] === "\t" || text[at] === "\r" || text[at] === "\n") at++;
  return at;
}

const notJson = (): Error => new Error("Cannot drop fields of a record: it is no JSON object");
