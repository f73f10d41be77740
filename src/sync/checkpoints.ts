import { BodyError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { addDays, BEGINNING, cursorToUtc, type Day, dayOf, instant } from "../base/time.ts";
import {
  type Coverage,
  compact,
  cutByRows,
  type DayRange,
  missingDaysOf,
  prove,
  put,
  type Span,
  spanOf,
  uncovered,
  withStatus,
} from "./coverage.ts";
import type { Event, StreamState, WindowRecord } from "./event.ts";
import { missingInARow, type Outcome } from "./outcome.ts";
import type { PlannedWindow } from "./plan.ts";
import type { Range } from "./range.ts";
import type { DatedState } from "./state.ts";
import { describe, type Window } from "./window.ts";

/** Into how many ranges the days of a window go: an account of one window has no others. */
const PARTS = 20;
const FEW_PARTS = 4;

/** The progress after the contiguous, finished, oldest-first prefix of what was planned: the only source of checkpoints. */
export class Checkpoints {
  readonly #stream: string;
  readonly #range: Range;
  #state: DatedState;
  #written = "";
  /** How many windows the last checkpoint covered. */
  #covered = 0;
  #next = 0;
  #windows = 0;
  /** Missing days that may yet be the first of three in a row. */
  #tail: readonly Outcome[] = [];
  #cause: unknown;
  /** Of the windows since the last checkpoint. */
  #records: WindowRecord[] = [];
  readonly #ended = new Map<number, { planned: PlannedWindow; result: readonly Outcome[] }>();

  constructor(stream: string, range: Range) {
    this.#stream = stream;
    this.#range = range;
    this.#state = range.state;
  }

  get state(): DatedState {
    return this.#state;
  }

  /** Takes in an ended window, and yields a checkpoint if the prefix has grown. Throws when the service seems to be unwell. */
  *finish(index: number, planned: PlannedWindow, result: readonly Outcome[]): Generator<Event> {
    this.#ended.set(index, { planned, result });
    if (result.some(({ passes }) => passes > 0)) this.#windows += 1;
    const before = this.#next;
    for (let end = this.#ended.get(this.#next); end !== undefined; end = this.#ended.get(this.#next)) {
      this.#ended.delete(this.#next);
      this.#next += 1;
      // Days that earlier runs could not prove say nothing of the service's health now.
      if (end.planned.clears !== "missing") {
        this.#tail = end.result.reduce(missingInARow, this.#tail);
      }
      this.#cause = end.result.find(({ cause }) => cause !== undefined)?.cause ?? this.#cause;
      this.#state = this.#after(end.planned, end.result);
      this.#records.push(...this.#recordsOf(end.planned, end.result));
    }
    if (this.#next > before && this.#range.kind === "days") yield* this.#checkpoint();
  }

  /**
   * Yields the last checkpoint and the end of the stream.
   * @param passes how many passes all windows took
   * @param isTimeUp whether the run ended before all that was planned
   */
  *close(passes: number, isTimeUp: boolean): Generator<Event> {
    const error = this.#incomplete();
    const { full_refresh } = this.#state;
    if (full_refresh !== null && error === undefined && !isTimeUp) {
      this.#state = { ...this.#state, full_refresh: { ...full_refresh, done: true } };
    }
    yield* this.#checkpoint();
    const { discoveredAt, days } = this.#state;
    const recheck = withStatus(days, "again");
    if (recheck.length > 0) {
      const text =
        `${plural(recheck.length, "range")} of days of "${this.#stream}" will be checked again by the next run: people left them ` +
        "while they were read, so their counts could not be met exactly";
      yield { kind: "log", level: "info", text };
    }
    yield {
      kind: "close",
      stream: this.#stream,
      complete: error === undefined,
      ...(error !== undefined && { error }),
      report: {
        ...{ windows: this.#windows, passes, missing_days: missingDaysOf(days), recheck },
        ...{ time_limit_reached: isTimeUp, saved_up_to: discoveredAt },
      },
    };
  }

  *#checkpoint(): Generator<Event> {
    const { full_refresh, version } = this.#state;
    const state: StreamState = this.#range.kind === "all" ? { version, full_refresh } : { ...this.#state };
    const written = JSON.stringify(state);
    // The rows of a window need a checkpoint after them, even one that says nothing new.
    if (written === this.#written && this.#covered === this.#next) return;
    this.#written = written;
    this.#covered = this.#next;
    const records = this.#records.splice(0);
    yield {
      kind: "checkpoint",
      stream: this.#stream,
      state,
      windows: this.#next,
      ...(records.length > 0 && { records }),
    };
  }

  /** What is known of each window. Days that none holds were counted empty. */
  #recordsOf({ window, days }: PlannedWindow, result: readonly Outcome[]): readonly WindowRecord[] {
    const read = result.flatMap((one): readonly WindowRecord[] => {
      if (one.passes === 0) return [];
      const { kind } = one.window;
      const [first_day, last_day] = rangeOf(one.window);
      const { rows: shown, suppressed, passes, seconds, counted } = one;
      const counts = { counted_before: counted, counted_after: null, shown, emitted: shown - suppressed };
      return [
        ...[
          {
            kind,
            first_day,
            last_day,
            verdict: one.kind,
            ...counts,
            suppressed,
            passes,
            requests: 0,
            seconds,
          },
        ],
      ];
    });
    if (window.kind !== "closed") return read;
    const held = result.reduce<Coverage>((all, { window: part, passes }) => {
      return part.kind === "closed" && passes > 0 ? put(all, spanOf([part.from, part.to], null)) : all;
    }, []);
    const empty = uncovered(held, days ?? [window.from, window.to]);
    return [
      ...empty.map(([first_day, last_day]) => ({ kind: "closed", first_day, last_day, ...NOTHING }) as const),
      ...read,
    ];
  }

  #after(planned: PlannedWindow, result: readonly Outcome[]): DatedState {
    const { window } = planned;
    if (window.kind === "all") return this.#state;
    const undated = result.find((one) => one.undated !== undefined || one.window.kind === "undated");
    const discoveredAt = this.#newestAfter(result);
    return {
      ...this.#state,
      ...(window.kind !== "undated" && { days: this.#daysAfter(planned, result) }),
      ...{ discoveredAt, ...(undated && this.#undatedAfter(undated)) },
      sources: this.#sourcesAfter(planned),
    };
  }

  /** What a window stands for of the days before yesterday; undefined if there are none. */
  #daysOf({ window, days }: PlannedWindow): DayRange | undefined {
    if (days !== undefined || window.kind === "all" || window.kind === "undated") return days;
    const to = window.kind === "closed" ? window.to : addDays(this.#range.yesterday, -1);
    return window.from <= to ? [window.from, to] : undefined;
  }

  /** Days that no outcome holds were counted empty. */
  #daysAfter(planned: PlannedWindow, result: readonly Outcome[]): Coverage {
    const { days } = this.#state;
    const { window } = planned;
    const range = this.#daysOf(planned);
    if (range === undefined) return days;
    const unproven = result.flatMap(unprovenSpans).reduce<Coverage>(put, []);
    // The days of a single source were read before.
    const read = window.kind === "closed" && window.source !== undefined ? [] : uncovered(unproven, range);
    const border = addDays(dayOf(instant(this.#newestAfter(result) ?? BEGINNING)), -this.#range.lookbackDays);
    const rowsByDay = new Map(result.flatMap(({ days: shown }) => [...shown]));
    const cut = (part: DayRange): readonly DayRange[] =>
      cutByRows(part, rowsByDay, window.kind === "open" ? PARTS : FEW_PARTS, border);
    const spanIn = ([from, to]: DayRange): Span => {
      let rows = 0;
      for (const [day, shown] of rowsByDay) if (day >= from && day <= to) rows += shown;
      return spanOf([from, to], rows);
    };
    const proven = read.reduce((all, part) => prove(all, part, spanIn, cut), days);
    return compact(unproven.reduce(put, proven));
  }

  #undatedAfter({ kind, undated: rows = 0 }: Outcome): Partial<DatedState> {
    if (kind === "missing") return { undated: null };
    return { undated: { rows, seen: rows === 0 ? [] : null }, checked: dayOf(this.#range.latest) };
  }

  /** The sources whose covered days were read, once the last window of one has ended. */
  #sourcesAfter({ window, days }: PlannedWindow): DatedState["sources"] {
    const { sources } = this.#state;
    const source = window.kind === "closed" ? window.source : undefined;
    const last = this.#range.granted.find((one) => one.source === source)?.to;
    return source === undefined || days?.[1] !== last ? sources : [...(sources ?? []), source];
  }

  /** The newest row shown. The cursor never moves backwards. */
  #newestAfter(result: readonly Outcome[]): string | null {
    return result.reduce((cursor, { newest }) => {
      if (newest === undefined) return cursor;
      return cursor === null || instant(newest) > instant(cursor) ? cursorToUtc(newest) : cursor;
    }, this.#state.discoveredAt);
  }

  /** What keeps the stream from being complete; undefined if nothing. */
  #incomplete(): BodyError | undefined {
    const { days, undated } = this.#state;
    const missing = missingDaysOf(days);
    const isUndatedMissing = undated === null && this.#range.undated !== "none" && this.#cause !== undefined;
    if (missing.length === 0 && !isUndatedMissing) return undefined;
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

/** Days that were counted and hold no row. */
const NOTHING = {
  ...({ verdict: "proven", counted_before: 0, counted_after: null, shown: 0 } as const),
  ...{ emitted: 0, suppressed: 0, passes: 0, requests: 0, seconds: 0 },
};

const rangeOf = (window: Window): readonly [Day | null, Day | null] => {
  if (window.kind === "closed") return [window.from, window.to];
  return [window.kind === "open" ? window.from : null, null];
};

/** What an outcome says of days that it did not prove. */
function unprovenSpans({ kind, window }: Outcome): Coverage {
  if (kind === "proven" || window.kind !== "closed") return [];
  return [spanOf([window.from, window.to], null, kind)];
}
