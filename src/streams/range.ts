import { addDays, BEGINNING, type Day, dayOf, earlier, endOf, instant, later, startOf } from "../time.ts";
import type { DayRange } from "./coverage.ts";
import type { DatedState } from "./dated-state.ts";
import { type Count, NOT_COUNTED, type StreamApi } from "./stream-api.ts";
import { type ClosedWindow, closedWindow, type DatedWindow } from "./window.ts";

/** What the operator asked for, as far as it decides what is read. Names are those of the config. */
export type ReadSettings = {
  readonly startDate: Day | null;
  readonly endDate: Day | null;
  readonly lookbackWindowDays: number;
  readonly maxWindowRows: number;
  readonly numWorkers: number;
  readonly idleTimeoutSeconds: number;
  readonly verifyCounts: boolean;
  readonly ignoreMissingDays: readonly Day[];
  /** Whether people without a date are read; undefined: if neither a start nor an end is set. */
  readonly bringsUndated?: boolean | undefined;
};

/** All that is decided of a stream before its first row. */
export type Range = {
  /** `all`: one window without days. `ahead`: the state's cursor lies in the future, so there is nothing to read. */
  readonly kind: "days" | "all" | "ahead";
  /** What the stream's state says before the run, under the settings of the run. */
  readonly state: DatedState;
  /** The range's first count, and the run's: no checkpoint passes the moment when it was asked. */
  readonly count: Count;
  readonly yesterday: Day;
  /** The days of the range; undefined if none lies before `end_date`. */
  readonly window: DatedWindow | undefined;
  /** The first day that the state will cover; null is the beginning. */
  readonly start: Day | null;
  /** Days before the state's first, less those already read. */
  readonly gap: ClosedWindow | undefined;
  /** Whether the gap meets the state's first day, so that it is closed once it is read. */
  readonly isGapWhole: boolean;
  /** Days that earlier runs could not prove, and ranges that drained in them, as far as the range does not hold them. */
  readonly missingDays: readonly Day[];
  readonly recheck: readonly DayRange[];
  /** Whether people without a date are read: all of them, or only if there are not this many any more. */
  readonly undated: "none" | "pending" | number;
  /** No checkpoint passes it: when the first count was asked, or the end of `end_date`. */
  readonly latest: string;
  /** The end of a range that has one, as it stands in state. */
  readonly reached: string | undefined;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
};

/** The range of a stream whose rows have no day to filter by. */
export async function measureAll(state: DatedState, isCounted: boolean, api: StreamApi): Promise<Range> {
  const count = isCounted ? await api.count({ kind: "all" }) : NOT_COUNTED;
  return {
    ...{ kind: "all", state, count, yesterday: BEGINNING, window: undefined, start: null, gap: undefined },
    ...{ isGapWhole: true, missingDays: [], recheck: [], undated: "none", latest: "", reached: undefined },
    until: Number.POSITIVE_INFINITY,
  };
}

/**
 * Counts the range of a dated stream, and says what is to be read of it.
 * @param saved the stream's state as it came in, or a new one
 */
export async function measureDays(saved: DatedState, settings: ReadSettings, api: StreamApi): Promise<Range> {
  const { startDate, endDate } = settings;
  const state = stateUnder(saved, settings);
  const isUnrestricted = settings.bringsUndated ?? (startDate === null && endDate === null);
  const isPending = isUnrestricted && state.undated === "pending";
  const wanted = firstDay(state, settings);
  const first = firstWindow(wanted, endDate, isPending && startDate === null && state.discoveredAt === null);
  const count = await api.count(first);
  const today = dayOf(count.asked);
  const yesterday = addDays(today, -1);
  const gap = gapOf(state, settings, yesterday);
  const from = gap?.openEnd ?? wanted;
  const window = windowOf(first, from, endDate, yesterday);
  const asked = new Date(count.asked).toISOString();
  const isAhead = saved.discoveredAt !== null && instant(saved.discoveredAt) > count.answered;
  return {
    kind: isAhead ? "ahead" : "days",
    state: {
      ...(isAhead ? { ...saved, missing_days: state.missing_days } : state),
      shard: shardAsked(state, asked),
    },
    count: window === undefined || isSame(window, first) ? count : await api.count(window),
    yesterday,
    window,
    start: state.from === null || startDate === null ? null : earlier(state.from, startDate),
    gap: gap !== undefined && gap.window.from <= gap.window.to ? gap.window : undefined,
    isGapWhole: gap === undefined || gap.isWhole,
    missingDays: state.missing_days.filter((day) => window === undefined || !holds(window, day)),
    recheck: state.recheck.flatMap((range) => (window === undefined ? [range] : outside(range, window))),
    undated: isPending ? "pending" : undatedToCheck(state, isUnrestricted, today),
    latest: endDate !== null && endOf(endDate) < asked ? endOf(endDate) : asked,
    reached: window?.kind === "closed" ? endOf(window.to) : undefined,
    until: endDate === null ? Number.POSITIVE_INFINITY : startOf(addDays(endDate, 1)) - 1,
  };
}

