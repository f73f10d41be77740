import { BodyError } from "../errors.ts";
import { plural } from "../plural.ts";
import { addDays, cursorToUtc, type Day, dayOf, endOf, instant } from "../time.ts";
import type { DayRange } from "./coverage.ts";
import type { DatedState } from "./dated-state.ts";
import type { Event, StreamState } from "./event.ts";
import { outside, type Range } from "./range.ts";
import { describe } from "./window.ts";
import {
  missingAtEnd,
  type Outcome,
  type Planned,
  refuseMissingInARow,
  type WindowResult,
} from "./window-result.ts";

/** By how much (ms) a moment of the service's clock may be told too late. */
const CLOCK_ERROR_MS = 3_000;

type Totals = {
  readonly isTimeUp: boolean;
  readonly passes: number;
  readonly rows: number;
  readonly now: number;
};

/** The progress after the contiguous, finished, oldest-first prefix of what was planned: the only source of checkpoints. */
export class Checkpoints {
  readonly #stream: string;
  readonly #range: Range;
  readonly #ignored: readonly Day[];
  #state: DatedState;
  #written = "";
  /** How many windows the last checkpoint covered. */
  #covered = 0;
  #next = 0;
  #windows = 0;
  /** Outcomes that may yet be the first of three missing days in a row. */
  #tail: WindowResult = [];
  #cause: unknown;
  /** The first day of the range that is not done with. */
  #ahead: Day;
  readonly #ended = new Map<number, { planned: Planned; result: WindowResult }>();

  /** @param ignored days that are never missing */
  constructor(stream: string, range: Range, ignored: readonly Day[]) {
    this.#stream = stream;
    this.#range = range;
    this.#ignored = ignored;
    this.#state = range.state;
    this.#ahead = range.window?.from ?? range.yesterday;
  }

  get state(): DatedState {
    return this.#state;
  }

