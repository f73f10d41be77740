import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { type Dispatcher, request } from "undici";
import { serviceUrl } from "../config/address.ts";
import { ConfigError, ConnectorError, TransientError } from "../errors.ts";
import type { Notice } from "../sync/event.ts";
import type { Clock } from "./clock.ts";
import { envelopeCode, networkError, redirectError, statusError, wasNeverSent } from "./failures.ts";
import type { Limiter } from "./limiter.ts";
import { retryAfterMs } from "./retry-after.ts";

const TRIES = 5;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 30_000;
const UNSAID_RETRY_AFTER_MS = 10_000;
/** A request that has waited this long for its rate limit in all gives up. */
const LONGEST_LIMITED_MS = 1_800_000;
/** Errors say what they have to say in this many bytes. */
const ERROR_BODY_BYTES = 65_536;
const JSON_BODY_BYTES = 268_435_456;
/** How long (ms) a POST under way may take to be answered when the run is to end: its answer says what was paid for. */
const POST_GRACE_MS = 5_000;

export type Query = Readonly<Record<string, string>>;

/** What a JSON answer says, and the moments (epoch ms by the service's clock) between which the service made it. */
export type Answer<Value> = { readonly value: Value; readonly asked: number; readonly answered: number };

/** An export under way. `gzipped`: the body is to be decompressed strictly. */
export type Export = { readonly body: Readable; readonly gzipped: boolean };

/** What became of a POST. `answered`: epoch ms by the service's clock; `value` undefined: the body is no whole JSON. */
export type Posted =
  | { readonly kind: "answered"; readonly status: number; readonly value: unknown; readonly answered: number }
  /** 429: every request of the key waits, then this one may be made again. */
  | { readonly kind: "limited"; readonly error: ConnectorError }
  /** It has not reached the service. */
  | { readonly kind: "unsent"; readonly error: ConnectorError }
  /** It may have reached the service. */
  | { readonly kind: "unanswered"; readonly error: ConnectorError };

export type ClientOptions = {
  readonly base: URL;
  readonly apiKey: string;
  readonly dispatcher: Dispatcher;
  /** For POSTs: a connection each, since one that dies of age takes along what was just written to it. */
  readonly fresh?: () => Dispatcher;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly note: (notice: Notice) => void;
  readonly idleTimeoutMs: number;
  /** Between 0 and 1; spreads the retries. */
  readonly random: () => number;
  /** How often a request may fail before it is given up; `check` is less patient. */
  readonly tries?: number;
};

type Response = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
  readonly asked: number;
  readonly answered: number;
};

type Sending = {
  readonly method: "GET" | "POST";
  readonly body: string;
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
};

const unzip = promisify(gunzip);

/** Talks to the service. GETs are limited, timed, retried for what time can heal, and translated into our errors. */
export class Client {
  readonly #options: ClientOptions;
  #clockOffset: number | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Epoch ms by the service's clock, as far as its answers have told it. */
  now(): number {
    return this.#options.clock.now() + (this.#clockOffset ?? 0);
  }

  /** Whether any answer has told the service's time. */
  get knowsTime(): boolean {
    return this.#clockOffset !== undefined;
  }

