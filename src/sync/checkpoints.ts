import type { BodyError } from "../base/errors.ts";
import { addDays, cursorToUtc, type Day, instant } from "../base/time.ts";
import { missingDaysOf, put } from "./coverage.ts";
import type { Event, StreamState, WindowRecord } from "./event.ts";
import { incompleteDays, incompleteRow, incompleteUndated } from "./incomplete.ts";
import type { Outcome } from "./pass.ts";
import { NO_FILTERS, type RowState } from "./state.ts";

/** `missing`: the missing days of the incoming state. `more`: the number of proven spans that a state may have above 24. */
type DatedRun = { readonly yesterday: Day; readonly missing: readonly Day[]; readonly more: number };

/** Turns outcomes into states. A state covers all windows before the first unfinished window, and its ended parts. */
export class Checkpoints {
  readonly #stream: string;
  readonly #days: DatedRun | undefined;
  #state: RowState;
  #written = "";
  /** The outcomes that no state covers yet, by the number of their window; undefined: the window has ended. */
  readonly #outcomes: (Outcome | undefined)[][] = [];
  /** The first window that has not ended, and whether the state covers parts of it. */
  #next = 0;
  #isPartial = false;
  /** The consecutive missing days right before the next window. */
  #missing: readonly Outcome[] = [];
  /** The days, and the window of rows without a date, that no attempt of this run proved. */
  readonly #missingDays = new Map<Day, Outcome>();
  #undated: Outcome | undefined;
  /** The windows since the last checkpoint. */
  readonly #read: WindowRecord[] = [];

  /** @param days undefined: the stream has no days */
  constructor(stream: string, state: RowState, days: DatedRun | undefined) {
    [this.#stream, this.#state, this.#days] = [stream, state, days];
  }

  /**
   * Adds the outcome of a part of a window, and yields a checkpoint if more windows are covered.
   * @param outcome undefined: all parts of the window have ended
   * @throws BodyError if the service is down
   */
  *add(number: number, outcome: Outcome | undefined): Generator<Event> {
    this.#outcomes[number] = [...(this.#outcomes[number] ?? []), outcome];
    if (number !== this.#next) return;
    while (this.#outcomes[this.#next]?.length) this.#take(this.#outcomes[this.#next]?.shift());
    if (this.#days !== undefined) yield this.#checkpoint();
  }

  /** Yields the last checkpoint and the end of the stream. @param isTimeUp whether the run's time ended before the last window */
  *close(isTimeUp: boolean): Generator<Event> {
    const error = this.#incomplete();
    const { full_refresh } = this.#state;
    if (full_refresh !== null && error === undefined && !isTimeUp)
      this.#state = { ...this.#state, full_refresh: { ...full_refresh, done: true } };
    if (JSON.stringify(this.#saved) !== this.#written) yield this.#checkpoint();
    yield { kind: "close", stream: this.#stream, complete: error === undefined, error, isTimeUp };
  }

  get #saved(): StreamState {
    const { full_refresh, version } = this.#state;
    return this.#days === undefined ? { version, full_refresh } : { ...this.#state };
  }

  #checkpoint(): Event {
    const state = this.#saved;
    this.#written = JSON.stringify(state);
    // The state covers a part of the first unfinished window, so all rows of this window may be delivered too.
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
    if (newest !== undefined && !(instant(newest) <= instant(discoveredAt ?? "")))
      this.#state = { ...this.#state, discoveredAt: cursorToUtc(newest) };
  }

  #takeDays(outcome: Outcome): void {
    const { window, record } = outcome;
    if (this.#days === undefined || !("from" in window)) return;
    const { yesterday, missing, more } = this.#days;
    const to = window.kind === "closed" ? window.to : addDays(yesterday, -1);
    if (window.from > to) return;
    // Days that were missing before this run do not count: they do not show that the service is down now.
    if (!missing.includes(window.from)) this.#missing = missingInARow(this.#missing, outcome);
    const days = put(this.#state.days, [window.from, to], record.verdict, outcome.days, more);
    this.#state = { ...this.#state, days };
  }

  /** The error of an incomplete stream; undefined: the stream is complete. */
  #incomplete(): BodyError | undefined {
    const missing = missingDaysOf(this.#state.days);
    if (missing.length > 0) return incompleteDays(this.#stream, missing, this.#missingDays);
    return this.#undated && incompleteUndated(this.#stream, this.#undated);
  }
}

/** The maximum number of consecutive days that no attempt read to its end. */
const MAX_UNREAD_DAYS = 2;
/** The maximum number of consecutive days that were not read to their end, or showed no counted row. */
const MAX_MISSING_DAYS = 30;

/**
 * Adds an outcome to the consecutive missing days. A day that is not missing, or that shows rows to its end, empties the list.
 * @throws BodyError for too many days, because an outage or a wrong count must not become years of missing days
 */
function missingInARow(row: readonly Outcome[], outcome: Outcome): readonly Outcome[] {
  const { verdict, shown } = outcome.record;
  if (verdict !== "missing" || (outcome.isRead && shown > 0)) return [];
  const missing = [...row, outcome];
  const unread = missing.filter(({ isRead }) => !isRead);
  if (unread.length <= MAX_UNREAD_DAYS && missing.length <= MAX_MISSING_DAYS) return missing;
  throw incompleteRow(missing);
}