  /** Takes in an ended window, and yields a checkpoint if the prefix has grown. Throws when the service seems to be unwell. */
  *finish(index: number, planned: Planned, result: WindowResult): Generator<Event> {
    this.#ended.set(index, { planned, result });
    this.#windows += 1;
    const before = this.#next;
    for (let end = this.#ended.get(this.#next); end !== undefined; end = this.#ended.get(this.#next)) {
      this.#ended.delete(this.#next);
      this.#next += 1;
      // Days that earlier runs could not prove say nothing of the service's health now.
      if (end.planned.purpose !== "missing") {
        const all = [...this.#tail, ...end.result];
        refuseMissingInARow(all);
        this.#tail = missingAtEnd(all);
      }
      this.#cause = end.result.find(({ cause }) => cause !== undefined)?.cause ?? this.#cause;
      this.#state = this.#after(end.planned, end.result);
    }
    if (this.#next > before && this.#range.kind === "days") yield* this.#checkpoint();
  }

  /**
   * Yields the last checkpoint and the end of the stream.
   * @param isTimeUp whether the run ended before all that was planned
   * @param passes how many passes all windows took
   * @param rows how many rows were delivered
   * @param now epoch ms by the service's clock
   */
  *close({ isTimeUp, passes, rows, now }: Totals): Generator<Event> {
    const { kind, isGapWhole, reached, count } = this.#range;
    if (kind === "days" && !isTimeUp) {
      if (isGapWhole) this.#state = { ...this.#state, from: this.#range.start, gap: null };
      if (reached !== undefined) {
        const to = reached.slice(0, 10) as Day;
        this.#state = { ...this.#outside(this.#ahead, to), discoveredAt: this.#latestOf(reached) };
      }
    }
    const incomplete = this.#incomplete();
    const error = this.#isShardDone(incomplete) ? undefined : incomplete;
    if (error === undefined) this.#endShard(now);
    if (error !== incomplete) yield { kind: "log", level: "warn", text: String(incomplete?.message) };
    const { full_refresh } = this.#state;
    if (full_refresh !== null && error === undefined && !isTimeUp) {
      this.#state = { ...this.#state, full_refresh: { ...full_refresh, done: true } };
    }
    yield* this.#checkpoint();
    const { missing_days, recheck, discoveredAt } = this.#state;
    if (recheck.length > 0) yield { kind: "log", level: "info", text: toBeRechecked(this.#stream, recheck) };
    yield {
      kind: "close",
      stream: this.#stream,
      complete: error === undefined,
      ...(error !== undefined && { error }),
      report: {
        ...{ rows, windows: this.#windows, passes, missingDays: missing_days, recheck },
        timeLimit: {
          reached: isTimeUp,
          expectedRows: count.known ? count.rows + count.undated : null,
          savedUpTo: discoveredAt,
        },
      },
    };
  }

  *#checkpoint(): Generator<Event> {
    const { full_refresh } = this.#state;
    const isWhole = this.#range.kind === "all";
    const state: StreamState = isWhole ? { version: 1, full_refresh } : { ...this.#state };
    const written = JSON.stringify(state);
    // The rows of a window need a checkpoint after them, even one that says nothing new.
    if (written === this.#written && this.#covered === this.#next) return;
    this.#written = written;
    this.#covered = this.#next;
    yield { kind: "checkpoint", stream: this.#stream, state, windows: this.#next };
  }

  #after({ window, purpose }: Planned, result: WindowResult): DatedState {
    const state = purpose === "range" ? { ...this.#state, from: this.#range.start, gap: null } : this.#state;
    if (window.kind === "all") return state;
    if (window.kind === "undated") return { ...state, ...this.#undatedAfter(result) };
    const to = window.kind === "closed" ? window.to : undefined;
    // Days of the range that no window held were counted as empty.
    const first = purpose === "range" ? this.#ahead : window.from;
    const { missing_days, recheck } = this.#outside(first, to);
    const after: DatedState = {
      ...state,
      missing_days: [...missing_days, ...this.#missingDaysOf(result)].sort(),
      recheck: [...recheck, ...drainingOf(result)].sort(),
    };
    if (purpose === "missing" || purpose === "recheck") return after;
    if (purpose === "gap") return { ...after, gap: { from: this.#range.start, to: to ?? window.from } };
    if (to !== undefined) this.#ahead = addDays(to, 1);
    const bringsUndated = result.some(
      (one) => one.undatedRows !== undefined || one.window.kind === "undated",
    );
    return {
      ...after,
      discoveredAt: this.#latestOf(to === undefined ? this.#openEnd(result) : endOf(to)),
      ...(bringsUndated && this.#undatedAfter(result)),
    };
  }

  #undatedAfter(result: WindowResult): Partial<DatedState> {
    const outcome = result.find((one) => one.undatedRows !== undefined || one.window.kind === "undated");
    if (outcome?.kind === "missing") return { undated: "pending" };
    return {
      undated: "done",
      undated_checked: dayOf(this.#range.count.asked),
      undated_rows: outcome?.undatedRows ?? 0,
    };
  }

  /** The state without the missing days and rechecks of a span. */
  #outside(from: Day, to: Day | undefined): DatedState {
    const { missing_days, recheck } = this.#state;
    const span = to === undefined ? { from } : { from, to };
    return {
      ...this.#state,
      missing_days: missing_days.filter((day) => day < from || (to !== undefined && day > to)),
      recheck: recheck.flatMap((range) => outside(range, span)),
    };
  }

  #missingDaysOf(result: WindowResult): readonly Day[] {
    return result
      .flatMap(({ kind, window }) => (kind === "missing" && window.kind === "closed" ? [window.from] : []))
      .filter((day) => !this.#ignored.includes(day));
  }

  /** What an open window reached: the newest row; if it showed none, the days before yesterday are done all the same. */
  #openEnd(result: WindowResult): string {
    const newest = result.findLast((outcome) => outcome.newest !== undefined)?.newest;
    if (newest !== undefined) return cursorToUtc(newest);
    return this.#state.discoveredAt ?? endOf(addDays(this.#range.yesterday, -1));
  }

  /** State never moves backwards, nor past `latest`. */
  #latestOf(reached: string): string {
    const { discoveredAt } = this.#state;
    const { latest } = this.#range;
    const capped = instant(reached) > instant(latest) ? latest : reached;
    return discoveredAt !== null && instant(discoveredAt) >= instant(capped) ? discoveredAt : capped;
  }

  /** Missing days leave a shard done: the merged state has them, and the run after it reads them first. */
  #isShardDone(incomplete: BodyError | undefined): boolean {
    const { shard, missing_days, undated } = this.#state;
    const isUndatedRead = this.#range.undated === "none" || undated === "done";
    return shard !== null && incomplete !== undefined && missing_days.length > 0 && isUndatedRead;
  }

  /** As `asked` is, `ended` is certainly not too late: the service tells whole seconds, and answers take time. */
  #endShard(now: number): void {
    const { shard } = this.#state;
    if (shard === null) return;
    const ended = new Date(Math.floor((now - CLOCK_ERROR_MS) / 1000) * 1000).toISOString();
    this.#state = { ...this.#state, shard: { ...shard, done: true, ended } };
  }

  /** What keeps the stream from being complete; undefined if nothing. */
  #incomplete(): BodyError | undefined {
    const { missing_days, undated } = this.#state;
    const isUndatedMissing =
      undated === "pending" && this.#range.undated !== "none" && this.#cause !== undefined;
    if (missing_days.length === 0 && !isUndatedMissing) return undefined;
    const what =
      missing_days.length > 0
        ? `the day${missing_days.length > 1 ? "s" : ""} ${missing_days.join(", ")}`
        : describe({ kind: "undated" });
    const remedy =
      missing_days.length > 0
        ? 'If the service can never serve a day, name it in "ignore_missing_days"'
        : 'If it stays so, "verify_counts": false reads without proof';
    return new BodyError(
      `Cannot prove ${what} of "${this.#stream}" complete. Everything else was read. The next run reads this first. ${remedy}`,
      { cause: this.#cause },
    );
  }
}

function drainingOf(result: WindowResult): readonly DayRange[] {
  return result.flatMap(({ kind, window }: Outcome) =>
    kind === "draining" && window.kind === "closed" ? [[window.from, window.to] as const] : [],
  );
}

function toBeRechecked(stream: string, recheck: readonly DayRange[]): string {
  return (
    `${plural(recheck.length, "range")} of days of "${stream}" will be checked again by the next run: people left them while they were read, ` +
    "so their counts could not be met exactly"
  );
}