/** A run of a shard says when it began to count: the open shard must do so after all others have ended. */
const shardAsked = ({ shard }: DatedState, asked: string): DatedState["shard"] =>
  shard === null ? null : { ...shard, done: false, asked, ended: null };

/** The people without a date are counted again in the first unrestricted run of a day: the newest of them match no filter. */
function undatedToCheck(state: DatedState, isUnrestricted: boolean, today: Day): "none" | number {
  const isDue = isUnrestricted && state.from === null && state.undated_checked !== today;
  return isDue ? state.undated_rows : "none";
}

/** What an incoming state means under the settings of this run. Days that they leave out count as covered no longer. */
function stateUnder(
  saved: DatedState,
  { startDate, ignoreMissingDays, bringsUndated }: ReadSettings,
): DatedState {
  const { discoveredAt } = saved;
  const state: DatedState = {
    ...saved,
    missing_days: saved.missing_days.filter((day) => !ignoreMissingDays.includes(day)),
    undated: bringsUndated === true ? saved.undated : undatedUnder(saved, startDate),
  };
  const leavesOut =
    discoveredAt === null || (startDate !== null && startDate >= dayOf(instant(discoveredAt)));
  return leavesOut ? { ...state, from: startDate, gap: null } : state;
}

/** A start_date leaves the people without a date out; once it is taken away they are still to come. */
function undatedUnder(
  { discoveredAt, from, undated }: DatedState,
  startDate: Day | null,
): DatedState["undated"] {
  if (startDate === null) return from === null ? undated : "pending";
  return discoveredAt === null ? "done" : undated;
}

/** Where an incremental read begins again: its cursor less the lookback, but not before what is asked for or covered. */
function firstDay({ discoveredAt, from }: DatedState, { startDate, lookbackWindowDays }: ReadSettings): Day {
  const first = startDate ?? BEGINNING;
  if (discoveredAt === null) return first;
  return later(later(first, from ?? first), addDays(dayOf(instant(discoveredAt)), -lookbackWindowDays));
}

function firstWindow(from: Day, endDate: Day | null, undated: boolean): DatedWindow {
  if (endDate === null) return { kind: "open", from, undated };
  return closedWindow(earlier(from, endDate), endDate);
}

/** The window of the range; undefined if nothing lies before `end_date`. */
function windowOf(
  first: DatedWindow,
  from: Day,
  endDate: Day | null,
  yesterday: Day,
): DatedWindow | undefined {
  if (endDate !== null && from > endDate) return undefined;
  const isOpen = endDate === null || endDate >= yesterday;
  if (!isOpen) return closedWindow(from, endDate);
  return { kind: "open", from, undated: first.kind === "open" && first.undated && first.from === from };
}

const isSame = (a: DatedWindow, b: DatedWindow): boolean => a.kind === b.kind && a.from === b.from;

type Gap = {
  readonly window: ClosedWindow;
  readonly isWhole: boolean;
  /** Where the range must begin, because days between the gap and the state's first are not closed yet. */
  readonly openEnd: Day | undefined;
};

/** The days between an earlier start than the state knows and the state's first day, less those already read. */
function gapOf(
  { from, gap }: DatedState,
  { startDate, endDate }: ReadSettings,
  yesterday: Day,
): Gap | undefined {
  const start = startDate ?? BEGINNING;
  if (from === null || start >= from) return undefined;
  const first = gap !== null && gap.from === startDate ? addDays(gap.to, 1) : start;
  const last = earlier(addDays(from, -1), addDays(yesterday, -1));
  const to = endDate === null ? last : earlier(last, endDate);
  const next = addDays(to, 1);
  const isWhole = to === last;
  return { window: closedWindow(first, to), isWhole, openEnd: isWhole && next < from ? next : undefined };
}

/** A day that is read with the range all the same is not read before it. */
function holds(window: DatedWindow, day: Day): boolean {
  return day >= window.from && (window.kind === "open" || day <= window.to);
}

/** The parts of a range of days that a window does not hold. */
export function outside(
  [first, last]: DayRange,
  window: { readonly from: Day; readonly to?: Day },
): readonly DayRange[] {
  const parts: DayRange[] = [];
  if (first < window.from) parts.push([first, earlier(last, addDays(window.from, -1))]);
  if (window.to !== undefined && last > window.to) parts.push([later(first, addDays(window.to, 1)), last]);
  return parts;
}
