import { BodyError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { addDays, cursorToUtc, type Day, instant } from "../base/time.ts";
import { missingDaysOf, put, withStatus } from "./coverage.ts";
import type { Event, StreamState, WindowRecord } from "./event.ts";
import type { Outcome } from "./outcome.ts";
import type { PlannedWindow } from "./plan.ts";
import type { RowState } from "./state.ts";
import { describe, type Window } from "./window.ts";

type Begun = { readonly planned: PlannedWindow; readonly outcomes: Outcome[]; isEnded: boolean };

/**
 * Turns the outcomes of windows into states. A state covers all windows up to the first that has not ended, and of that one
 * the parts that have.
 */
export class Checkpoints {
  readonly #stream: string;
  readonly #yesterday: Day | undefined;
  #state: RowState;
  #written = "";
  /** The windows that have not been taken in completely, by their number. */
  readonly #begun = new Map<number, Begun>();
  /** The first of them, and its first closed day that no outcome has covered. */
  #next = 0;
  #from: Day | undefined;
  /** Whether parts of it are taken in. */
  #isPartial = false;
  #hasNews = false;
  /** The missing days in a row before the next window. */
  #missing: readonly Outcome[] = [];
  #cause: unknown;
  /** The windows since the last checkpoint. */
  #read: WindowRecord[] = [];
  #isUndatedMissing = false;

  /** @param yesterday undefined: the stream has no days */
  constructor(stream: string, state: RowState, yesterday: Day | undefined) {
    this.#stream = stream;
    this.#state = state;
    this.#yesterday = yesterday;
  }

  /** Takes in how a part of a window ended. Yields a checkpoint if the covered days have grown. @throws BodyError if the service is down */
  *add(number: number, planned: PlannedWindow, outcome: Outcome): Generator<Event> {
    this.#at(number, planned).outcomes.push(outcome);
    yield* this.#advance();
  }

  /** Takes in that a window has ended, all parts of which were added. */
  *end(number: number, planned: PlannedWindow): Generator<Event> {
    this.#at(number, planned).isEnded = true;
    yield* this.#advance();
  }

  #at(number: number, planned: PlannedWindow): Begun {
    const begun = this.#begun.get(number) ?? { planned, outcomes: [], isEnded: false };
    this.#begun.set(number, begun);
    return begun;
  }

  /** Yields the last checkpoint and the end of the stream. @param isTimeUp whether the run ended before all that was planned */
  *close(isTimeUp: boolean): Generator<Event> {
    const error = this.#incomplete();
    const { full_refresh } = this.#state;
    if (full_refresh !== null && error === undefined && !isTimeUp)
      this.#state = { ...this.#state, full_refresh: { ...full_refresh, done: true } };
    yield* this.#checkpoint();
    const recheck = withStatus(this.#state.days, "again");
    if (recheck.length > 0) {
      const text = `${plural(recheck.length, "date range")} of "${this.#stream}" changed while they were read. The next run reads them again`;
      yield { kind: "log", level: "info", text };
    }
    yield {
      kind: "close",
      stream: this.#stream,
      complete: error === undefined,
      ...(error !== undefined && { error }),
      isTimeUp,
    };
  }

  *#advance(): Generator<Event> {
    for (let first = this.#begun.get(this.#next); first !== undefined; first = this.#begun.get(this.#next)) {
      for (const outcome of first.outcomes.splice(0)) this.#take(first.planned, outcome);
      if (!first.isEnded) break;
      this.#coverUpTo(first.planned.days?.[1]);
      this.#begun.delete(this.#next);
      this.#next += 1;
      this.#from = undefined;
      this.#isPartial = false;
      this.#hasNews = true;
    }
    if (this.#hasNews && this.#yesterday !== undefined) yield* this.#checkpoint();
  }

  *#checkpoint(): Generator<Event> {
    const { full_refresh, version } = this.#state;
    const state: StreamState = this.#yesterday === undefined ? { version, full_refresh } : { ...this.#state };
    const written = JSON.stringify(state);
    if (written === this.#written && !this.#hasNews) return;
    this.#written = written;
    this.#hasNews = false;
    // Rows of the first window that has not ended are delivered too, whether or not this state covers them.
    const windows = this.#next + (this.#isPartial ? 1 : 0);
    const read = this.#read.splice(0);
    yield { kind: "checkpoint", stream: this.#stream, state, windows, ...(read.length > 0 && { read }) };
  }

  #take(planned: PlannedWindow, outcome: Outcome): void {
    this.#read.push(recordOf(outcome, this.#state));
    if (outcome.window.kind === "undated") this.#isUndatedMissing = outcome.kind === "missing";
    this.#cause = outcome.cause ?? this.#cause;
    this.#isPartial = true;
    this.#hasNews = true;
    if (outcome.undated !== undefined && outcome.kind === "proven")
      this.#state = { ...this.#state, undated: { rows: outcome.undated } };
    const range = this.#closedDays(outcome.window);
    if (range !== undefined) {
      const [from, to] = range;
      // A day that an earlier run could not read, and that is read once more, says nothing about the service now.
      if (planned.isReread || !this.#isMissing(from)) this.#missing = missingInARow(this.#missing, outcome);
      this.#from ??= planned.days?.[0] ?? from;
      this.#coverUpTo(addDays(from, -1));
      this.#state = { ...this.#state, days: put(this.#state.days, range, outcome.kind, outcome.days) };
      this.#from = addDays(to, 1);
    }
    const { newest } = outcome;
    const { discoveredAt } = this.#state;
    if (newest === undefined || (discoveredAt !== null && instant(newest) <= instant(discoveredAt))) return;
    this.#state = { ...this.#state, discoveredAt: cursorToUtc(newest) };
  }

  /** Days of the first window before a day were counted, and are empty. */
  #coverUpTo(day: Day | undefined): void {
    const from = this.#from ?? this.#begun.get(this.#next)?.planned.days?.[0];
    if (day === undefined || from === undefined || from > day) return;
    this.#state = { ...this.#state, days: put(this.#state.days, [from, day], "proven") };
  }

  #closedDays(window: Window): readonly [Day, Day] | undefined {
    if (window.kind === "closed") return [window.from, window.to];
    if (window.kind !== "open" || this.#yesterday === undefined) return undefined;
    const to = addDays(this.#yesterday, -1);
    return window.from <= to ? [window.from, to] : undefined;
  }

  #isMissing(day: Day): boolean {
    return this.#state.days.some(({ from, to, status }) => status === "missing" && day >= from && day <= to);
  }

  /** The error that keeps the stream from being complete; undefined if there is none. */
  #incomplete(): BodyError | undefined {
    const missing = missingDaysOf(this.#state.days);
    if (missing.length === 0 && !this.#isUndatedMissing) return undefined;
    const named = `the day${missing.length > 1 ? "s" : ""} ${missing.join(", ")}`;
    const [what, remedy] =
      missing.length > 0
        ? [named, 'If the service can never serve a day, name it in "ignore_missing_days"']
        : [describe({ kind: "undated" }), 'If it stays so, "verify_counts": false reads without proof'];
    return new BodyError(
      `Cannot prove ${what} of "${this.#stream}" complete. Everything else was read. The next run reads this first. ${remedy}`,
      { cause: this.#cause },
    );
  }
}

function recordOf(outcome: Outcome, { filters }: RowState): WindowRecord {
  const { window, kind, rows, suppressed, counted, passes, seconds } = outcome;
  return {
    kind: window.kind,
    discovered_from: "from" in window ? window.from : null,
    discovered_to: window.kind === "closed" ? window.to : null,
    ...(filters ?? { source_slug: null, is_user: "all" }),
    verdict: kind,
    ...{ counted, shown: rows, suppressed, passes, seconds },
  };
}

/** Days in a row that no attempt read to its end, and those together with days that show nothing of what is counted. */
const MAX_UNREAD_DAYS = 2;
const MAX_MISSING_DAYS = 30;

/**
 * Returns the missing days in a row that end with an outcome.
 * @param row those before it
 * @throws BodyError for too many: an outage, or a count of rows that are nowhere, must not become years of missing days
 */
function missingInARow(row: readonly Outcome[], outcome: Outcome): readonly Outcome[] {
  if (outcome.kind !== "missing" || (outcome.isRead && outcome.rows > 0)) return [];
  const missing = [...row, outcome];
  const unread = missing.filter(({ isRead }) => !isRead);
  if (unread.length <= MAX_UNREAD_DAYS && missing.length <= MAX_MISSING_DAYS) return missing;
  const days = missing.map(({ window }) => describe(window)).join(", ");
  throw new BodyError(
    `Cannot read ${days}: ${missing.length} days in a row could not be proven complete, so the service seems to be unwell. ` +
      'The state stays before them. Run again later. If it can never serve them, name them in "ignore_missing_days"',
    { cause: outcome.cause },
  );
}
