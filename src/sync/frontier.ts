import { instant } from "./instant.ts";
import { endsStream, joinReadings, lostTooMany, NONE_LOST, NOTHING_READ, type Reading } from "./reading.ts";
import { addDays, type Day, endOf, type Window } from "./window.ts";

/** How a state spells a moment; services may spell it otherwise. */
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

/** The same moment in a state's spelling, the very text where it is so spelt; never later than a leap second later. */
function toUtc(cursor: string): string {
  const isUtc = UTC.test(cursor) && !Number.isNaN(Date.parse(cursor));
  return isUtc ? cursor : new Date(instant(cursor)).toISOString();
}

/** How far a dated stream has come; `source/state.ts` says how it is written. */
export type Progress = {
  /** Everything up to here has been delivered, save `missing`. */
  readonly discoveredAt: string | null;
  readonly missing: readonly Day[];
  /** The first day that is covered; null is the beginning. */
  readonly from: Day | null;
  readonly undated: "pending" | "done";
  /** Days before `from` that have been read since an earlier start was asked for. */
  readonly gap: { readonly from: Day | null; readonly to: Day } | null;
};

/** Why a window is read: a day that an earlier run could not close, days before the state's first, or the range itself. */
export type Role = "missing" | "gap" | "range";

/** What a frontier must know of the run. */
export type Bounds = {
  /** The first day that the state will cover; null is the beginning. */
  readonly start: Day | null;
  /** The first day of the range. */
  readonly rangeFrom: Day;
  /** No checkpoint passes it: when the run's first count was asked, or the end of `end_date`. */
  readonly latest: string;
  /** Days that are given up without a trace. */
  readonly ignored: ReadonlySet<Day>;
};

/** The progress after the contiguous, finished, oldest-first prefix of what was planned: the only source of checkpoints. */
export class Frontier {
  #progress: Progress;
  #reading: Reading = NOTHING_READ;
  #next = 0;
  /** The first day of the range that is not done with. */
  #ahead: Day;
  readonly #ended = new Map<number, { role: Role; window: Window; reading: Reading }>();
  readonly #bounds: Bounds;

  constructor(resume: Progress, bounds: Bounds) {
    this.#progress = resume;
    this.#ahead = bounds.rangeFrom;
    this.#bounds = bounds;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** What could not be closed, with its cause. */
  get reading(): Reading {
    return this.#reading;
  }

  /** Takes in an ended window; returns the new progress if the prefix has grown. Throws when the service is taken to be unwell. */
  close(index: number, role: Role, window: Window, reading: Reading): Progress | undefined {
    this.#ended.set(index, { role, window, reading });
    const before = this.#progress;
    for (let end = this.#ended.get(this.#next); end !== undefined; end = this.#ended.get(this.#next)) {
      this.#ended.delete(this.#next);
      this.#next += 1;
      // Days that earlier runs could not close say nothing of the service's health now.
      const lost = end.role === "missing" ? NONE_LOST : end.reading.lost;
      this.#reading = joinReadings(this.#reading, { ...end.reading, lost });
      if (endsStream(this.#reading)) throw lostTooMany(this.#reading);
      this.#progress = this.#after(end.role, end.window, end.reading);
    }
    return this.#progress === before ? undefined : this.#progress;
  }

  /**
   * The progress once all that was planned has ended.
   * @param reached the end of a range that has one
   * @param gapWhole whether the planned gap met the first day of the state
   */
  finish(reached: string | undefined, gapWhole: boolean): Progress {
    if (gapWhole) this.#progress = this.#withGapClosed();
    if (reached === undefined) return this.#progress;
    const missing = this.#missingOutside(this.#ahead, reached.slice(0, 10) as Day);
    this.#progress = this.#with({ discoveredAt: this.#latestOf(reached), missing });
    return this.#progress;
  }

  #after(role: Role, window: Window, reading: Reading): Progress {
    const progress = role === "range" ? this.#withGapClosed() : this.#progress;
    if (window.kind === "undated") {
      return reading.missing.length > 0 ? progress : { ...progress, undated: "done" };
    }
    if (window.kind === "all") return progress;
    const to = window.kind === "closed" ? window.to : undefined;
    // Days of the range that no window held were counted as empty.
    const kept = this.#missingOutside(role === "range" ? this.#ahead : window.from, to);
    const missing = [...kept, ...this.#daysOf(reading)].sort();
    if (role === "missing") return { ...progress, missing };
    if (role === "gap")
      return { ...progress, missing, gap: { from: this.#bounds.start, to: to ?? window.from } };
    if (to !== undefined) this.#ahead = addDays(to, 1);
    const undatedToo =
      window.kind === "open" && window.undated && !reading.missing.some(({ kind }) => kind === "undated");
    return {
      ...progress,
      missing,
      discoveredAt: this.#latestOf(to === undefined ? this.#openEnd(reading.newest) : endOf(to)),
      undated: undatedToo ? "done" : progress.undated,
    };
  }

  /** The missing days that do not lie in a span; the same array if that is all of them. */
  #missingOutside(from: Day, to: Day | undefined): readonly Day[] {
    const { missing } = this.#progress;
    const outside = missing.filter((day) => day < from || (to !== undefined && day > to));
    return outside.length === missing.length ? missing : outside;
  }

  /** The range comes after the gap, so once a part of it has ended the gap is read. */
  #withGapClosed(): Progress {
    return this.#with({ from: this.#bounds.start, gap: null });
  }

  /** The same object where nothing changes, so that a change can be told by identity. */
  #with(changes: Partial<Progress>): Progress {
    const progress = this.#progress;
    const same = (Object.keys(changes) as (keyof Progress)[]).every((key) => changes[key] === progress[key]);
    return same ? progress : { ...progress, ...changes };
  }

  #daysOf({ missing }: Reading): Day[] {
    const days = missing.flatMap((window) => (window.kind === "closed" ? [window.from] : []));
    return days.filter((day) => !this.#bounds.ignored.has(day));
  }

  /** What an open window reached: the newest row; if it showed none, the days before yesterday are done all the same. */
  #openEnd(newest: string | undefined): string {
    if (newest !== undefined) return toUtc(newest);
    return this.#progress.discoveredAt ?? endOf(addDays(this.#bounds.latest.slice(0, 10) as Day, -2));
  }

  /** State never moves backwards, nor past `latest`. */
  #latestOf(reached: string): string {
    const { discoveredAt } = this.#progress;
    const { latest } = this.#bounds;
    const capped = instant(reached) > instant(latest) ? latest : reached;
    return discoveredAt !== null && instant(discoveredAt) >= instant(capped) ? discoveredAt : capped;
  }
}
