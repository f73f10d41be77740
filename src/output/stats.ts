import { userMessage } from "../protocol/error-text.ts";
import type { Clock } from "../service/clock.ts";
import { noUsage, type Usage } from "../service/usage.ts";
import { type Coverage, missingDaysOf, withStatus } from "../sync/coverage.ts";
import type { Event, Notice, Spent, StreamState, WindowRecord } from "../sync/event.ts";

/** The cost of a run or a stream. */
type Cost = {
  readonly seconds: number;
  readonly requests: number;
  readonly retries: number;
  readonly bytes_received: number;
  readonly waited_seconds: number;
};

/** The object that `--summary` writes: the rows of a run and their cost. Names and units are fixed. */
export type RunSummary = Cost & {
  readonly version: 1;
  readonly started_at: string;
  readonly ended_at: string;
  readonly outcome: "complete" | "incomplete" | "failed" | "interrupted";
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
  readonly outcome: "complete" | "incomplete" | "interrupted";
  readonly error: string | null;
  /** Those in files that can be seen, or those that came where none are written. */
  readonly rows: number;
  readonly expected_rows: number | null;
  /** Each window that the state covers, in their order; none for a stream of jobs. */
  readonly windows: readonly WindowRecord[];
  /** Rows, records and items that `suppress_file` kept back. */
  readonly suppressed: number;
  readonly missing_days: readonly string[];
  /** Ranges of days that the next run checks again. */
  readonly recheck: readonly (readonly [first: string, last: string])[];
  readonly time_limit_reached: boolean;
  /** Up to where all rows are delivered: a day or a moment. */
  readonly saved_up_to: string | null;
  /** Files that were published; null: none are written. */
  readonly files: number | null;
  readonly state_before: unknown;
  /** The last state whose records had left. */
  readonly state_after: StreamState | null;
  /** The purchases of jobs in this run; null for other streams. */
  readonly spent: Spent | null;
};

/** A stream, and what no summary has of it. */
export type CurrentStream = StreamSummary & {
  /** Rows that came, also those that no visible file has yet. */
  readonly arrived: number;
  /** From the starts of its requests to the headers of their answers. */
  readonly requestSeconds: number;
};

/** The event for which a run waits. */
export type Waiting = Extract<Notice, { kind: "limited" | "retrying" }>;

/** A moment (monotonic ms), and what the service was asked until then. */
type Mark = { readonly at: number; readonly usage: Usage };

type Counted = {
  readonly summary: { -readonly [Name in keyof Omit<StreamSummary, keyof Cost>]: StreamSummary[Name] };
  readonly from: Mark;
  to?: Mark;
  arrived: number;
};

