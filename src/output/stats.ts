import type { Clock } from "../base/clock.ts";
import { userMessage } from "../protocol/error-text.ts";
import { secondsUntil } from "../protocol/language.ts";
import { noUsage, type Usage } from "../service/usage.ts";
import { type Coverage, missingDaysOf, withStatus } from "../sync/coverage.ts";
import type { Event, Spent, StreamState, WindowRecord } from "../sync/event.ts";
import type { Destination, Saved } from "./sink.ts";

/** The cost of a run or a stream. */
type Cost = {
  readonly seconds: number;
  readonly requests: number;
  readonly retries: number;
  readonly bytes_received: number;
  readonly waited_seconds: number;
  /** From the starts of requests to the headers of their answers, added up. */
  readonly request_seconds: number;
};

/** The object that `--summary` writes: the rows of a run and their cost. Names and units are fixed. */
export type RunSummary = Cost & {
  readonly version: 1;
  readonly started_at: string;
  readonly ended_at: string;
  /** `paused`: `max_run_seconds` ended it, and nothing failed. */
  readonly outcome: "complete" | "paused" | "incomplete" | "failed" | "interrupted";
  /** At most this many rows of each stream were read, and no state is saved; absent: all rows. */
  readonly sample?: number;
  readonly error: string | null;
  readonly time_limit_reached: boolean;
  readonly rows: number;
  /** The file or folder that the next run continues from; null: the state went to stdout. */
  readonly saved_to: string | null;
  readonly streams: readonly StreamSummary[];
};

/** One stream of a run: what was delivered, what it took, and where it ended. */
export type StreamSummary = Cost & {
  readonly stream: string;
  /** `interrupted`, too, while it is being read. */
  readonly outcome: "complete" | "paused" | "incomplete" | "interrupted";
  readonly error: string | null;
  /** Those in files that can be seen, or those that came where none are written. */
  readonly rows: number;
  /** Those among the rows that came whose days were read again in turn. */
  readonly reread_rows: number;
  readonly expected_rows: number | null;
  /** Each window that the state covers, in their order; none for a stream of jobs. */
  readonly windows: readonly WindowRecord[];
  /** Exports that lacked rows or broke off, so that their days were read again. */
  readonly cut_exports: number;
  /** Rows, records and items that `suppress_file` kept back. */
  readonly suppressed: number;
  readonly missing_days: readonly string[];
  /** Ranges of days that the next run checks again. */
  readonly recheck: readonly (readonly [first: string, last: string])[];
  readonly time_limit_reached: boolean;
  /** Up to where all rows are delivered: a day or a moment. */
  readonly saved_up_to: string | null;
  /** Files that were published, and their bytes; null: none are written. */
  readonly files: number | null;
  readonly file_bytes: number | null;
  readonly state_before: unknown;
  /** The last state whose records had left. */
  readonly state_after: StreamState | null;
  /** The purchases of jobs in this run; null for other streams. */
  readonly spent: Spent | null;
};

/** A stream, and the rows that came, also those that no visible file has yet. */
export type CurrentStream = StreamSummary & { readonly arrived: number };

/** A moment (monotonic ms), and what the service was asked until then. */
type Mark = { readonly at: number; readonly usage: Usage };

type Closed = Extract<Event, { kind: "close" }>;

/** The part of a summary that events add up. */
type Sums =
  | "reread_rows"
  | "expected_rows"
  | "windows"
  | "cut_exports"
  | "suppressed"
  | "files"
  | "file_bytes"
  | "state_after"
  | "spent";

/** A stream's first and last event, and the sums of those between. */
type StreamRecord = {
  readonly opened: Extract<Event, { kind: "open" }>;
  readonly from: Mark;
  closed?: Closed;
  to?: Mark;
  arrived: number;
  /** Rows in files that can be seen. */
  published: number;
  readonly sums: { -readonly [Name in Sums]: StreamSummary[Name] };
};

/**
 * Days that are read again, and the rows that they lacked; 0: unknown. `to`: the last day; null: up to now. `arrived`: the
 * rows of the stream until then.
 */
