import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { type Dispatcher, request } from "undici";
import { ConnectorError, TransientError, UnreachableError } from "../base/errors.ts";
import { tryParseJson } from "../base/json.ts";
import { serviceUrl } from "../config/address.ts";
import type { Notice } from "../sync/event.ts";
import { isGzipped, readBody } from "./body.ts";
import type { Clock } from "./clock.ts";
import { RequestDeadline } from "./deadline.ts";
import {
  envelopeCode,
  isBug,
  isPlainRedirect,
  networkError,
  OUT_OF_CREDITS,
  type Place,
  redirectError,
  type SettingNames,
  statusError,
  wasNeverSent,
} from "./error-table.ts";
import type { Limiter } from "./limiter.ts";
import { retryAfterMs } from "./retry-after.ts";
import { noUsage, type Usage } from "./usage.ts";

const MAX_TRIES = 5;
/** Tries of a request that cannot connect while no connection has ever worked: a run that cannot work ends soon. */
const FIRST_TRIES = 2;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const UNSAID_RETRY_AFTER_MS = 10_000;
/** A request that has waited this long for its rate limit in all gives up. */
const MAX_LIMITED_MS = 1_800_000;
/** No answer but an export and the result of a job is longer than this, decompressed. */
const ANSWER_BYTES = 33_554_432;
/** The result of a look-up has all contacts of a company, and is paid for: it is read up to this length. */
const RESULT_BYTES = 268_435_456;
/** Deadline of a complete answer, in idle timeouts. */
const SILENCES = 2;
/** How long (ms) a POST under way may take to be answered when the run is to end: its answer says what was paid for. */
const POST_GRACE_MS = 5_000;

export type Query = Readonly<Record<string, string>>;

/** A JSON answer, and the moments (epoch ms by the service's clock) between which the service made it. */
export type JsonAnswer<Value> = { readonly value: Value; readonly asked: number; readonly answered: number };

/** An export under way. `gzipped`: decompress the body strictly. `idleMs`: how long no row may come while rows are wanted. */
export type Export = {
  readonly body: Readable;
  readonly gzipped: boolean;
  readonly idleMs: number;
  readonly usage: Usage;
};

/**
 * The outcome of a POST. "limited": 429, every request of the key waits, then this one may be made again. "unsent": it has not
 * reached the service. "unanswered": it may have. `answered`: epoch ms by the service's clock; `value`: JSON, or else the text;
 * undefined: it broke off.
 */
export type Posted =
  | { readonly kind: "answered"; readonly status: number; readonly value: unknown; readonly answered: number }
  | { readonly kind: "limited" | "unsent" | "unanswered"; readonly error: ConnectorError };

