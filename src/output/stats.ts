import type { Clock } from "../base/clock.ts";
import { userMessage } from "../protocol/error-text.ts";
import { secondsUntil } from "../protocol/language.ts";
import { noUsage, type Usage } from "../service/usage.ts";
import { type Coverage, missingDaysOf, withStatus } from "../sync/coverage.ts";
import type { Event, EventOf, Spent, StreamState, WindowRecord } from "../sync/event.ts";
import type { Destination, Saved } from "./sink.ts";

type Cost = {
  readonly seconds: number;
  readonly requests: number;
  readonly retries: number;
  readonly bytes_received: number;
  readonly waited_seconds: number;
  /** The sum over all requests, each from its start to the headers of its answer. */
  readonly request_seconds: number;
};

/** The object that `--summary` writes. Its names and units never change. */
export type RunSummary = Cost & {
  readonly version: 1;
  readonly started_at: string;
  readonly ended_at: string;
  /** `paused`: `max_run_seconds` ended the run, and nothing failed. */
  readonly outcome: "complete" | "paused" | "incomplete" | "failed" | "interrupted";
  /** The run read at most this number of rows of each stream, and saved no state; absent: all rows. */
  readonly sample?: number;
  readonly error: string | null;
  readonly time_limit_reached: boolean;
  readonly rows: number;
  /** The file from which the next run continues; null: the state went to stdout. */
  readonly saved_to: string | null;
  readonly streams: readonly StreamSummary[];
};

export type StreamSummary = Cost & Readonly<StreamFacts> & ReturnType<typeof stateFacts>;

type StreamFacts = {
  stream: string;
  /** `interrupted` also means that the run still reads the stream. */
  outcome: "complete" | "paused" | "incomplete" | "interrupted";
  error: string | null;
  /** The rows in visible files; without files, the rows that arrived. */
  rows: number;
  /** The rows that arrived although an earlier run had proven their days (`reread_days`). */
  reread_rows: number;
  expected_rows: number | null;
  /** Each range of days that the state covers, in the order of reading; empty for a stream of jobs. */
  windows: readonly WindowRecord[];
  /** The exports that sent a part of their rows. The program reads their days again. */
  cut_exports: number;
  /** The exports that sent no row, or all rows and an error. The program reads their days again. */
  failed_exports: number;
  /** The rows, records and items that the program removed because of `suppress_file`. */
  suppressed: number;
  time_limit_reached: boolean;
  /** The number of published files, and their bytes; null: the run writes no files. */
  files: number | null;
  file_bytes: number | null;
  state_before: unknown;
  /** The last state whose records have left the program. */
  state_after: StreamState | null;
  /** The purchases of jobs in this run; null for streams without jobs. */
  spent: Spent | null;
};

/** A moment (monotonic ms), and the requests until then. */
type Mark = { readonly at: number; readonly usage: Usage };

/** A stream between its start and its end. */
type StreamRecord = { readonly from: Mark; to?: Mark; arrived: number; readonly facts: StreamFacts };

/** A range of days that the program reads again. */
type Cut = {
  readonly days: string;
  /** The last day; null: up to now. */
  readonly to: string | null;
  /** The range lacks no row once the stream has this number of rows; null: unknown. */
  readonly completeAt: number | null;
};