/** Keeps the record of a run, of which progress, logs, metrics and summary are made. */
export class RunStats {
  /** How many rows of each stream are enough; undefined: all. */
  sample: number | undefined;
  /** Undefined while records come. */
  waiting: Waiting | undefined;
  /** Why the run or one of its streams did not end well; undefined: rows could not be proven. */
  readonly failures: unknown[] = [];
  readonly #streams: Counted[] = [];
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #startedAt: number;
  readonly #from: Mark;
  /** The first error that was not that of one stream. */
  #error: string | null = null;
  #finalLines: string[] = [];
  #usage: () => Usage = noUsage;

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
    if (event.kind === "limited" || event.kind === "retrying") this.waiting = event;
    if (event.kind === "records") this.waiting = undefined;
    if (event.kind === "failed") this.#error ??= userMessage(event.error);
    if (event.kind === "failed" || (event.kind === "close" && !isWhole(event)))
      this.failures.push(event.error);
    if (event.kind === "log" && event.endOf !== undefined) this.#finalLines.push(event.text);
    if (event.kind === "open")
      this.#streams.push({ summary: summaryOf(event), from: this.#mark(), arrived: 0 });
    const stream = this.#streams.at(-1);
    if (stream !== undefined && "stream" in event && event.stream === stream.summary.stream)
      this.#count(stream, event);
  }

  /** The texts in which streams describe their ends, each once. */
  takeFinalLines(): readonly string[] {
    return this.#finalLines.splice(0);
  }

  /**
   * A checkpoint whose records have left; null: none has.
   * @param more files that can be seen by now, with these rows; undefined: none are written
   */
  noteSaved(
    name: string,
    state: StreamState | null,
    more?: { readonly files: number; readonly rows: number },
  ): void {
    const summary = this.#streams.findLast((one) => one.summary.stream === name)?.summary;
    if (summary === undefined) return;
    if (state !== null) {
      const { discoveredAt: until } = state;
      summary.state_after = state;
      summary.saved_up_to = typeof until === "string" ? until : null;
    }
    if (more === undefined) return;
    summary.files = (summary.files ?? 0) + more.files;
    summary.rows += more.rows;
  }

  /** The stream that is being read, or was last. */
  get current(): CurrentStream | undefined {
    const stream = this.#streams.at(-1);
    if (stream === undefined) return undefined;
    const { summary, from, to = this.#mark(), arrived } = stream;
    const requestSeconds = rounded(to.usage.requestMs - from.usage.requestMs);
    return { ...summary, ...costBetween(from, to), arrived, requestSeconds };
  }

  /** @param savedTo the file or folder that the next run continues from */
  summary(isInterrupted: boolean, savedTo: string | null): RunSummary {
    const now = this.#mark();
    const streams = this.#streams.map(({ summary, from, to }) => ({
      ...summary,
      ...costBetween(from, to ?? now),
    }));
    const isComplete = streams.every(({ outcome }) => outcome === "complete");
    const ended = this.#error !== null ? "failed" : isComplete ? "complete" : "incomplete";
    return {
      version: 1,
      started_at: new Date(this.#startedAt).toISOString(),
      ended_at: new Date(this.#clock.now()).toISOString(),
      outcome: isInterrupted ? "interrupted" : ended,
      ...(this.sample !== undefined && { sample: this.sample }),
      error: this.#error,
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

  #count(stream: Counted, event: Event): void {
    const { summary } = stream;
    if (event.kind === "estimate") summary.expected_rows = event.rows;
    if (event.kind === "records") {
      stream.arrived += event.lines.length;
      if (summary.files === null) summary.rows = stream.arrived;
      summary.suppressed += event.suppressed ?? 0;
    }
    if (event.kind === "checkpoint") {
      const days = (event.state["days"] ?? []) as Coverage;
      summary.missing_days = missingDaysOf(days);
      summary.recheck = withStatus(days, "again");
      summary.windows = [...summary.windows, ...(event.read ?? [])];
      summary.spent = event.spent ?? summary.spent;
    }
    if (event.kind === "close") {
      stream.to = this.#mark();
      summary.time_limit_reached = event.isTimeUp === true;
      summary.outcome = isWhole(event) ? "complete" : "incomplete";
      summary.error = event.error === undefined ? null : userMessage(event.error);
    }
  }
}

/** The summary of a stream that begins. */
const summaryOf = ({ stream, before }: Extract<Event, { kind: "open" }>): Counted["summary"] => ({
  stream,
  outcome: "interrupted",
  error: null,
  rows: 0,
  expected_rows: null,
  windows: [],
  suppressed: 0,
  missing_days: [],
  recheck: [],
  time_limit_reached: false,
  saved_up_to: null,
  files: null,
  state_before: before ?? null,
  state_after: null,
  spent: null,
});

const isWhole = (event: Extract<Event, { kind: "close" }>): boolean =>
  event.complete && event.error === undefined;

const costBetween = (from: Mark, to: Mark): Cost => ({
  seconds: rounded(to.at - from.at),
  requests: to.usage.requests - from.usage.requests,
  retries: to.usage.retries - from.usage.retries,
  bytes_received: to.usage.bytesReceived - from.usage.bytesReceived,
  waited_seconds: rounded(to.usage.waitedMs - from.usage.waitedMs),
});

/** Seconds to the millisecond. */
const rounded = (ms: number): number => Math.round(ms) / 1000;
