import type { BodyError } from "../base/errors.ts";
import { addDays, cursorToUtc, type Day, instant } from "../base/time.ts";
import { missingDaysOf, put } from "./coverage.ts";
import type { Event, StreamState, WindowRecord } from "./event.ts";
import { incompleteDays, incompleteRow, incompleteUndated } from "./incomplete.ts";
import type { Outcome } from "./outcome.ts";
import { NO_FILTERS, type RowState } from "./state.ts";

/** `missing`: the state's missing days, each read again by itself. `more`: as `put` takes it. */
type DatedRun = { readonly yesterday: Day; readonly missing: readonly Day[]; readonly more: number };

/**
 * Turns the outcomes of windows into states. A state covers all windows up to the first that has not ended, and the parts
 * of that window that have ended.
 */
export class Checkpoints {
  readonly #stream: string;
  readonly #days: DatedRun | undefined;
  #state: RowState;
  #written = "";
  /** The outcomes that are not taken in, by the number of their window; undefined: the window has ended. */
  readonly #outcomes: (Outcome | undefined)[][] = [];
  /** The first window that has not ended, and whether parts of it are taken in. */
  #next = 0;
  #isPartial = false;
  /** The missing days in a row before the next window. */
  #missing: readonly Outcome[] = [];
  /** The days that no attempt of this run proved. */
  readonly #missingDays = new Map<Day, Outcome>();
  /** The windows since the last checkpoint. */
  #read: WindowRecord[] = [];
  /** The window of the rows without a date, if no attempt proved it. */
  #undated: Outcome | undefined;

  /** @param days undefined: the stream has no days */
  constructor(stream: string, state: RowState, days: DatedRun | undefined) {
    [this.#stream, this.#state, this.#days] = [stream, state, days];
  }

  /**
   * Takes in how a part of a window ended; undefined: all its parts have. Yields a checkpoint if the covered days have grown.
   * @throws BodyError if the service is down
   */
  *add(number: number, outcome: Outcome | undefined): Generator<Event> {
    this.#outcomes[number] = [...(this.#outcomes[number] ?? []), outcome];
    if (number !== this.#next) return;
    while (this.#outcomes[this.#next]?.length) this.#take(this.#outcomes[this.#next]?.shift());
    if (this.#days !== undefined) yield this.#checkpoint();
  }

  /** Yields the last checkpoint and the end of the stream. @param isTimeUp whether the run ended before all that was planned */
  *close(isTimeUp: boolean): Generator<Event> {
    const error = this.#incomplete();
    const { full_refresh } = this.#state;
    if (full_refresh !== null && error === undefined && !isTimeUp)
      this.#state = { ...this.#state, full_refresh: { ...full_refresh, done: true } };
    if (JSON.stringify(this.#saved) !== this.#written) yield this.#checkpoint();
    yield {
      kind: "close",
      stream: this.#stream,
      complete: error === undefined,
      ...(error !== undefined && { error }),
      isTimeUp,
    };
  }

  get #saved(): StreamState {
    const { full_refresh, version } = this.#state;
    return this.#days === undefined ? { version, full_refresh } : { ...this.#state };
  }

  #checkpoint(): Event {
    const state = this.#saved;
    this.#written = JSON.stringify(state);
    // Rows of the first window that has not ended are delivered too, whether or not this state covers them.
    const windows = this.#next + (this.#isPartial ? 1 : 0);
    return { kind: "checkpoint", stream: this.#stream, state, windows, read: this.#read.splice(0) };
  }

  #take(outcome: Outcome | undefined): void {
    this.#isPartial = outcome !== undefined;
    if (outcome === undefined) {
      this.#next += 1;
      return;
    }
    const { window, record, newest, undated } = outcome;
    const { discoveredAt, filters } = this.#state;
    this.#read.push({ ...record, ...(filters ?? NO_FILTERS) });
    const isMissing = record.verdict === "missing";
    if (window.kind === "undated") this.#undated = isMissing ? outcome : undefined;
    if (isMissing && "from" in window) this.#missingDays.set(window.from, outcome);
    this.#takeDays(outcome);
    if (undated !== undefined && record.verdict === "proven")
      this.#state = { ...this.#state, undated: { rows: undated } };
    const isNewest =
      newest !== undefined && !(discoveredAt !== null && instant(newest) <= instant(discoveredAt));
    if (isNewest) this.#state = { ...this.#state, discoveredAt: cursorToUtc(newest) };
  }

  #takeDays(outcome: Outcome): void {
    const { window, record } = outcome;
    if (this.#days === undefined || !("from" in window)) return;
    const { yesterday, missing, more } = this.#days;
    const to = window.kind === "closed" ? window.to : addDays(yesterday, -1);
    if (window.from > to) return;
    // A day that an earlier run could not read says nothing about the service now.
    if (!missing.includes(window.from)) this.#missing = missingInARow(this.#missing, outcome);
    const days = put(this.#state.days, [window.from, to], record.verdict, outcome.days, more);
    this.#state = { ...this.#state, days };
  }

  /** The error that keeps the stream from being complete; undefined if there is none. */
  #incomplete(): BodyError | undefined {
    const missing = missingDaysOf(this.#state.days);
    if (missing.length > 0) return incompleteDays(this.#stream, missing, this.#missingDays);
    return this.#undated && incompleteUndated(this.#stream, this.#undated);
  }
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
  const { verdict, shown } = outcome.record;
  if (verdict !== "missing" || (outcome.isRead && shown > 0)) return [];
  const missing = [...row, outcome];
  const unread = missing.filter(({ isRead }) => !isRead);
  if (unread.length <= MAX_UNREAD_DAYS && missing.length <= MAX_MISSING_DAYS) return missing;
  throw incompleteRow(missing);
}