/** Keeps the record of a run for progress, logs, metrics and the summary. */
export class RunStats {
  destination: Destination = {};
  /** The reasons why the run and its streams failed; undefined: the program could not prove rows. */
  readonly failures: unknown[] = [];
  readonly #streams: StreamRecord[] = [];
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #startedAt: number;
  readonly #from: Mark;
  /** The first failure of the run itself. */
  #error: unknown;
  #usage: () => Usage = noUsage;
  #wait = { until: 0, why: "" };
  /** The ranges of days that the program must read again. A range is before its parts. */
  #cuts: readonly Cut[] = [];

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
    this.#startedAt = clock.now();
    this.#from = this.#mark();
  }

  measure(usage: () => Usage): void {
    this.#usage = usage;
  }

  note(event: Event): void {
    if (event.kind === "limited") this.#waitUntil(event.until, "rate limit");
    if (event.kind === "retrying")
      this.#waitUntil(this.#clock.now() + event.waitMs, `try ${event.attempt} of ${event.attempts}`);
    if (event.kind === "failed") {
      this.failures.push(event.error);
      this.#error ??= event.error;
    }
    if (event.kind === "open") this.#open(event);
    const stream = this.#streams.at(-1);
    if (stream !== undefined) this.#count(stream, event);
  }

  /** The seconds for which requests still wait, and the reason; undefined: no request waits. */
  get wait(): { readonly seconds: number; readonly why: string } | undefined {
    const seconds = secondsUntil(this.#wait.until, this.#clock.now());
    return seconds === 0 ? undefined : { seconds, why: this.#wait.why };
  }

  /** The days that the program reads again now, and the rows that they lack (null: unknown); undefined: none. */
  get cut(): { readonly days: string; readonly missing: number | null } | undefined {
    const cut = this.#cuts.at(-1);
    if (cut === undefined) return undefined;
    const arrived = this.#streams.at(-1)?.arrived ?? 0;
    const missing = cut.completeAt === null ? null : cut.completeAt - arrived;
    return missing === null || missing > 0 ? { days: cut.days, missing } : undefined;
  }

  /** Adds the saved rows and files to the stream that the run reads now. */
  noteSaved(saved: Saved | undefined): void {
    const facts = this.#streams.at(-1)?.facts;
    if (facts === undefined || saved === undefined) return;
    if (saved.state !== null) facts.state_after = saved.state;
    if (facts.files === null || facts.file_bytes === null) return;
    facts.rows += saved.rows ?? 0;
    facts.files += saved.files ?? 0;
    facts.file_bytes += saved.bytes ?? 0;
  }

  /** The stream that the run reads now, or the last stream. `arrived`: its rows, also without a visible file. */
  get current(): (StreamSummary & { readonly arrived: number }) | undefined {
    const stream = this.#streams.at(-1);
    return stream && { ...summaryOf(stream, this.#mark()), arrived: stream.arrived };
  }

  /** @param savedTo the file from which the next run continues */
  summary(isInterrupted: boolean, savedTo: string | null): RunSummary {
    const now = this.#mark();
    const { limit: sample } = this.destination;
    const streams = this.#streams.map((stream) => summaryOf(stream, now));
    const outcomes = new Set(streams.map(({ outcome }) => outcome));
    const isWhole = !outcomes.has("incomplete") && !outcomes.has("interrupted");
    const ended = isWhole ? (outcomes.has("paused") ? "paused" : "complete") : "incomplete";
    return {
      version: 1,
      started_at: new Date(this.#startedAt).toISOString(),
      ended_at: new Date(this.#clock.now()).toISOString(),
      outcome: isInterrupted ? "interrupted" : this.#error !== undefined ? "failed" : ended,
      ...(sample !== undefined && { sample }),
      error: this.#error === undefined ? null : userMessage(this.#error),
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

  #open({ stream, before = null }: EventOf<"open">): void {
    const files = this.destination.output === undefined ? null : 0;
    const facts: StreamFacts = {
      ...{ stream, outcome: "interrupted", error: null, time_limit_reached: false },
      ...{ rows: 0, reread_rows: 0, expected_rows: null, windows: [], suppressed: 0 },
      ...{ cut_exports: 0, failed_exports: 0 },
      ...{ files, file_bytes: files, spent: null, state_before: before, state_after: null },
    };
    this.#cuts = [];
    this.#streams.push({ from: this.#mark(), arrived: 0, facts });
  }

  /** Keeps the wait that ends last. */
  #waitUntil(until: number, why: string): void {
    if (until > this.#wait.until) this.#wait = { until, why };
  }

  #count(stream: StreamRecord, event: Event): void {
    const { facts } = stream;
    if (event.kind === "estimate") facts.expected_rows = event.rows;
    if (event.kind === "records") {
      const { length } = event.lines;
      stream.arrived += length;
      if (facts.files === null) facts.rows += length;
      if (event.why === "turn") facts.reread_rows += length;
      facts.suppressed += event.suppressed ?? 0;
    }
    if (event.kind === "cut") this.#cut(stream, event);
    if (event.kind === "checkpoint") {
      for (const { discovered_to: to } of event.read ?? [])
        this.#cuts = this.#cuts.filter((cut) => to !== null && (cut.to === null || cut.to > to));
      facts.windows = [...facts.windows, ...(event.read ?? [])];
      facts.spent = event.spent ?? facts.spent;
    }
    if (event.kind === "close") this.#close(stream, event);
  }

  #cut({ facts, arrived }: StreamRecord, event: EventOf<"cut">): void {
    const { stream, days, to, counted, shown, isExport, isCut } = event;
    if (isExport) facts[isCut ? "cut_exports" : "failed_exports"] += 1;
    // A stream of jobs may read the rows of another stream. Its checkpoints do not say when these rows are read again.
    if (stream !== facts.stream) return;
    const completeAt = counted !== null && counted > shown ? arrived + counted - shown : null;
    this.#cuts = [...this.#cuts.filter((cut) => cut.days !== days), { days, to, completeAt }];
  }

  #close(stream: StreamRecord, { complete, error, isTimeUp = false }: EventOf<"close">): void {
    const isWhole = complete && error === undefined;
    if (!isWhole) this.failures.push(error);
    stream.to = this.#mark();
    stream.facts.outcome = isWhole ? (isTimeUp ? "paused" : "complete") : "incomplete";
    stream.facts.error = error === undefined ? null : userMessage(error);
    stream.facts.time_limit_reached = isTimeUp;
  }
}

/** @param now the end of a stream that the run still reads */
const summaryOf = ({ facts, from, to }: StreamRecord, now: Mark): StreamSummary => ({
  ...facts,
  ...stateFacts(facts.state_after),
  ...costBetween(from, to ?? now),
});

/**
 * The facts that a stream's state contains. `recheck`: the ranges of days that the next run checks again.
 * `saved_up_to`: the day or the moment up to which all rows are delivered.
 */
function stateFacts(state: StreamState | null) {
  const { days = [], discoveredAt = null } = (state ?? {}) as { days?: Coverage; discoveredAt?: string };
  return {
    missing_days: missingDaysOf(days),
    recheck: withStatus(days, "again"),
    saved_up_to: discoveredAt,
  } as const;
}

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