  /**
   * @param what the end of "Cannot …" for errors, such as "count people"
   * @param parse throws TransientError for what is not of the expected form, and so asks again
   */
  getJson<Value>(
    what: string,
    path: string,
    query: Query,
    parse: (value: unknown) => Value,
  ): Promise<Answer<Value>> {
    return this.#retry(what, path, query, async ({ body, headers, asked, answered }) => {
      const value = parseJson(await readBody(body, headers, JSON_BODY_BYTES));
      if (value === undefined) {
        throw new TransientError(
          `Cannot ${what}: the answer is not JSON. If it stays so, check base_url: it may point to a web page`,
        );
      }
      const code = envelopeCode(value);
      if (code !== undefined) throw statusError(what, 200, code);
      return { value: parse(value), asked, answered };
    });
  }

  /**
   * GETs an answer whose status is a part of it. 429 is waited for all the same.
   * @param read returns undefined for what is an error, which is then retried or thrown
   */
  ask<Value>(
    what: string,
    path: string,
    accepts: (status: number) => boolean,
    read: (status: number, value: unknown) => Value | undefined,
  ): Promise<Value> {
    const take = async ({ status, body, headers }: Response): Promise<Value> => {
      const value = parseJson(await readBody(body, headers, JSON_BODY_BYTES));
      const result = read(status, value);
      if (result !== undefined) return result;
      throw status < 300 ? notOfTheForm(what) : statusError(what, status, envelopeCode(value));
    };
    return this.#retry(what, path, {}, take, (status) => status !== 429 && accepts(status));
  }

  /** Resolves when a POST may start. Rejects at once when the run is to end. */
  async turn(): Promise<void> {
    const { limiter, signal } = this.#options;
    signal.throwIfAborted();
    await limiter.take(signal);
  }

  /** POSTs once, in a turn that was taken before; whatever happens, nothing is sent a second time. */
  async post(what: string, path: string, json: unknown): Promise<Posted> {
    const { signal, dispatcher, fresh } = this.#options;
    const ending = new AbortController();
    const end = (): void => void setTimeout(() => ending.abort(signal.reason), POST_GRACE_MS).unref();
    signal.addEventListener("abort", end, { once: true });
    try {
      const body = JSON.stringify(json);
      const sent = {
        method: "POST",
        body,
        dispatcher: fresh?.() ?? dispatcher,
        signal: ending.signal,
      } as const;
      return await this.#posted(what, await this.#send(path, {}, sent));
    } catch (error) {
      return {
        kind: wasNeverSent(error) ? "unsent" : "unanswered",
        error: error instanceof ConnectorError ? error : networkError(what, error),
      };
    } finally {
      signal.removeEventListener("abort", end);
    }
  }

  async #posted(what: string, response: Response): Promise<Posted> {
    const { status, headers, body, answered } = response;
    if (status === 429) {
      const error = await errorOf(what, response);
      this.#limit(retryAfterMs(headers["retry-after"], answered, UNSAID_RETRY_AFTER_MS));
      return { kind: "limited", error };
    }
    if (status >= 300 && status < 400) {
      body.destroy();
      return { kind: "unsent", error: redirectError(what, status, headers["location"]) };
    }
    const text = await readBody(body, headers, JSON_BODY_BYTES).catch(() => undefined);
    return { kind: "answered", status, value: parseJson(text), answered: this.now() };
  }

  /** Opens an export. What goes wrong after its first byte is the reader's to see. */
  open(what: string, path: string, query: Query): Promise<Export> {
    return this.#retry(what, path, query, async ({ body, headers }) => ({
      body,
      gzipped: headers["content-encoding"] === "gzip",
    }));
  }

  /** Waits before the n-th retry: exponentially longer, with full jitter. */
  async backOff(failures: number, atLeastMs = 0): Promise<void> {
    const { clock, random, signal } = this.#options;
    const longest = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
    await clock.sleep(Math.max(atLeastMs, random() * longest), signal);
  }

  async #retry<Result>(
    what: string,
    path: string,
    query: Query,
    read: (response: Response) => Promise<Result>,
    accepts: (status: number) => boolean = (status) => status === 200,
  ): Promise<Result> {
    let limitedMs = 0;
    for (let failures = 0; ; ) {
      const outcome = await this.#try(what, path, query, read, accepts);
      if (outcome.kind === "done") return outcome.result;
      if (outcome.kind === "limited") {
        limitedMs += outcome.waitMs;
        if (limitedMs > LONGEST_LIMITED_MS) throw outcome.error;
        this.#limit(outcome.waitMs);
        continue;
      }
      failures += 1;
      if (!(outcome.error instanceof TransientError)) throw outcome.error;
      if (failures >= (this.#options.tries ?? TRIES)) throw outcome.error;
      await this.backOff(failures, outcome.waitMs);
    }
  }

  async #try<Result>(
    what: string,
    path: string,
    query: Query,
    read: (response: Response) => Promise<Result>,
    accepts: (status: number) => boolean,
  ): Promise<
    { kind: "done"; result: Result } | { kind: "limited" | "failed"; error: ConnectorError; waitMs: number }
  > {
    const { limiter, signal } = this.#options;
    await limiter.take(signal);
    try {
      const response = await this.#send(path, query);
      if (accepts(response.status)) return { kind: "done", result: await read(response) };
      const error = await errorOf(what, response);
      const header = response.headers["retry-after"];
      // A quota that is used up may come as 429 too, and no wait of ours outlasts it.
      if (response.status !== 429 || !(error instanceof TransientError)) {
        const waitMs = header === undefined ? 0 : retryAfterMs(header, response.answered, 0);
        return { kind: "failed", error, waitMs };
      }
      return {
        kind: "limited",
        error,
        waitMs: retryAfterMs(header, response.answered, UNSAID_RETRY_AFTER_MS),
      };
    } catch (error) {
      signal.throwIfAborted();
      const known = error instanceof ConnectorError ? error : networkError(what, error);
      return { kind: "failed", error: known, waitMs: 0 };
    }
  }

  async #send(path: string, query: Query, sending: Partial<Sending> = {}): Promise<Response> {
    const { base, apiKey, dispatcher, signal, clock, idleTimeoutMs } = this.#options;
    const { method = "GET", body: json } = sending;
    const url = serviceUrl(base, path);
    url.search = new URLSearchParams(query).toString();
    const sent = clock.monotonic();
    const { statusCode, headers, body } = await request(url, {
      method,
      dispatcher: sending.dispatcher ?? dispatcher,
      signal: sending.signal ?? signal,
      headers: {
        "x-api-key": apiKey,
        accept: "application/json, application/x-ndjson",
        "accept-encoding": "gzip",
        ...(json !== undefined && { "content-type": "application/json" }),
      },
      ...(json !== undefined && { body: json }),
      headersTimeout: idleTimeoutMs,
      bodyTimeout: idleTimeoutMs,
    });
    // A body that is given up before its end says so by an error event, which nobody may be left to hear.
    body.on("error", () => undefined);
    const took = clock.monotonic() - sent;
    const date = Date.parse(String(headers["date"]));
    if (!Number.isNaN(date)) this.#clockOffset = date - clock.now();
    const answered = Number.isNaN(date) ? this.now() : date;
    const asked = Math.floor((answered - took - 1_000) / 1_000) * 1_000;
    return { status: statusCode, headers, body, asked, answered: answered + 1_000 };
  }

  #limit(waitMs: number): void {
    const { limiter, clock, note } = this.#options;
    limiter.block(waitMs);
    note({ kind: "limited", until: clock.now() + waitMs });
  }
}

const notOfTheForm = (what: string): TransientError =>
  new TransientError(`Cannot ${what}: the answer is not of the interface's form`);

async function errorOf(what: string, { status, headers, body }: Response): Promise<ConnectorError> {
  if (status >= 300 && status < 400) {
    body.destroy();
    return redirectError(what, status, headers["location"]);
  }
  const text = await readBody(body, headers, ERROR_BODY_BYTES).catch(() => undefined);
  return statusError(what, status, envelopeCode(parseJson(text)));
}

async function readBody(body: Readable, headers: IncomingHttpHeaders, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limit) throw new ConfigError("Cannot read an answer: it is larger than any of this interface");
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks);
  return headers["content-encoding"] === "gzip" ? await unzip(bytes) : bytes;
}

function parseJson(bytes: Buffer | undefined): unknown {
  try {
    return bytes === undefined ? undefined : JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}
