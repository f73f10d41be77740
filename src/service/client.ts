import { type Dispatcher, request } from "undici";
import type { Clock } from "../base/clock.ts";
import { ConnectorError, TransientError } from "../base/errors.ts";
import { isObject, tryParseJson } from "../base/json.ts";
import { serviceUrl } from "../config/address.ts";
import type { Notice } from "../sync/event.ts";
import { type Body, readBody } from "./body.ts";
import { type Deadline, openDeadline } from "./deadline.ts";
import {
  addressError,
  answerWithoutForm,
  envelopeCode,
  isBug,
  isOfInterface,
  isPlainRedirect,
  networkError,
  OUT_OF_CREDITS,
  type Place,
  redirectError,
  statusError,
  WITHOUT_FORM,
  wasNeverSent,
} from "./error-table.ts";
import { dateOf, encodingsOf, isFramed, retryAfterMs, toHeaders } from "./headers.ts";
import type { Limiter } from "./limiter.ts";
import { type Logged, listText, requestText } from "./request-text.ts";
import type { Usage } from "./usage.ts";

const MAX_TRIES = 5;
/** The number of tries until the first connection and the first correct answer. A run that cannot work ends soon. */
const FIRST_TRIES = 2;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;
const DEFAULT_RETRY_AFTER_MS = 10_000;
/** The maximum time that one request waits for its rate limit. */
const MAX_LIMITED_MS = 1_800_000;
/** The maximum length of a decompressed answer (bytes). Exports and results of jobs have other limits. */
const ANSWER_BYTES = 33_554_432;
/** The maximum length of a result (bytes). The user pays for a result, and it may contain all contacts of a company. */
const RESULT_BYTES = 268_435_456;
/** The deadline of a complete answer is this number of idle timeouts. A result is paid for and may be large, so it has more. */
const SILENCES = 2;
const RESULT_SILENCES = 20;
/** After the end of the run, an open POST has this time. Its answer says what the user paid for. */
const POST_GRACE_MS = 5_000;

export type Query = Readonly<Record<string, string>>;

/** The bytes of an answer. The service made the answer between `asked` and `answered` (epoch ms by the service's clock). */
export type Received = { readonly body: Buffer; readonly asked: number; readonly answered: number };

/** An open export. `idleMs`: the maximum time without a row while the reader waits for rows. */
export type Export = Body & {
  readonly idleMs: number;
  readonly usage: Usage;
  readonly ended?: Ended | undefined;
};

/** Logs an ended request. @param found what the answer contains @param error the error of the answer */
type Ended = (found: string | undefined, error?: ConnectorError) => void;

/**
 * The outcome of a POST.
 * - `limited` (429): every request of the key waits, then the POST may be made again.
 * - `unsent`: the POST has not reached the service. `unanswered`: the POST may have reached the service.
 * - `answered`: the field is epoch ms by the service's clock. `value`: JSON or text; undefined: the answer broke off or looks cut.
 */
export type Posted =
  | { readonly kind: "answered"; readonly status: number; readonly value: unknown; readonly answered: number }
  | { readonly kind: "limited" | "unsent" | "unanswered"; readonly error: ConnectorError };

export type ClientOptions = {
  readonly base: URL;
  readonly apiKey: string;
  /** The address of the requests, for errors. */
  readonly place: Place;
  /** A pool of connections. A POST gets a new connection, because a server may close an old connection during the POST. */
  readonly dispatcher: (reuse: boolean) => Dispatcher;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly notify: (notice: Notice) => void;
  readonly usage: Usage;
  readonly idleTimeoutMs: number;
  /** A random number between 0 and 1. It spreads the retries of several runs. */
  readonly random: () => number;
  /** The maximum number of failures of one request. */
  readonly tries?: number;
  /** The maximum time that all requests together wait; undefined: no limit. */
  readonly patienceMs?: number;
  /** Whether each request is logged. */
  readonly isVerbose?: boolean;
};

type Response = Body & Omit<Received, "body"> & { readonly status: number };

type Asking = Logged & {
  /** The body of a POST; undefined: a GET. */
  readonly json?: string;
  readonly accepts: (status: number) => boolean;
  readonly once?: boolean;
  /** The deadline of the answer, in idle timeouts. */
  readonly silences?: number;
};

/** Reads an answer before its deadline, or lifts the deadline. */
type Read<Result> = (response: Response, deadline: Deadline, ended: Ended | undefined) => Promise<Result>;

/** `status`: 0 without an answer. `waitMs`: 0 if the service names no time for the next request. */
type Failed = {
  readonly kind: "limited" | "failed";
  readonly error: ConnectorError;
  readonly status: number;
  readonly waitMs: number;
};

type Tried<Result> = { readonly kind: "done"; readonly result: Result } | Failed;

