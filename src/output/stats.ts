import { userMessage } from "../protocol/error-text.ts";
import type { Clock } from "../service/clock.ts";
import { noUsage, type Usage } from "../service/usage.ts";
import { type Coverage, missingDaysOf, withStatus } from "../sync/coverage.ts";
import type { Event, Notice, Spent, StreamReport, StreamState, WindowRecord } from "../sync/event.ts";

type Counts = {
  readonly rows: number;
  readonly seconds: number;
  readonly requests: number;
  readonly retries: number;
  readonly bytes_received: number;
  readonly waited_seconds: number;
};

/** What `--summary` writes: what a run delivered and what that took. Names and units are fixed. */
export type RunSummary = Counts & {
  readonly version: 1;
  readonly started_at: string;
  readonly ended_at: string;
  readonly outcome: "complete" | "incomplete" | "failed" | "interrupted";
  /** At most so many rows of each stream were asked for, and no state is saved; absent: all rows. */
  readonly sample?: number;
  readonly error: string | null;
  readonly time_limit_reached: boolean;
  /** The file or folder that the next run continues from; null: the state went to stdout. */
  readonly saved_to: string | null;
  readonly streams: readonly StreamSummary[];
};

/** One stream of a run: what was delivered, what it took, and where it ended. */
export type StreamSummary = Counts &
  StreamReport & {
    readonly stream: string;
    /** `interrupted`, too, while it is being read. */
    readonly outcome: "complete" | "incomplete" | "interrupted";
    readonly error: string | null;
    readonly expected_rows: number | null;
    /** Each window that the state covers, in their order; none for a stream of jobs. */
    readonly windows: readonly WindowRecord[];
    /** Rows, records and items that `suppress_file` kept back. */
    readonly suppressed: number;
    /** Files that were published; null: none are written. */
    readonly files: number | null;
    readonly state_before: unknown;
    /** The last state whose records had left. */
    readonly state_after: StreamState | null;
    /** What jobs bought in this run; null for other streams. */
    readonly spent: Spent | null;
  };

/** A stream, and what no summary says of it. */
export type CurrentStream = StreamSummary & {
  /** Since its first row; 0: none has come. */
  readonly secondsOfRows: number;
  /** From the starts of its requests to the headers of their answers. */
  readonly requestSeconds: number;
};

/** What a run is waiting for. */
export type Waiting = Extract<Notice, { kind: "limited" | "retrying" }>;

/** Keeps the record of a run, of which progress, logs, metrics and summary are made. */
export class RunStats {
  /** What the run waits for; undefined while records come. */
  waiting: Waiting | undefined;
  readonly #streams: Counted[] = [];
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #startedAt: number;
  readonly #from: Mark;
  /** The first error that was not that of one stream. */
  #error: string | null = null;
  /** Why the run or one of its streams did not end well; undefined: rows could not be proven. */
  readonly failures: unknown[] = [];
  #endings: string[] = [];
  #usage: () => Usage = noUsage;
  readonly #sample: number | undefined;

  /** @param sample how many rows of each stream are enough; undefined: all */
  constructor(clock: Pick<Clock, "now" | "monotonic">, sample?: number) {
    this.#sample = sample;
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
    if (event.kind === "failed" || (event.kind === "close" && !(event.complete && event.error === undefined)))
      this.failures.push(event.error);
    if (event.kind === "log" && event.endOf !== undefined) this.#endings.push(event.text);
    if (event.kind === "open") {
      const none = { error: null, rows: 0, expected_rows: null, suppressed: 0, files: null };
      const rest = { windows: [], spent: null, state_before: event.before ?? null, state_after: null };
      const summary: Noted = { stream: event.stream, outcome: "interrupted", ...none, ...rest };
      this.#streams.push({ summary, from: this.#mark() });
    }
    const stream = this.#streams.at(-1);
    if (stream !== undefined && "stream" in event && event.stream === stream.summary.stream)
      this.#count(stream, event);
  }

  /** What streams say of their own ends, each once. */
  takeEndings(): readonly string[] {
    return this.#endings.splice(0);
  }

  /** A checkpoint whose records have left. */
  noteSaved(name: string, state: StreamState): void {
    const stream = this.#streamNamed(name);
    if (stream !== undefined) stream.summary.state_after = state;
  }

  /** More files of a stream can be seen by now, which hold these rows; 0: it is written into files. */
  notePublished(name: string, files: number, rows: number): void {
    const stream = this.#streamNamed(name);
    if (stream === undefined) return;
    stream.summary.files = (stream.summary.files ?? 0) + files;
    stream.published = (stream.published ?? 0) + rows;
  }

