import { noUsage, type Usage } from "../api/usage.ts";
import type { Event, Spent, StreamReport, StreamState } from "../streams/event.ts";

export type StreamOutcome = "reading" | "complete" | "incomplete";

/** One stream of a run: what was delivered, what it took, and where it ended. */
export type StreamStats = {
  readonly stream: string;
  readonly outcome: StreamOutcome;
  readonly rows: number;
  readonly expectedRows: number | null;
  /** 0: the stream has none, as those of jobs. */
  readonly windows: number;
  /** Files that were published; null where the run writes none. */
  readonly files: number | null;
  readonly seconds: number;
  readonly usage: Usage;
  /** Null: the stream has ended without one, or not at all. */
  readonly report: StreamReport | null;
  readonly error: unknown;
  /** Null: a stream that buys nothing. */
  readonly spent: Spent | null;
  readonly stateBefore: unknown;
  /** The last state whose records had left. */
  readonly stateAfter: StreamState | null;
};

/** What a run is waiting for. `until`: epoch ms. */
export type Waiting =
  | { readonly kind: "limited"; readonly until: number }
  | Extract<Event, { kind: "retrying" }>;

/** Counts what a run delivers: the progress, the logs and the summary are made of it. */
export class RunStats {
  /** What the run waits for; undefined while records come. */
  waiting: Waiting | undefined;
  /** The first error that was not that of one stream. */
  failure: unknown;
  readonly #streams: Counted[] = [];
  readonly #now: () => number;
  readonly #began: number;
  #endings: string[] = [];
  #usage: () => Usage = noUsage;

  /** @param now monotonic ms */
  constructor(now: () => number) {
    this.#now = now;
    this.#began = now();
  }

  /** @param usage of the session with the service */
  measure(usage: () => Usage): void {
    this.#usage = usage;
  }

  note(event: Event): void {
    if (event.kind === "limited" || event.kind === "retrying") this.waiting = event;
    if (event.kind === "records") this.waiting = undefined;
    if (event.kind === "failed") this.failure ??= event.error;
    if (event.kind === "open") this.#open(event);
    if (event.kind === "log" && event.endOf !== undefined) this.#endings.push(event.text);
    const stream = this.#streams.at(-1);
    if (stream !== undefined && "stream" in event && event.stream === stream.name) this.#count(stream, event);
  }

  /** What streams say of their own ends, each once. */
  takeEndings(): readonly string[] {
    return this.#endings.splice(0);
  }

  /** A checkpoint whose records have left. */
  noteSaved(name: string, state: StreamState): void {
    const stream = this.#streams.findLast((counted) => counted.name === name);
    if (stream !== undefined) stream.stateAfter = state;
  }

  /** More files of a stream can be seen by now; 0: it is written into files. */
  notePublished(name: string, files: number): void {
    const stream = this.#streams.findLast((counted) => counted.name === name);
    if (stream !== undefined) stream.files = (stream.files ?? 0) + files;
  }

  get seconds(): number {
    return (this.#now() - this.#began) / 1000;
  }

  get usage(): Usage {
    return { ...this.#usage() };
  }

  /** In the order in which they were read. */
  get streams(): readonly StreamStats[] {
    return this.#streams.map((stream) => this.#statsOf(stream));
  }

  /** The stream that is being read, or was last. */
  get current(): (StreamStats & { readonly secondsOfRows: number }) | undefined {
    const stream = this.#streams.at(-1);
    if (stream === undefined) return undefined;
    const secondsOfRows = stream.firstRow === undefined ? 0 : (this.#now() - stream.firstRow) / 1000;
    return { ...this.#statsOf(stream), secondsOfRows };
  }

  #open({ stream: name, before }: Extract<Event, { kind: "open" }>): void {
    this.#streams.push({
      name,
      stateBefore: before ?? null,
      since: this.#now(),
      until: undefined,
      firstRow: undefined,
      usageBefore: this.usage,
      usageAfter: undefined,
      expected: null,
      rows: 0,
      windows: 0,
      files: null,
      outcome: "reading",
      report: null,
      error: undefined,
      stateAfter: null,
      spent: null,
    });
  }

  #count(stream: Counted, event: Event): void {
    switch (event.kind) {
      case "estimate":
        stream.expected = event.rows;
        break;
      case "records":
        stream.firstRow ??= this.#now();
        stream.rows += event.lines.length;
        break;
      case "checkpoint":
        stream.windows = event.windows ?? stream.windows;
        stream.spent = event.spent ?? stream.spent;
        break;
      case "close":
        stream.until = this.#now();
        stream.usageAfter = this.usage;
        stream.outcome = event.complete && event.error === undefined ? "complete" : "incomplete";
        stream.report = event.report ?? null;
        stream.error = event.error;
        break;
    }
  }

  #statsOf(stream: Counted): StreamStats {
    const { name, outcome, rows, report, error, stateBefore, stateAfter, files, spent } = stream;
    return {
      stream: name,
      ...{ outcome, rows, report, error, stateBefore, stateAfter, files, spent },
      expectedRows: stream.expected,
      windows: report?.windows ?? stream.windows,
      seconds: ((stream.until ?? this.#now()) - stream.since) / 1000,
      usage: usageBetween(stream.usageAfter ?? this.usage, stream.usageBefore),
    };
  }
}

type Counted = {
  readonly name: string;
  readonly stateBefore: unknown;
  readonly since: number;
  readonly usageBefore: Usage;
  until: number | undefined;
  firstRow: number | undefined;
  usageAfter: Usage | undefined;
  expected: number | null;
  rows: number;
  windows: number;
  files: number | null;
  outcome: StreamOutcome;
  report: StreamReport | null;
  error: unknown;
  stateAfter: StreamState | null;
  spent: Spent | null;
};

const usageBetween = (after: Usage, before: Usage): Usage => ({
  requests: after.requests - before.requests,
  retries: after.retries - before.retries,
  bytesReceived: after.bytesReceived - before.bytesReceived,
  waitedMs: after.waitedMs - before.waitedMs,
  requestMs: after.requestMs - before.requestMs,
});