const isRedirect = (status: number): boolean => status >= 300 && status < 400;

/** Whether an answer may be a result. An error may be a result too. */
const isResult = (status: number): boolean => status !== 429 && !isRedirect(status);

/** Makes the requests of one API key: limits and retries GETs, and turns failures into errors of this program. */
export class Client {
  /** The work of all clients of a run so far. */
  readonly usage: Usage;
  readonly #options: ClientOptions;
  #clockOffset: number | undefined;
  /** Whether any answer has arrived. */
  #hasConnected = false;
  /** Whether any answer had the form of the interface. */
  hasAnswered = false;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.usage = options.usage;
  }

  /** Epoch ms by the service's clock; before the first answer by this machine's clock. */
  now(): number {
    return this.#options.clock.now() + (this.#clockOffset ?? 0);
  }

  /** Ms by this machine, never decreasing. */
  monotonic(): number {
    return this.#options.clock.monotonic();
  }

  /** Whether any answer contained the service's time. */
  get knowsTime(): boolean {
    return this.#clockOffset !== undefined;
  }

  /** The error of a base URL at which the service has no path of the interface. */
  misplaced(what: string, path: string, cause: unknown): ConnectorError {
    const { base, place } = this.#options;
    return addressError(what, place, [serviceUrl(base, path).pathname, base.pathname], cause);
  }

  /** The error of an answer. @param what the end of "Cannot …", such as "collect a company look-up" */
  refusal(what: string, status: number, code: string | undefined): ConnectorError {
    return statusError(what, this.#options.place, status, code);
  }

  /**
   * GETs JSON.
   * @param what the end of "Cannot …" for errors, such as "count people"
   * @param parse returns undefined for JSON of another form, so that the client asks again
   * @param once true: a failure is not tried again, unless the answer names a time
   */
  getJson<Value>(
    what: string,
    path: string,
    query: Query,
    parse: (value: unknown, received: Received) => Value | undefined,
    once = false,
  ): Promise<Value> {
    const asking = { what, path, query, once, accepts: (status: number) => status === 200 };
    return this.#retry(asking, async (response, _deadline, ended) => {
      const body = await readBody(what, response, ANSWER_BYTES, this.usage);
      const value = toJson(body);
      const isError = value === undefined || envelopeCode(value) !== undefined;
      const parsed = isError ? undefined : parse(value, { ...response, body });
      if (parsed === undefined) return this.#unusable(what, response, value ?? body.toString("latin1"));
      this.hasAnswered = true;
      ended?.(listText(asking, value));
      return parsed;
    });
  }

  /**
   * GETs an answer with any status except 429 and redirects.
   * @param read returns undefined for an error, so that the client asks again or throws
   */
  ask<Value>(
    what: string,
    path: string,
    read: (status: number, value: unknown) => Value | undefined,
  ): Promise<Value> {
    const asking = { what, path, accepts: isResult, silences: RESULT_SILENCES };
    return this.#retry(asking, async (response, _deadline, ended) => {
      const value = toValue(await readBody(what, response, RESULT_BYTES, this.usage), true);
      const result = read(response.status, value) ?? this.#unusable(what, response, value);
      this.hasAnswered = true;
      ended?.(undefined);
      return result;
    });
  }

  /** Opens an export. Its reader handles failures after the first byte. @param once as for `getJson` */
  open(what: string, path: string, query: Query, once = false): Promise<Export> {
    // An export without rows may have the status 204 (no content). The count then shows whether rows are missing.
    const accepts = (status: number): boolean => status === 200 || status === 204;
    const asking = { what, path, query, once, accepts, isExport: true };
    return this.#retry(asking, async ({ status, body, headers }, deadline, ended) => {
      deadline.lift();
      const { idleTimeoutMs: idleMs } = this.#options;
      return { body, headers: status === 204 ? {} : headers, idleMs, usage: this.usage, ended };
    });
  }

  /** Waits until a request may start. @throws the reason of the run's end */
  async requestSlot(): Promise<void> {
    const { limiter, signal } = this.#options;
    signal.throwIfAborted();
    await this.#wait(() => limiter.take(signal));
  }

  /** POSTs once, and never a second time. The caller must wait for `requestSlot` before. */
  async post(what: string, path: string, body: unknown): Promise<Posted> {
    const json = JSON.stringify(body);
    const asking = { what, path, json, accepts: isResult, silences: RESULT_SILENCES };
    const tried = await this.#try<Posted>(asking, async (response, _deadline, ended) => {
      const bytes = await readBody(what, response, RESULT_BYTES, this.usage).catch(() => undefined);
      const value = toValue(bytes, hasEnd(response));
      this.hasAnswered ||= isObject(value);
      ended?.(undefined);
      return { kind: "answered", status: response.status, value, answered: this.now() };
    });
    if (tried.kind === "done") return tried.result;
    const { error, status } = tried;
    if (status === 429) return { kind: "limited", error };
    return { kind: wasNeverSent(error) || isPlainRedirect(status) ? "unsent" : "unanswered", error };
  }

  /** Waits before the n-th retry: exponentially longer, with full jitter. */
  backOff(failures: number): Promise<void> {
    return this.#pause(this.#pauseMs(failures));
  }

  async #retry<Result>(asking: Asking, read: Read<Result>): Promise<Result> {
    let [failures, limitedMs] = [0, 0];
    for (;;) {
      await this.requestSlot();
      const tried = await this.#try(asking, read);
      if (tried.kind === "done") return tried.result;
      const { kind, error, waitMs } = tried;
      if (kind === "failed") {
        failures += 1;
        await this.#waitToRetry(asking, tried, failures);
        continue;
      }
      this.#requirePatience(tried);
      limitedMs += waitMs;
      if (limitedMs > MAX_LIMITED_MS) throw new TransientError(error.message, { cause: error, scope: "run" });
    }
  }

  /** @throws the error of a request that is not made again */
  async #waitToRetry({ what, once }: Asking, failed: Failed, failures: number): Promise<void> {
    const { error, waitMs } = failed;
    const isUnsent = wasNeverSent(error);
    if (!(error instanceof TransientError) || (once === true && waitMs === 0 && !isUnsent)) throw error;
    this.#requirePatience(failed);
    const { tries = MAX_TRIES, place, notify } = this.#options;
    const isDown = isUnsent && !this.#hasConnected;
    const isStrange = error.code === WITHOUT_FORM && !this.hasAnswered;
    const attempts = Math.min(tries, isDown || isStrange ? FIRST_TRIES : MAX_TRIES);
    if (failures >= attempts)
      throw isDown ? new TransientError(error.message, { cause: error, scope: "service" }) : error;
    const pauseMs = Math.max(waitMs, this.#pauseMs(failures));
    const progress = { attempt: failures + 1, attempts, waitMs: pauseMs };
    const reason = error.reason ?? error.message;
    notify({ kind: "retrying", what: `${what} at ${place.host}`, reason, ...progress });
    this.usage.retries += 1;
    await this.#pause(pauseMs);
  }

  /** @throws TransientError if the service requires a longer wait than this run allows */
  #requirePatience({ error, waitMs }: Failed): void {
    const { patienceMs = Number.POSITIVE_INFINITY, clock } = this.#options;
    if (waitMs === 0 || this.usage.waitedMs + waitMs <= patienceMs) return;
    const until = new Date(clock.now() + waitMs).toISOString();
    const { message, code } = error;
    const text = `${message}. The service limits requests until ${until} or longer: run it again then`;
    throw new TransientError(text, { cause: error, code, scope: "run" });
  }

  async #try<Result>(asking: Asking, read: Read<Result>): Promise<Tried<Result>> {
    const { what, json, accepts, silences = SILENCES } = asking;
    const { signal, idleTimeoutMs } = this.#options;
    const deadline = openDeadline(signal, silences * idleTimeoutMs, json === undefined ? 0 : POST_GRACE_MS);
    let response: Response | undefined;
    const ended = this.#logOf(asking, () => response?.status);
    try {
      response = await this.#send(asking, deadline.signal);
      response.body.once("close", deadline.close);
      if (!accepts(response.status)) throw await this.#errorOf(what, response);
      return { kind: "done", result: await read(response, deadline, ended) };
    } catch (error) {
      deadline.close();
      // The end of the run does not throw here for a POST, because the service may have accepted the POST.
      if (json === undefined) signal.throwIfAborted();
      const failed = this.#failed(what, deadline.signal.reason ?? error, response);
      ended?.(undefined, failed.error);
      return failed;
    }
  }

  /** Returns a function that logs an ended request; undefined: requests are not logged. */
  #logOf(asking: Asking, statusOf: () => number | undefined): Ended | undefined {
    const { isVerbose, clock, notify } = this.#options;
    if (isVerbose !== true) return undefined;
    const began = clock.monotonic();
    return (found, error) => {
      const seconds = `${((clock.monotonic() - began) / 1000).toFixed(1)} s`;
      const status = error?.reason === undefined && `status ${statusOf()}`;
      const text = [status, found, error?.reason ?? error?.message, seconds].filter(Boolean).join(", ");
      notify({ kind: "log", level: "debug", text: `${requestText(asking)}: ${text}` });
    };
  }

  async #send({ path, query = {}, json }: Asking, signal: AbortSignal): Promise<Response> {
    const { base, apiKey, dispatcher, clock, idleTimeoutMs } = this.#options;
    const isGet = json === undefined;
    const url = serviceUrl(base, path);
    url.search = new URLSearchParams(query).toString();
    const sent = clock.monotonic();
    this.usage.requests += 1;
    const answer = await request(url, {
      method: isGet ? "GET" : "POST",
      dispatcher: dispatcher(isGet),
      signal,
      headers: {
        "x-api-key": apiKey,
        accept: "application/json, application/x-ndjson",
        "accept-encoding": "gzip",
        ...(!isGet && { "content-type": "application/json" }),
      },
      ...(!isGet && { body: json }),
      headersTimeout: idleTimeoutMs,
      bodyTimeout: idleTimeoutMs,
    });
    const { statusCode, body } = answer;
    const headers = toHeaders(answer.headers);
    // A body that is destroyed before its end emits an error event. Without a listener the event would end the process.
    body.on("error", () => undefined);
    this.#hasConnected = true;
    const took = clock.monotonic() - sent;
    this.usage.requestMs += took;
    const date = dateOf(headers);
    if (!Number.isNaN(date)) this.#clockOffset = date - clock.now();
    const answered = Number.isNaN(date) ? this.now() : date;
    const asked = Math.floor((answered - took - 1_000) / 1_000) * 1_000;
    return { status: statusCode, headers, body, asked, answered: answered + 1_000 };
  }

  /** The failure of a request. If the key is limited, all its requests wait. @throws a bug of this program */
  #failed(what: string, cause: unknown, response: Response | undefined): Failed {
    if (isBug(cause)) throw cause;
    const { place, limiter, clock, notify } = this.#options;
    const error = cause instanceof ConnectorError ? cause : networkError(what, place, cause);
    this.hasAnswered ||= isOfInterface(error);
    const { status = 0, headers = {}, answered = 0 } = response ?? {};
    // An account without credits or quota may also get the status 429, but waiting does not help.
    const isLimited = status === 429 && !OUT_OF_CREDITS.has(error.code ?? "");
    const waitMs = retryAfterMs(headers, answered) ?? (isLimited ? DEFAULT_RETRY_AFTER_MS : 0);
    if (!isLimited) return { kind: "failed", error, status, waitMs };
    limiter.block(waitMs);
    notify({ kind: "limited", until: clock.now() + waitMs });
    return { kind: "limited", error, status, waitMs };
  }

  async #errorOf(what: string, response: Response): Promise<ConnectorError> {
    const { status, headers, body } = response;
    if (isRedirect(status)) {
      body.destroy();
      const scope = this.hasAnswered ? undefined : "service";
      return redirectError(what, this.#options.place, status, headers["location"], scope);
    }
    const text = await readBody(what, response, ANSWER_BYTES, this.usage).catch(() => undefined);
    return this.refusal(what, status, envelopeCode(toJson(text)));
  }

  /** @throws the error of an answer without a result */
  #unusable(what: string, { status }: Response, value: unknown): never {
    const code = envelopeCode(value);
    if (status >= 300 || code !== undefined) throw this.refusal(what, status, code);
    throw answerWithoutForm(what, this.#options.place, value, !this.hasAnswered);
  }

  #pause(ms: number): Promise<void> {
    const { clock, signal } = this.#options;
    return this.#wait(() => clock.sleep(ms, signal));
  }

  async #wait(until: () => Promise<void>): Promise<void> {
    const began = this.#options.clock.monotonic();
    await until();
    this.usage.waitedMs += this.#options.clock.monotonic() - began;
  }

  #pauseMs(failures: number): number {
    return this.#options.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
  }
}

/** The JSON of an answer; undefined for other text, or JSON that is nested too deep. */
const toJson = (bytes: Buffer | undefined): unknown => bytes && jsonIn(bytes.toString("utf8"));

const jsonIn = (text: string): unknown => tryParseJson(text.replace(/^\ufeff/, ""));

/** Text that begins like JSON or markup and has no end. */
const CUT = /^\s*(?:[-\d{["]|(?:t|tr|tru|f|fa|fal|fals|n|nu|nul)\s*$|<(?![\s\S]*>\s*$))/;

/** JSON or text; undefined for an empty or cut text. @param isEnded whether the text cannot be cut */
function toValue(bytes: Buffer | undefined, isEnded: boolean): unknown {
  const text = bytes?.toString("utf8") ?? "";
  const json = jsonIn(text);
  if (json !== undefined) return json;
  return text.trim() === "" || (!isEnded && CUT.test(text)) ? undefined : text;
}

/** Whether a cut in the answer causes an error. An answer with a length, chunks or compression shows where it ends. */
const hasEnd = ({ headers }: Response): boolean => isFramed(headers) || encodingsOf(headers).length > 0;