type Cut = {
  readonly days: string;
  readonly to: string | null;
  readonly missing: number;
  readonly arrived: number;
};

/** Keeps the record of a run for progress, logs, metrics and the summary. */
export class RunStats {
  /** The place that takes records and state. */
  destination: Destination = {};
  readonly #streams: StreamRecord[] = [];
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #startedAt: number;
  readonly #from: Mark;
  /** The errors that are not those of one stream. */
  readonly #errors: unknown[] = [];
  #usage: () => Usage = noUsage;
  #wait: { readonly until: number; readonly why: string } | undefined;
  /** Cut ranges of days that are not read to their end yet. Parts of a range follow it. */
  #cuts: readonly Cut[] = [];

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
    this.#startedAt = clock.now();
    this.#from = this.#mark();
  }

  /** @param usage of the session with the service */
  measure(usage: () => Usage): void {
    this.#usage = usage;
  }

  note(event: Event): void {
    if (event.kind === "failed") this.#errors.push(event.error);
    if (event.kind === "open") this.#open(event);
    this.#noteWait(event);
    const stream = this.#streams.at(-1);
    if (stream !== undefined) this.#count(stream, event);
  }

  /** How long requests still wait, and why; undefined: none waits. */
  get wait(): { readonly seconds: number; readonly why: string } | undefined {
    const seconds = this.#wait === undefined ? 0 : secondsUntil(this.#wait.until, this.#clock.now());
    return seconds === 0 || this.#wait === undefined ? undefined : { seconds, why: this.#wait.why };
  }

  /** The days that are read again now, and the rows that they lack still; undefined: none are. */
  get cut(): Pick<Cut, "days" | "missing"> | undefined {
    const cut = this.#cuts.at(-1);
    if (cut === undefined || cut.missing === 0) return cut;
    const missing = cut.missing + cut.arrived - (this.#streams.at(-1)?.arrived ?? 0);
    return missing > 0 ? { days: cut.days, missing } : undefined;
  }

  /** @param saved of the stream that is being read */
  noteSaved(saved: Saved | undefined): void {
    const stream = this.#streams.at(-1);
    if (stream === undefined || saved === undefined) return;
    const { sums } = stream;
    sums.state_after = saved.state ?? sums.state_after;
    if (sums.files !== null) sums.files += saved.files ?? 0;
    if (sums.file_bytes !== null) sums.file_bytes += saved.bytes ?? 0;
    stream.published += saved.rows ?? 0;
  }

  /** Why the run and its streams did not end well; undefined: rows could not be proven. */
  get failures(): readonly unknown[] {
    const closed = this.#streams.flatMap((stream) => stream.closed ?? []);
    return [...this.#errors, ...closed.filter((event) => !isWhole(event)).map(({ error }) => error)];
  }

  /** The stream that is being read, or was last. */
  get current(): CurrentStream | undefined {
    const stream = this.#streams.at(-1);
    if (stream === undefined) return undefined;
    return { ...summaryOf(stream, stream.to ?? this.#mark()), arrived: stream.arrived };
  }

  /** @param savedTo the file or folder that the next run continues from */
  summary(isInterrupted: boolean, savedTo: string | null): RunSummary {
    const now = this.#mark();
    const { limit: sample } = this.destination;
    const streams = this.#streams.map((stream) => summaryOf(stream, stream.to ?? now));
    const outcomes = new Set(streams.map(({ outcome }) => outcome));
    const [error] = this.#errors;
    const isWhole = !outcomes.has("incomplete") && !outcomes.has("interrupted");
    const ended = isWhole ? (outcomes.has("paused") ? "paused" : "complete") : "incomplete";
    return {
      version: 1,
      started_at: new Date(this.#startedAt).toISOString(),
      ended_at: new Date(this.#clock.now()).toISOString(),
      outcome: isInterrupted ? "interrupted" : error !== undefined ? "failed" : ended,
      ...(sample !== undefined && { sample }),
      error: error === undefined ? null : userMessage(error),
      time_limit_reached: streams.some((stream) => stream.time_limit_reached),
      rows: streams.reduce((sum, { rows }) => sum + rows, 0),
      ...costBetween(this.#from, now),
      saved_to: savedTo,
      streams,
    };
  }

  #mark(): Mark {
    return { at: this.#clock.monotonic(), usage: { ...this.#usage() } };
  }

  #open(opened: StreamRecord["opened"]): void {
    const files = this.destination.output === undefined ? null : 0;
    const none = { expected_rows: null, state_after: null, spent: null };
    const sums = {
      ...none,
      reread_rows: 0,
      windows: [],
      cut_exports: 0,
      suppressed: 0,
      files,
      file_bytes: files,
    };
    this.#cuts = [];
    this.#streams.push({ opened, from: this.#mark(), arrived: 0, published: 0, sums });
  }

  #noteWait(event: Event): void {
    if (event.kind === "limited") this.#waitUntil(event.until, "rate limit");
    if (event.kind === "retrying")
      this.#waitUntil(this.#clock.now() + event.waitMs, `try ${event.attempt} of ${event.attempts}`);
  }

  /** The longest wait counts. */
  #waitUntil(until: number, why: string): void {
    if (until > (this.#wait?.until ?? 0)) this.#wait = { until, why };
  }

  #count(stream: StreamRecord, event: Event): void {
    const { sums } = stream;
    if (event.kind === "estimate") sums.expected_rows = event.rows;
    if (event.kind === "records") {
      stream.arrived += event.lines.length;
      if (event.why === "turn") sums.reread_rows += event.lines.length;
      sums.suppressed += event.suppressed ?? 0;
    }
    if (event.kind === "cut") {
      sums.cut_exports += event.isExport ? 1 : 0;
      const { days, to, counted, shown } = event;
      const cut = { days, to, missing: Math.max(0, (counted ?? 0) - shown), arrived: stream.arrived };
      // Jobs may read the rows of another stream, and no checkpoint of theirs says when.
      if (event.stream === stream.opened.stream)
        this.#cuts = [...this.#cuts.filter((one) => one.days !== days), cut];
    }
    if (event.kind === "checkpoint") {
      for (const { discovered_to: to } of event.read ?? [])
        this.#cuts = this.#cuts.filter((cut) => to !== null && (cut.to === null || cut.to > to));
      sums.windows = [...sums.windows, ...(event.read ?? [])];
      sums.spent = event.spent ?? sums.spent;
    }
    if (event.kind === "close") [stream.closed, stream.to] = [event, this.#mark()];
  }
}

function summaryOf(
  { opened, closed, from, arrived, published, sums }: StreamRecord,
  until: Mark,
): StreamSummary {
  const { days = [], discoveredAt = null } = (sums.state_after ?? {}) as {
    days?: Coverage;
    discoveredAt?: string;
  };
  return {
    stream: opened.stream,
    outcome: closed === undefined ? "interrupted" : outcomeOf(closed),
    error: closed?.error === undefined ? null : userMessage(closed.error),
    rows: sums.files === null ? arrived : published,
    ...sums,
    missing_days: missingDaysOf(days),
    recheck: withStatus(days, "again"),
    time_limit_reached: closed?.isTimeUp === true,
    saved_up_to: discoveredAt,
    state_before: opened.before ?? null,
    ...costBetween(from, until),
  };
}

function outcomeOf(closed: Closed): StreamSummary["outcome"] {
  if (!isWhole(closed)) return "incomplete";
  return closed.isTimeUp === true ? "paused" : "complete";
}

const isWhole = ({ complete, error }: Closed): boolean => complete && error === undefined;

const costBetween = (from: Mark, to: Mark): Cost => ({
  seconds: rounded(to.at - from.at),
  requests: to.usage.requests - from.usage.requests,
  retries: to.usage.retries - from.usage.retries,
  bytes_received: to.usage.bytesReceived - from.usage.bytesReceived,
  waited_seconds: rounded(to.usage.waitedMs - from.usage.waitedMs),
  request_seconds: rounded(to.usage.requestMs - from.usage.requestMs),
});

/** Seconds to the millisecond. */
const rounded = (ms: number): number => Math.round(ms) / 1000;
