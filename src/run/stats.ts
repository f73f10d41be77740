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
    if (stream !== undefined && "stream" in event && event.stream === stream.counts.stream)
      this.#count(stream, event);
  }

  /** What streams say of their own ends, each once. */
  takeEndings(): readonly string[] {
    return this.#endings.splice(0);
  }

  /** A checkpoint whose records have left. */
  noteSaved(name: string, state: StreamState): void {
    const counts = this.#countsOf(name);
    if (counts !== undefined) counts.stateAfter = state;
  }

  /** More files of a stream can be seen by now; 0: it is written into files. */
  notePublished(name: string, files: number): void {
    const counts = this.#countsOf(name);
    if (counts !== undefined) counts.files = (counts.files ?? 0) + files;
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

  #countsOf(name: string): Counted["counts"] | undefined {
    return this.#streams.findLast(({ counts }) => counts.stream === name)?.counts;
  }

  #open({ stream, before }: Extract<Event, { kind: "open" }>): void {
    const none = { rows: 0, windows: 0, expectedRows: null, files: null, report: null, spent: null };
    this.#streams.push({
      counts: {
        stream,
        outcome: "reading",
        ...none,
        error: undefined,
        stateBefore: before ?? null,
        stateAfter: null,
      },
      since: this.#now(),
      usageBefore: this.usage,
      end: undefined,
      firstRow: undefined,
    });
  }

  #count(stream: Counted, event: Event): void {
    const { counts } = stream;
    switch (event.kind) {
      case "estimate":
        counts.expectedRows = event.rows;
        break;
      case "records":
        stream.firstRow ??= this.#now();
        counts.rows += event.lines.length;
        break;
      case "checkpoint":
        counts.windows = event.windows ?? counts.windows;
        counts.spent = event.spent ?? counts.spent;
        break;
      case "close":
        stream.end = { at: this.#now(), usage: this.usage };
        counts.outcome = event.complete && event.error === undefined ? "complete" : "incomplete";
        counts.report = event.report ?? null;
        counts.windows = event.report?.windows ?? counts.windows;
        counts.error = event.error;
        break;
    }
  }

  #statsOf({ counts, since, usageBefore, end }: Counted): StreamStats {
    const { at, usage } = end ?? { at: this.#now(), usage: this.usage };
    return { ...counts, seconds: (at - since) / 1000, usage: usageBetween(usage, usageBefore) };
  }
}

type Counted = {
  readonly counts: { -readonly [Name in keyof Omit<StreamStats, "seconds" | "usage">]: StreamStats[Name] };
  /** Monotonic ms. */
  readonly since: number;
  readonly usageBefore: Usage;
  end: { readonly at: number; readonly usage: Usage } | undefined;
  firstRow: number | undefined;
};

const usageBetween = (after: Usage, before: Usage): Usage => ({
  requests: after.requests - before.requests,
  retries: after.retries - before.retries,
  bytesReceived: after.bytesReceived - before.bytesReceived,
  waitedMs: after.waitedMs - before.waitedMs,
  requestMs: after.requestMs - before.requestMs,
});