export type ClientOptions = {
  readonly base: URL;
  readonly apiKey: string;
  /** The names of the settings that address and key come from, for errors. */
  readonly settings: SettingNames;
  /** The variable that names a proxy for `base`, for errors. */
  readonly proxy?: string | undefined;
  readonly dispatcher: Dispatcher;
  /** For POSTs: a connection each, because one that dies of age takes along what was just written to it. */
  readonly fresh?: () => Dispatcher;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly notify: (notice: Notice) => void;
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

/** A request that is made until it succeeds or has failed too often. */
type Asking<Result> = {
  readonly what: string;
  readonly path: string;
  readonly query: Query;
  /** The body of a POST; undefined: a GET. */
  readonly json?: string;
  readonly accepts: (status: number) => boolean;
  readonly read: (response: Response) => Promise<Result>;
  /** Whether only the beginning of the answer has a deadline. */
  readonly isExport?: boolean;
  readonly once?: boolean;
};

type Failed = {
  readonly kind: "limited" | "failed";
  readonly error: ConnectorError;
  readonly waitMs: number;
  /** Undefined: there was no answer. */
  readonly status?: number;
};

type Tried<Result> = { readonly kind: "done"; readonly result: Result } | Failed;

const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/** Talks to the service. GETs are limited, timed, retried for what time can heal, and translated into our errors. */
export class Client {
  /** The work of this client so far. */
  readonly usage: Usage = noUsage();
  readonly #options: ClientOptions;
  readonly #place: Place;
  #clockOffset: number | undefined;
  /** Whether any answer has come. */
  #hasConnected = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    const { base, settings, proxy } = options;
    const port = base.port === "" ? (base.protocol === "https:" ? "443" : "80") : base.port;
    this.#place = { host: `${base.hostname}:${port}`, settings, ...(proxy !== undefined && { proxy }) };
  }

  /** Epoch ms by the service's clock, as far as its answers have shown it. */
  now(): number {
    return this.#options.clock.now() + (this.#clockOffset ?? 0);
  }

  /** Ms that only grow, by this machine. */
  monotonic(): number {
    return this.#options.clock.monotonic();
  }

  /** Whether any answer has shown the service's time. */
  get knowsTime(): boolean {
    return this.#clockOffset !== undefined;
  }

  /** The error of an answer of this service. `what` is the end of "Cannot …", such as "collect a company look-up". */
  refusal(what: string, status: number, code: string | undefined): ConnectorError {
    return statusError(what, this.#place, status, code);
  }

  /**
   * @param what the end of "Cannot …" for errors, such as "count people"
   * @param parse throws TransientError for what is not of the expected form, and so asks again
   * @param once whether a failure is not tried again, unless the answer says when
   */
  getJson<Value>(
    what: string,
    path: string,
    query: Query,
    parse: (value: unknown, body: Buffer) => Value,
    once = false,
  ): Promise<JsonAnswer<Value>> {
    const read = async (response: Response): Promise<JsonAnswer<Value>> => {
      const { asked, answered } = response;
      const body = await readBody(what, response, ANSWER_BYTES, this.usage);
      const value = toJson(body);
      if (value === undefined) {
        const { host, settings } = this.#place;
        const reason = "the answer is not JSON";
        const remedy = `If it stays so, check ${settings.url}: it may point to a web page`;
        throw new TransientError(`Cannot ${what} at ${host}: ${reason}. ${remedy}`, { reason });
      }
      const code = envelopeCode(value);
      if (code !== undefined) throw this.refusal(what, 200, code);
      return { value: parse(value, body), asked, answered };
    };
    return this.#retry({ what, path, query, accepts: (status) => status === 200, read, once });
  }

  /**
   * GETs an answer whose status is a part of it. 429 is still waited for.
   * @param read returns undefined for what is an error, which is then retried or thrown
   */
  ask<Value>(
    what: string,
    path: string,
    accepts: (status: number) => boolean,
    read: (status: number, value: unknown) => Value | undefined,
  ): Promise<Value> {
    return this.#retry({
      what,
      path,
      query: {},
      accepts: (status) => status !== 429 && accepts(status),
      read: async (response) => {
        const { status } = response;
        const value = toJson(await readBody(what, response, RESULT_BYTES, this.usage));
        const result = read(status, value);
        if (result !== undefined) return result;
        if (status >= 300) throw this.refusal(what, status, envelopeCode(value));
        const reason = "the answer is not of the interface's form";
        throw new TransientError(`Cannot ${what}: ${reason}`, { reason });
      },
    });
  }

  /**
   * Opens an export. Its reader meets the failures that come after the first byte.
   * @param once whether an export that could not be begun is not asked for again, unless the answer says when
   */
  open(what: string, path: string, query: Query, once = false): Promise<Export> {
    return this.#retry({
      what,
      path,
      query,
      // An export without rows may have no content; counts say whether there should be any.
      accepts: (status) => status === 200 || status === 204,
      isExport: true,
      once,
      read: async ({ body, headers }) => {
        const gzipped = isGzipped(what, headers);
        return { body, gzipped, idleMs: this.#options.idleTimeoutMs, usage: this.usage };
      },
    });
  }

  /** Resolves when a request may start. Rejects at once when the run is to end. */
  async requestSlot(): Promise<void> {
    const { limiter, signal } = this.#options;
    signal.throwIfAborted();
    await this.#wait(() => limiter.take(signal));
  }

  /** POSTs once, in a turn that was taken before; whatever happens, nothing is sent a second time. */
  async post(what: string, path: string, body: unknown): Promise<Posted> {
    const tried = await this.#try<Posted>({
      what,
      path,
      query: {},
      json: JSON.stringify(body),
      accepts: (status) => status !== 429 && !isRedirect(status),
      read: async (response) => {
        const text = await readBody(what, response, ANSWER_BYTES, this.usage).catch(() => undefined);
        const json = toJson(text);
        const value = json === undefined ? text?.toString() : json;
        return { kind: "answered", status: response.status, value, answered: this.now() };
      },
    });
    if (tried.kind === "done") return tried.result;
    const { kind, error, waitMs, status = 0 } = tried;
    if (kind === "limited") this.#limit(waitMs);
    if (status === 429) return { kind: "limited", error };
    return { kind: wasNeverSent(error) || isPlainRedirect(status) ? "unsent" : "unanswered", error };
  }

  /** Waits before the n-th retry: exponentially longer, with full jitter. */
  async backOff(failures: number): Promise<void> {
    await this.#pause(this.#pauseMs(failures));
  }

  async #retry<Result>(asking: Asking<Result>): Promise<Result> {
    let limitedMs = 0;
    for (let failures = 0; ; ) {
      await this.requestSlot();
      const outcome = await this.#try(asking);
      if (outcome.kind === "done") return outcome.result;
      if (outcome.kind === "limited") {
        limitedMs += outcome.waitMs;
        if (limitedMs > MAX_LIMITED_MS)
          throw new TransientError(outcome.error.message, { cause: outcome.error, scope: "run" });
        this.#limit(outcome.waitMs);
        continue;
      }
      failures += 1;
      const { error, waitMs } = outcome;
      const isFirst = !this.#hasConnected && error instanceof TransientError && wasNeverSent(error);
      const tries = Math.min(this.#options.tries ?? MAX_TRIES, isFirst ? FIRST_TRIES : MAX_TRIES);
      if (!(error instanceof TransientError)) throw error;
      if (asking.once === true && waitMs === 0 && !wasNeverSent(error)) throw error;
      if (failures >= tries) throw isFirst ? new UnreachableError(error.message, { cause: error }) : error;
      const pauseMs = Math.max(waitMs, this.#pauseMs(failures));
      const what = `${asking.what} at ${this.#place.host}`;
      const progress = { attempt: failures + 1, attempts: tries, waitMs: pauseMs };
      this.#options.notify({ kind: "retrying", what, reason: error.reason ?? error.message, ...progress });
      this.usage.retries += 1;
      await this.#pause(pauseMs);
    }
  }

  async #try<Result>(asking: Asking<Result>): Promise<Tried<Result>> {
    const { what, path, query, json, accepts, read, isExport = false } = asking;
    const { signal, idleTimeoutMs } = this.#options;
    const graceMs = json === undefined ? 0 : POST_GRACE_MS;
    const deadline = new RequestDeadline(signal, SILENCES * idleTimeoutMs, graceMs);
    let isHandedOn = false;
    try {
      const response = await this.#send(path, query, deadline.signal, json);
      if (!accepts(response.status)) return await this.#refused(what, response);
      const result = await read(response);
      isHandedOn = isExport;
      if (isExport) {
        deadline.liftDeadline();
        response.body.once("close", () => deadline.close());
      }
      return { kind: "done", result };
    } catch (error) {
      // A POST may have been taken, whatever ends the run.
      if (json === undefined) signal.throwIfAborted();
      return { kind: "failed", error: this.#failure(what, deadline.reason ?? error), waitMs: 0 };
    } finally {
      if (!isHandedOn) deadline.close();
    }
  }

  async #refused(what: string, response: Response): Promise<Failed> {
    const { status, headers, answered } = response;
    const error = await this.#errorOf(what, response);
    const header = headers["retry-after"];
    // A quota that is used up may come as 429 too, and no wait of ours outlasts it.
    const kind = status === 429 && !OUT_OF_CREDITS.has(error.code ?? "") ? "limited" : "failed";
    if (kind === "failed" && header === undefined) return { kind, error, waitMs: 0, status };
    const waitMs = retryAfterMs(header, answered, kind === "limited" ? UNSAID_RETRY_AFTER_MS : 0);
    return { kind, error, waitMs, status };
  }

  async #send(path: string, query: Query, signal: AbortSignal, json?: string): Promise<Response> {
    const { base, apiKey, dispatcher, fresh, clock, idleTimeoutMs } = this.#options;
    const url = serviceUrl(base, path);
    url.search = new URLSearchParams(query).toString();
    const sent = clock.monotonic();
    this.usage.requests += 1;
    const answer = await request(url, {
      method: json === undefined ? "GET" : "POST",
      dispatcher: json === undefined ? dispatcher : (fresh?.() ?? dispatcher),
      signal,
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
    const { statusCode, body } = answer;
    // A layer may add a header to an answer that has it.
    const single = Object.entries(answer.headers).map(([name, value]) => [name, [value].flat()[0]]);
    const headers: Record<string, string | undefined> = Object.fromEntries(single);
    // A body that is given up before its end emits an error event, which may have no listener left.
    body.on("error", () => undefined);
    this.#hasConnected = true;
    const took = clock.monotonic() - sent;
    this.usage.requestMs += took;
    const date = Date.parse(headers["date"] ?? "");
    if (!Number.isNaN(date)) this.#clockOffset = date - clock.now();
    const answered = Number.isNaN(date) ? this.now() : date;
    const asked = Math.floor((answered - took - 1_000) / 1_000) * 1_000;
    return { status: statusCode, headers, body, asked, answered: answered + 1_000 };
  }

  async #errorOf(what: string, response: Response): Promise<ConnectorError> {
    const { status } = response;
    if (isRedirect(status)) {
      response.body.destroy();
      return redirectError(what, this.#place, status, response.headers["location"]);
    }
    const text = await readBody(what, response, ANSWER_BYTES, this.usage).catch(() => undefined);
    return this.refusal(what, status, envelopeCode(toJson(text)));
  }

  /** The error of a request without a usable answer. A failure of this program is thrown as it is. */
  #failure(what: string, cause: unknown): ConnectorError {
    if (isBug(cause)) throw cause;
    return cause instanceof ConnectorError ? cause : networkError(what, this.#place, cause);
  }

  async #pause(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    await this.#wait(() => clock.sleep(ms, signal));
  }

  async #wait(until: () => Promise<void>): Promise<void> {
    const began = this.#options.clock.monotonic();
    await until();
    this.usage.waitedMs += this.#options.clock.monotonic() - began;
  }

  #pauseMs(failures: number): number {
    return this.#options.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  }

  #limit(waitMs: number): void {
    const { limiter, clock, notify } = this.#options;
    limiter.block(waitMs);
    notify({ kind: "limited", until: clock.now() + waitMs });
  }
}

/** Undefined if the bytes are no JSON, or are nested too deep. */
const toJson = (bytes: Buffer | undefined): unknown => bytes && tryParseJson(bytes.toString("utf8"));
