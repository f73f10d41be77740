import type { Event } from "../sync/event.ts";

type Count = {
  readonly stream: string;
  readonly since: number;
  until: number | undefined;
  expected: number | undefined;
  rows: number;
  windows: number;
  outcome: "reading" | "complete" | "incomplete";
};

/** Counts what a run delivers, for a person who watches it. */
export class Tally {
  readonly #counts: Count[] = [];
  readonly #now: () => number;
  #limitedUntil: number | undefined;

  /** @param now monotonic ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(event: Event): void {
    if (event.kind === "open") this.#open(event.stream);
    if (event.kind === "limited") this.#limitedUntil = event.until;
    const count = this.#counts.at(-1);
    if (count === undefined || !("stream" in event)) return;
    switch (event.kind) {
      case "estimate":
        count.expected = event.rows;
        break;
      case "records":
        count.rows += event.lines.length;
        this.#limitedUntil = undefined;
        break;
      case "checkpoint":
        count.windows += 1;
        break;
      case "close":
        count.until = this.#now();
        count.outcome = event.complete && event.error === undefined ? "complete" : "incomplete";
        break;
    }
  }

  /** How the stream that is being read gets on. */
  line(): string {
    const count = this.#counts.at(-1);
    if (count === undefined) return "connecting";
    const rate = rateOf(count, this.#now());
    const parts = [
      `${count.stream}: ${rowsOf(count)}`,
      rate === 0 ? "" : `${shown(rate)} rows/s`,
      windowsOf(count),
      this.#limitedUntil === undefined ? leftOf(count, rate) : "waiting for the rate limit",
    ];
    return parts.filter((part) => part !== "").join(", ");
  }

  /** A line for each stream. */
  summary(): string {
    return this.#counts.map((count) => `${this.#summaryOf(count)}\n`).join("");
  }

  #summaryOf(count: Count): string {
    const ms = (count.until ?? this.#now()) - count.since;
    const rate = rateOf(count, count.until ?? this.#now());
    const outcome = count.outcome === "reading" ? "interrupted" : count.outcome;
    return `${count.stream}: ${shown(count.rows)} rows in ${secondsOf(ms)} (${shown(rate)} rows/s), ${outcome}`;
  }

  #open(stream: string): void {
    const since = this.#now();
    this.#counts.push({
      ...{ stream, since, until: undefined, expected: undefined },
      ...{ rows: 0, windows: 0, outcome: "reading" },
    });
  }
}

function rowsOf({ rows, expected }: Count): string {
  return expected === undefined ? `${shown(rows)} rows` : `${shown(rows)} of about ${shown(expected)} rows`;
}

/** Windows are planned as they are needed, so that how many there will be is told from the rows still expected. */
function windowsOf({ windows, rows, expected }: Count): string {
  if (windows === 0) return "";
  if (expected === undefined || rows >= expected) return `${windows} window${windows === 1 ? "" : "s"} done`;
  return `${windows} of about ${Math.max(windows + 1, Math.round((windows * expected) / rows))} windows done`;
}

/** Rows a second. */
function rateOf({ rows, since }: Count, now: number): number {
  return Math.round((rows * 1000) / Math.max(1, now - since));
}

function leftOf({ rows, expected }: Count, rate: number): string {
  if (expected === undefined || rows === 0 || rate === 0 || rows >= expected) return "";
  return `about ${secondsOf(((expected - rows) * 1000) / rate)} left`;
}

function secondsOf(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

const shown = (count: number): string => count.toLocaleString("en-US");
