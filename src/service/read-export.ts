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
/** The maximum length of a batch of messages. V8 handles longer texts as large objects, which are slower. */
const BATCH_CHARACTERS = 112 * 1024;
/** The approximate number of characters that a message adds to a row. */
const AROUND_A_ROW = 100;
/** The maximum time that a row waits for its batch. */
const MAX_BATCH_MS = 1_000;

/**
 * Opens and reads an export: body, gunzip, latin1, lines, rows, batches. The lines do not change, except as in `decodedTexts`.
 * Yields all readable rows, also the rows after a line that is not a row. Then throws the error.
 * @param what the end of "Cannot …" for errors, such as "read people (2026-01-02)"
 * @throws FormError for a body of another form than JSON lines. BodyError for a body that is cut, or has no rows for too long.
 * BodyError also for a body that ends with the error line, or contains a line that is not a row
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
  const period = Math.min(MAX_BATCH_MS, idleMs);
  /** The time that the reader of the rows has waited. */
  let waitedMs = 0;
  const timer = setInterval(() => {
    batcher.isDue = true;
    waitedMs += period;
    // In the first period, a row may still wait for its batch. So the limit begins after this period.
    if (waitedMs > idleMs) body.destroy(batcher.tooFewRows(idleMs));
  }, period).unref();
  let failure: ConnectorError | undefined;
  let rows = 0;
  try {
    // The callback ignores errors, because the loop below throws them.
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
  // A wrong header of a gzip member does not mean that earlier members are damaged.
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
  /** The error of the first line that is not a row. */
  fault: BodyError | undefined;

  constructor(parser: RowParser, what: string) {
    this.#parser = parser;
    this.#what = what;
  }

  /** Adds a line, and returns the batch if it is full or due. */
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

  /** The rows since the last batch; undefined: no rows. */
  take(): Batch | undefined {
    if (this.#rows.length === 0) return undefined;
    const rows = this.#rows;
    this.#rows = [];
    this.#size = 0;
    this.isDue = false;
    return rows;
  }

  /** The row of a line. An unusual line is parsed and checked. */
  #rowOf(line: string): Row | undefined {
    const matched = this.#parser.match(line);
    if (matched !== undefined) return matched;
    const value = tryParseJson(line);
    if (!isObject(value)) return line.trim() === "" ? undefined : this.#skip(line);
    // A row may have fields named `success` and `error`, so an object with the key is a row.
    const isBare =
      value["success"] === false && typeof value["error"] === "string" && !(this.#parser.key in value);
    const code = envelopeCode(value) ?? (isBare ? "an unknown code" : undefined);
    if (code !== undefined) throw streamError(this.#what, code);
    if (hasRows(value, this.#parser.key)) throw formError(this.#what, "one JSON object with a list of rows");
    const row = this.#parser.parse(oneLine(line), value);
    // An empty object is skipped, because it would prolong a body without rows.
    return line === "{}" ? undefined : row;
  }

  /** Skips a line that is not a row. The error contains no digest of the line, because guesses could reveal a short line. */
  #skip(line: string): undefined {
    const which = `line ${this.#lineNumber} (${line.length} bytes)`;
    this.fault ??= new BodyError(`Cannot ${this.#what}: ${which} is not a JSON object`);
  }

  tooFewRows(idleMs: number): BodyError {
    const wrong = `no row arrived for ${idleMs / 1000} s, although the body continues`;
    return new BodyError(`Cannot ${this.#what}: ${wrong}`, { cause: this.fault });
  }
}

/** Whether an object is not a row but contains rows, like an answer of a list. */
const hasRows = (value: JsonObject, key: string): boolean =>
  !(key in value) &&
  ((value["success"] === true && Array.isArray(value["data"])) ||
    Object.values(value).some((list) => Array.isArray(list) && isObject(list[0]) && key in list[0]));

/** Replaces carriage returns by spaces, because some programs end a line at a carriage return. JSON allows both between tokens. */
const oneLine = (json: string): RawLine => json.replaceAll("\r", " ") as RawLine;
