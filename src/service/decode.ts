import { isUtf8 } from "node:buffer";
import { BodyError, FormError } from "../base/errors.ts";
import type { RawLine } from "../sync/event.ts";
import type { RowNotes } from "./row-notes.ts";

const LINE_FEED = 10;
/** The maximum length of a line, so that a missing newline does not fill the memory. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** The program recognizes the form of a body by at most this number of first bytes. */
const HEAD_BYTES = 1024;
const GZIP = "\x1f\x8b";
const BYTE_ORDER_MARK = "\xef\xbb\xbf";

/**
 * Turns the bytes of a body into latin1 texts, because V8 is fastest with one byte a character. The bytes do not change.
 * Each text ends with a line, so that lines are not copied, and no character or escape is cut. The function also
 * - replaces a line that is not UTF-8 by text that is not JSON, and continues with the next line,
 * - removes a byte order mark,
 * - escapes U+2028, U+2029 and U+0085, which are legal in JSON strings but end a line for some programs,
 * - replaces and counts escaped halves of surrogate pairs (U+FFFD).
 * @param what the end of "Cannot …" for errors
 * @throws BodyError for a line over 16 MiB, FormError for a body that does not begin like lines of JSON
 */
export async function* decodedTexts(
  what: string,
  chunks: AsyncIterable<Buffer>,
  { key, notes }: { readonly key: string; readonly notes: RowNotes },
): AsyncGenerator<string> {
  let mark = BYTE_ORDER_MARK;
  let isChecked = false;
  const textOf = (bytes: Buffer): string => {
    const text = decode(bytes);
    const bare = text.startsWith(mark) ? text.slice(mark.length) : text;
    mark = "";
    return replaceLoneSurrogates(escapeSeparators(bare), notes);
  };
  // The beginning of a line whose end has not arrived.
  let begun: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    if (!isChecked) isChecked = hasLines(what, Buffer.concat([...begun, chunk]), key);
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      yield textOf(Buffer.concat([...begun, chunk.subarray(0, end)]));
      begun = [];
      length = 0;
    }
    begun.push(chunk.subarray(end));
    length += chunk.length - end;
    if (length > MAX_LINE_BYTES) throw new BodyError(`Cannot ${what}: a line is longer than 16 MiB`);
  }
  if (length > 0) yield textOf(Buffer.concat(begun));
}

/** Whether the first bytes of a body show lines; false: more bytes are needed. @throws BodyError for another form */
function hasLines(what: string, bytes: Buffer, key: string): boolean {
  const head = bytes.toString("latin1", 0, HEAD_BYTES).replace(BYTE_ORDER_MARK, "").trimStart();
  const form = formOf(head, key);
  if (form !== undefined) throw formError(what, form);
  return head.includes("\n") || bytes.length >= HEAD_BYTES;
}

const PAGE = "a web page or XML";
/** Forms of bodies that are not lines of JSON: the beginning of the body, and the name of the form. */
const FORMS: readonly (readonly [begins: RegExp, form: string])[] = [
  [/^(?:\xff\xfe|\xfe\xff|\S?\0)/, "UTF-16 text"],
  [/^</, PAGE],
  [/^\[/, "one JSON array"],
  [/^\{(?:[^\n]*[,{[])?[^\S\n]*\n/, "JSON over several lines"],
  [/^(?:data|event|id|retry)?:/, "a stream of events (SSE)"],
];

/** The form of a body by its first bytes; undefined: lines of JSON, or unknown. @param key the name of a column of a CSV */
function formOf(head: string, key: string): string | undefined {
  if (head.startsWith(GZIP)) return "compressed more often than it says";
  const cells = (/^.*/.exec(head)?.[0] ?? "").split(/[,;\t|]/).map((cell) => cell.replace(/^\W+|\W+$/g, ""));
  const isTable = cells.length > 1 && cells.includes(key) && !head.startsWith("{");
  return FORMS.find(([begins]) => begins.test(head))?.[1] ?? (isTable ? "a table (CSV)" : undefined);
}

/** The error of a body of another form. A web page of a gateway is a BodyError, because the next export may be correct. */
export function formError(what: string, form: string): BodyError {
  const Failure = form === PAGE ? BodyError : FormError;
  return new Failure(
    `Cannot ${what}: the export is ${form}, not one JSON object a line. Tell the service's owner`,
  );
}

/** The bytes as latin1. In lines that are not UTF-8, each byte becomes the character 0xff, which is never JSON. */
function decode(bytes: Buffer): string {
  const text = bytes.toString("latin1");
  if (isUtf8(bytes)) return text;
  const jsonOf = (line: string): string =>
    isUtf8(Buffer.from(line, "latin1")) ? line : "\xff".repeat(line.length);
  return text.split("\n").map(jsonOf).join("\n");
}

/** Cleans the JSON text of a value like the lines of an export. Numbers do not change. */
export const toRawLine = (json: string, notes: RowNotes): RawLine =>
  escapeSeparators(replaceLoneSurrogates(json, notes)) as RawLine;

const SEPARATORS = [
  ["\xe2\x80\xa8", "\\u2028"],
  ["\xe2\x80\xa9", "\\u2029"],
  ["\xc2\x85", "\\u0085"],
] as const;

/** Escapes separators of lines. Their UTF-8 bytes have no other meaning. `includes` is twice as fast, so it searches first. */
const escapeSeparators = (text: string): string =>
  SEPARATORS.filter(([bytes]) => text.includes(bytes)).reduce(
    (escaped, [bytes, instead]) => escaped.replaceAll(bytes, instead),
    text,
  );

/** A JSON escape of a surrogate pair, of half a surrogate pair, or of another character. */
const SURROGATE_ESCAPE =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)/g;

/** Replaces and counts escaped halves of surrogate pairs, because readers of UTF-8 refuse them. */
function replaceLoneSurrogates(json: string, notes: RowNotes): string {
  if (!json.includes("\\u") || !(json.includes("\\ud") || json.includes("\\uD"))) return json;
  return json.replace(SURROGATE_ESCAPE, (found, half: string | undefined) => {
    if (half === undefined) return found;
    notes.replaced += 1;
    return "\\ufffd";
  });
}