  /** The stream that is being read, or was last. */
  get current(): CurrentStream | undefined {
    const stream = this.#streams.at(-1);
    if (stream === undefined) return undefined;
    const to = stream.to ?? this.#mark();
    const requestSeconds = rounded((to.usage.requestMs - stream.from.usage.requestMs) / 1000);
    const secondsOfRows =
      stream.firstRow === undefined ? 0 : (this.#clock.monotonic() - stream.firstRow) / 1000;
    const rows = stream.to === undefined ? undefined : stream.published;
    return { ...this.#summaryOf(stream, rows), secondsOfRows, requestSeconds };
  }

  /** @param savedTo the file or folder that the next run continues from */
  summary(isInterrupted: boolean, savedTo: string | null): RunSummary {
    const streams = this.#streams.map((stream) => this.#summaryOf(stream, stream.published));
    const isComplete = streams.every(({ outcome }) => outcome === "complete");
    const ended = this.#error !== null ? "failed" : isComplete ? "complete" : "incomplete";
    return {
      version: 1,
      started_at: new Date(this.#startedAt).toISOString(),
      ended_at: new Date(this.#clock.now()).toISOString(),
      outcome: isInterrupted ? "interrupted" : ended,
      ...(this.#sample !== undefined && { sample: this.#sample }),
      error: this.#error,
      time_limit_reached: streams.some((stream) => stream.time_limit_reached),
      rows: streams.reduce((sum, { rows }) => sum + rows, 0),
      ...countsBetween(this.#from, this.#mark()),
      saved_to: this.#sample === undefined ? savedTo : null,
      streams,
    };
  }

  #mark(): Mark {
    return { at: this.#clock.monotonic(), usage: { ...this.#usage() } };
  }

  #streamNamed(name: string): Counted | undefined {
    return this.#streams.findLast(({ summary }) => summary.stream === name);
  }

  #count(stream: Counted, event: Event): void {
    const { summary } = stream;
    switch (event.kind) {
      case "estimate":
        summary.expected_rows = event.rows;
        break;
      case "records":
        stream.firstRow ??= this.#clock.monotonic();
        summary.rows += event.lines.length;
        summary.suppressed += event.facts?.suppressed ?? 0;
        break;
      case "checkpoint":
        summary.windows = [...summary.windows, ...(event.read ?? [])];
        summary.spent = event.spent ?? summary.spent;
        break;
      case "close":
        stream.to = this.#mark();
        stream.report = event.report;
        summary.outcome = event.complete && event.error === undefined ? "complete" : "incomplete";
        summary.error = event.error === undefined ? null : userMessage(event.error);
        break;
    }
  }

  /** @param rows that are in files; undefined: those that came */
  #summaryOf({ summary, from, to = this.#mark(), report }: Counted, rows?: number): StreamSummary {
    const { state_before, state_after, spent, ...noted } = summary;
    const saved = reportIn(state_after);
    const ended = { ...(report ?? saved), ...(state_after !== null && { saved_up_to: saved.saved_up_to }) };
    const counted = { ...noted, rows: rows ?? noted.rows };
    return { ...counted, ...countsBetween(from, to), ...ended, state_before, state_after, spent };
  }
}

/** What the last state says of a stream that has reported nothing itself. */
function reportIn(state: StreamState | null): StreamReport {
  const { days = [], discoveredAt } = state ?? {};
  return {
    missing_days: missingDaysOf(days as Coverage),
    recheck: withStatus(days as Coverage, "again"),
    time_limit_reached: false,
    saved_up_to: typeof discoveredAt === "string" ? discoveredAt : null,
  };
}

/** A moment (monotonic ms), and what the service was asked until then. */
type Mark = { readonly at: number; readonly usage: Usage };

/** What events say; the rest of a summary follows from it. */
type Noted = {
  -readonly [Name in Exclude<keyof StreamSummary, Following> | "rows"]: StreamSummary[Name];
};

type Following = keyof Counts | keyof StreamReport;

type Counted = {
  readonly summary: Noted;
  readonly from: Mark;
  to?: Mark;
  /** Monotonic ms. */
  firstRow?: number;
  /** Rows in files that can be seen. */
  published?: number;
  report?: StreamReport | undefined;
};

const countsBetween = (from: Mark, to: Mark): Omit<Counts, "rows"> => ({
  seconds: rounded((to.at - from.at) / 1000),
  requests: to.usage.requests - from.usage.requests,
  retries: to.usage.retries - from.usage.retries,
  bytes_received: to.usage.bytesReceived - from.usage.bytesReceived,
  waited_seconds: rounded((to.usage.waitedMs - from.usage.waitedMs) / 1000),
});

/** Seconds to the millisecond. */
const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;
