import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import split2 from "split2";
import { BodyError, ConnectorError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/ports.ts";
import type { Export } from "./client.ts";
import { envelopeCode, streamError } from "./failures.ts";
import { type RowReader, toRow } from "./row.ts";
import { toText } from "./text.ts";

const CARRIAGE_RETURN = 13;
/** Characters in a batch: about as much as a pipe takes at once. */
const BATCH = 64 * 1024;
/** A batch does not wait longer than this (ms) for more rows once others have arrived. */
const LATEST = 1_000;
/** Bytes that are worked on at once: texts from twice as many on are large objects to V8, and take several times as long. */
const PIECE = 64 * 1024;

/**
 * Reads an export: body, gunzip (strict: a missing trailer is an error), latin1, lines, rows, batches. Ends only if
 * the body ended properly. The raw lines are what arrived; see `toText` for the few exceptions.
 * @param what the end of "Cannot …" for errors, such as "read people of 2026-01-02"
 * @throws BodyError for a body that is cut, silent, not UTF-8, ended by the error line, or holds a line that is no row
 */
export async function* readRows(
  { body, gzipped }: Export,
  reader: RowReader,
  what: string,
): AsyncGenerator<readonly Row[]> {
  const batcher = new Batcher(reader, what);
  const lines = split2("\n", (line: string) => batcher.add(line), {
    decodeStrings: false,
    readableHighWaterMark: 2,
  });
  const gunzips = gzipped ? [createGunzip({ chunkSize: PIECE })] : [];
  const texts = (chunks: AsyncIterable<Buffer>): AsyncIterable<string> => toText(chunks, reader.replaced);
  const flow = pipeline([body, inPieces, ...gunzips, texts, lines] as unknown as [
    Readable,
    NodeJS.ReadWriteStream,
  ]);
  flow.catch(() => undefined);
  const timer = setInterval(() => batcher.hurry(), LATEST).unref();
  try {
    yield* lines as AsyncIterable<readonly Row[]>;
    await flow;
    const rest = batcher.take();
    if (rest !== undefined) yield rest;
  } catch (error) {
    throw error instanceof ConnectorError
      ? error
      : new BodyError(`Cannot ${what}: the body broke off`, { cause: error });
  } finally {
    clearInterval(timer);
    body.destroy();
  }
}

/**
 * All that has arrived since the last look, in pieces of a good size. A pipe would hand on one arrival after the other from
 * a linked list, and while that is never empty the garbage collector keeps it from its first link on: a hundred megabytes
 * that were read long ago.
 */
async function* inPieces(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const arrived of body) {
    for (let at = 0; at < arrived.length; at += PIECE) yield arrived.subarray(at, at + PIECE);
  }
}

class Batcher {
  readonly #reader: RowReader;
  readonly #what: string;
  #rows: Row[] = [];
  #size = 0;
  #lineNumber = 0;
  #due = true;

  constructor(reader: RowReader, what: string) {
    this.#reader = reader;
    this.#what = what;
  }

  /** What waits goes with the next row. */
  hurry(): void {
    this.#due = true;
  }

  /** Takes a line in; returns a batch when one is full or due. */
  add(line: string): readonly Row[] | undefined {
    this.#lineNumber += 1;
    const raw = line.charCodeAt(line.length - 1) === CARRIAGE_RETURN ? line.slice(0, -1) : line;
    if (raw === "") return undefined;
    const row = this.#rowOf(raw);
    if (row === undefined) return undefined;
    this.#rows.push(row);
    this.#size += raw.length;
    return this.#size >= BATCH || this.#due ? this.take() : undefined;
  }

  take(): readonly Row[] | undefined {
    if (this.#rows.length === 0) return undefined;
    const rows = this.#rows;
    this.#rows = [];
    this.#size = 0;
    this.#due = false;
    return rows;
  }

  /** A usual row is known by its line, any other is parsed and checked. */
  #rowOf(line: string): Row | undefined {
    const matched = this.#reader.match(line);
    if (matched !== undefined) return { raw: line as RawLine, key: matched.key, cursor: matched.cursor };
    const value = parseObject(line);
    if (value === undefined) {
      if (line.trim() === "") return undefined;
      throw this.#badLine(line, "is no JSON object");
    }
    const code = value["success"] === false ? envelopeCode(value) : undefined;
    if (code !== undefined) throw streamError(this.#what, code);
    const row = toRow(line as RawLine, value, this.#reader);
    if (row === "unclean") throw this.#badLine(line, `has no "${this.#reader.key}"`);
    return row;
  }

  /** Names a line by place, length and digest, never by content. */
  #badLine(line: string, why: string): BodyError {
    const digest = createHash("sha256").update(line, "latin1").digest("hex").slice(0, 16);
    return new BodyError(
      `Cannot ${this.#what}: line ${this.#lineNumber} (${line.length} bytes, sha256 ${digest}…) ${why}`,
    );
  }
}

function parseObject(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
