import { pipeline } from "node:stream";
import split2 from "split2";
import { BodyError, ConnectorError, ScrambledError } from "../base/errors.ts";
import { isObject, type JsonObject, tryParseJson } from "../base/json.ts";
import { plural } from "../base/text.ts";
import type { RawLine } from "../sync/event.ts";
import type { Batch, Row } from "../sync/service.ts";
import { bytesOf } from "./body.ts";
import type { Export } from "./client.ts";
import { decodedTexts, formError } from "./decode.ts";
import { envelopeCode, streamError } from "./error-table.ts";
import type { RowParser } from "./rows.ts";

const CARRIAGE_RETURN = 13;
/** Characters of a batch with what is put around its rows: longer texts are large objects to V8, and take longer. */
const BATCH_CHARACTERS = 112 * 1024;
/** About as many characters as a message puts around a row. */
const AROUND_A_ROW = 100;
/** A batch does not wait longer than this (ms) for more rows once others have arrived. */
const LATEST = 1_000;

/**
 * Opens an export and reads it: body, gunzip (strict: a missing trailer is an error), latin1, lines, rows, batches. Ends only if
 * the body ended properly and every line was a row. The raw lines are what arrived; see `decodedTexts` for the few exceptions.
 * Every row that could be read is handed on, also those before and after what is wrong; then the error is thrown.
 * @param what the end of "Cannot …" for errors, such as "read people (2026-01-02)"
 * @throws FormError for a body that is not JSON lines; BodyError for one that is cut, silent, without rows for too long, ended by
 * the error line, or contains a line that is no row
 */
export async function* readExport(
  open: () => Promise<Export>,
  parser: RowParser,
  what: string,
): AsyncGenerator<Batch> {
  const { body, headers, usage, idleMs, ended } = await open();
  const batcher = new Batcher(parser, what);
  const lines = split2("\n", (line: string) => batcher.add(line), {
    decodeStrings: false,
    readableHighWaterMark: 2,
  });
  const period = Math.min(LATEST, idleMs);
  /** For how long the reader of the rows has waited. */
  let waitedMs = 0;
  const timer = setInterval(() => {
    batcher.isDue = true;
    waitedMs += period;
    // A row of the first period may still wait for its batch: the limit counts from the end of that period.
    if (waitedMs > idleMs) body.destroy(batcher.tooFewRows(idleMs));
  }, period).unref();
  let failure: ConnectorError | undefined;
  let rows = 0;
  try {
    // An error on the way is thrown where the lines are read.
    pipeline(decodedTexts(what, bytesOf(what, { body, headers }, usage), parser), lines, () => undefined);
    for await (const batch of lines as AsyncIterable<Batch>) {
      waitedMs = Number.NEGATIVE_INFINITY;
      rows += batch.length;
      yield batch;
      waitedMs = 0;
    }
    failure = batcher.fault;
  } catch (error) {
    failure = error instanceof ConnectorError ? error : brokenOff(what, error);
  } finally {
    clearInterval(timer);
    body.destroy();
    ended?.(plural(rows + batcher.waiting, "row"), failure);
  }
  const last = batcher.take();
  if (last !== undefined) yield last;
  if (failure !== undefined) throw failure;
}

function brokenOff(what: string, cause: unknown): BodyError {
  const { code, message } = isObject(cause) ? cause : {};
  // A member that is no gzip from its header on has damaged nothing before it.
  if (code === "Z_DATA_ERROR" && message !== "incorrect header check")
    return new ScrambledError(`Cannot ${what}: the body is damaged, its gzip does not add up`, { cause });
  return new BodyError(`Cannot ${what}: the body broke off`, { cause });
}

class Batcher {
  readonly #parser: RowParser;
  readonly #what: string;
  #rows: Row[] = [];
  #size = 0;
  #lineNumber = 0;
  /** Whether the next row completes the batch. */
  isDue = true;
  /** The error of the first line that is no row. */
  fault: BodyError | undefined;

  constructor(parser: RowParser, what: string) {
    this.#parser = parser;
    this.#what = what;
  }

  /** Takes a line in; returns a batch when one is full or due. */
  add(line: string): Batch | undefined {
    this.#lineNumber += 1;
    const raw = line.charCodeAt(line.length - 1) === CARRIAGE_RETURN ? line.slice(0, -1) : line;
    if (raw === "") return undefined;
    const row = this.#rowOf(raw);
    if (row === undefined) return undefined;
    this.#rows.push(row);
    this.#size += raw.length + AROUND_A_ROW;
    return this.#size >= BATCH_CHARACTERS || this.isDue ? this.take() : undefined;
  }

  /** The number of rows since the last batch. */
  get waiting(): number {
    return this.#rows.length;
  }

  /** The rows since the last batch; undefined if there are none. */
  take(): Batch | undefined {
    if (this.#rows.length === 0) return undefined;
    const rows = this.#rows;
    this.#rows = [];
    this.#size = 0;
    this.isDue = false;
    return rows;
  }

  /** A usual row is known by its line, any other is parsed and checked. */
  #rowOf(line: string): Row | undefined {
    const matched = this.#parser.match(line);
    if (matched !== undefined) return matched;
    const value = tryParseJson(line);
    if (!isObject(value)) return line.trim() === "" ? undefined : this.#skip(line);
    // A record may have fields of these names too.
    const isBare =
      value["success"] === false && typeof value["error"] === "string" && !(this.#parser.key in value);
    const code = envelopeCode(value) ?? (isBare ? "an unknown code" : undefined);
    if (code !== undefined) throw streamError(this.#what, code);
    if (hasRows(value, this.#parser.key)) throw formError(this.#what, "one JSON object with a list of rows");
    const row = this.#parser.parse(oneLine(line), value);
    // An empty object says nothing, and would keep a body without rows alive.
    return line === "{}" ? undefined : row;
  }

  /**
   * Continues after a line that is no row: the body is faulty, its other rows are not. Names a line by place and length: even a
   * digest of a short line could be undone by guessing.
   */
  #skip(line: string): undefined {
    const which = `line ${this.#lineNumber} (${line.length} bytes)`;
    this.fault ??= new BodyError(`Cannot ${this.#what}: ${which} is no JSON object`);
  }

  tooFewRows(idleMs: number): BodyError {
    const wrong = `no row came for ${idleMs / 1000} s, although the body continues`;
    return new BodyError(`Cannot ${this.#what}: ${wrong}`, { cause: this.fault });
  }
}

/** Whether an object is no row, but has rows, as an answer of a list does. */
const hasRows = (value: JsonObject, key: string): boolean =>
  !(key in value) &&
  ((value["success"] === true && Array.isArray(value["data"])) ||
    Object.values(value).some((list) => Array.isArray(list) && isObject(list[0]) && key in list[0]));

/** JSON allows a carriage return between its tokens only, where a space means the same and ends no line for any reader. */
const oneLine = (json: string): RawLine => json.replaceAll("\r", " ") as RawLine;
