import { isUtf8 } from "node:buffer";
import { Transform, type TransformCallback } from "node:stream";
import { BodyError } from "../errors.ts";
import { toLatin1 } from "../latin1.ts";
import type { RawLine } from "../sync/event.ts";

/**
 * Turns the bytes of a body into latin1 strings, one byte a character: V8 splits, parses and joins those fastest, and
 * the bytes come out again as they were. On the way it
 * - refuses what is not UTF-8 (cut characters wait for their rest),
 * - drops a byte order mark,
 * - escapes U+2028, U+2029 and U+0085, which are legal in JSON strings but end a line for some readers of our output.
 */
export class BytesToText extends Transform {
  #rest: Buffer = Buffer.alloc(0);
  #first = true;
  readonly #arrived: (text: string) => void;

  /** @param arrived told of each piece of text before its lines are read */
  constructor(arrived: (text: string) => void) {
    super({ readableObjectMode: true, readableHighWaterMark: 2 });
    this.#arrived = arrived;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const whole = bytes.length - cutCharacterLength(bytes);
    this.#rest = bytes.subarray(whole);
    this.#pass(bytes.subarray(0, whole), done);
  }

  override _flush(done: TransformCallback): void {
    if (this.#rest.length > 0) done(notUtf8());
    else done();
  }

  #pass(bytes: Buffer, done: TransformCallback): void {
    if (!isUtf8(bytes)) {
      done(notUtf8());
      return;
    }
    const text = bytes.toString("latin1");
    const bare = this.#first && text.startsWith("\xef\xbb\xbf") ? text.slice(3) : text;
    if (bytes.length > 0) this.#first = false;
    this.#arrived(bare);
    done(null, escapeSeparators(bare));
  }
}

const notUtf8 = (): BodyError => new BodyError("The body holds bytes that are not UTF-8");

/** Length of the UTF-8 character that the end of these bytes cuts, 0 to 3. */
function cutCharacterLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return lengthOf(byte) > back ? back : 0;
  }
  return 0;
}

function lengthOf(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}

const SEPARATORS = [
  ["\xe2\x80\xa8", "\\u2028"],
  ["\xe2\x80\xa9", "\\u2029"],
  ["\xc2\x85", "\\u0085"],
] as const;

/** A value as a line of ours, escaped as the lines of an export are. */
export function toRawLine(value: unknown, replaced: () => void): RawLine {
  return escapeSeparators(toLatin1(replaceLoneSurrogates(JSON.stringify(value), replaced))) as RawLine;
}

/** UTF-8 is self-synchronizing, so these bytes stand for nothing else; outside a string they would be no JSON either way. */
function escapeSeparators(text: string): string {
  const found = SEPARATORS.flatMap(([bytes, instead]) =>
    placesOf(bytes, text).map((at) => ({ at, instead, end: at + bytes.length })),
  );
  // Slices of the one text, so that it is copied once, by whoever splits it, and not once a separator.
  let escaped = "";
  let from = 0;
  for (const { at, instead, end } of found.sort((one, other) => one.at - other.at)) {
    escaped += text.slice(from, at) + instead;
    from = end;
  }
  return from === 0 ? text : escaped + text.slice(from);
}

function placesOf(bytes: string, text: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(bytes); at >= 0; at = text.indexOf(bytes, at + bytes.length)) places.push(at);
  return places;
}

/** A JSON escape of a whole surrogate pair, of half of one, or of anything else. */
const ESCAPE =
  /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)/g;
const SURROGATE = /\\u[dD][89a-fA-F]/;

/** Whether a piece of text may hold an escaped half of a surrogate pair, or the beginning of one that its end cuts. */
export const mayHoldSurrogates = (text: string): boolean =>
  text.includes("\\ud") || text.includes("\\uD") || text.endsWith("\\") || text.endsWith("\\u");

/** Replaces escaped halves of surrogate pairs, which no UTF-8 reader can take, by U+FFFD; `replaced` is told of each. */
export function replaceLoneSurrogates(json: string, replaced: () => void): string {
  if (json.indexOf("\\") < 0 || !SURROGATE.test(json)) return json;
  return json.replace(ESCAPE, (found, half: string | undefined) => {
    if (half === undefined) return found;
    replaced();
    return "\\ufffd";
  });
}
