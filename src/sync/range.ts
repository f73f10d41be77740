import { addDays, BEGINNING, type Day, dayOf, earlier, instant, LAST, later, startOf } from "../base/time.ts";
import { type DayRange, prove, uncovered, without } from "./coverage.ts";
import { checkDay, type Found } from "./daily-check.ts";
import { type Count, NOT_COUNTED, type Service } from "./service.ts";
import type { DatedState } from "./state.ts";
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
  /** `all`: one window without days. */
  readonly kind: "days" | "all";
  /** What the stream's state says before the run, under the settings of the run. */
  readonly state: DatedState;
  /** Of `window`; the run's first count where there is none. */
  readonly count: Count;
  readonly yesterday: Day;
  /** The days that are read whatever the state says; undefined if none lies before `end_date`. */
  readonly window: DatedWindow | undefined;
  /** Closed days before the window that the state does not hold, oldest first. */
  readonly holes: readonly DayRange[];
  /** The days behind the window of sources that the key could not read before. */
  readonly granted: readonly ClosedWindow[];
  /** Whether people without a date are read: all of them, or as many as were counted, less those delivered before. */
  readonly undated: "none" | "pending" | Count;
  /** How many days before the cursor the next run begins. */
  readonly lookbackDays: number;
  /** Epoch ms: when the run's first count was asked. The cursor is of no later row. */
  readonly latest: number;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
  /** What the operator should know of the state; undefined: nothing. */
  readonly warning?: string | undefined;
};

const LAST_DAY: Day = dayOf(LAST);

/** The range of a stream whose rows have no day to filter by. */
export async function measureAll(state: DatedState, isCounted: boolean, api: Service): Promise<Range> {
  const count = isCounted ? await api.count({ kind: "all" }) : NOT_COUNTED;
  return {
    ...{ kind: "all", state, count, yesterday: BEGINNING, window: undefined, holes: [], undated: "none" },
    ...{ granted: [], lookbackDays: 0, latest: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY },
  };
}

/**
 * Counts the range of a dated stream, and says what is to be read of it: the days that the state does not hold, and those
 * from its cursor less the lookback on.
 * @param saved the stream's state as it came in, or a new one
 */
export async function measureDays(saved: DatedState, settings: ReadSettings, api: Service): Promise<Range> {
  const { startDate, endDate, lookbackWindowDays, ignoreMissingDays } = settings;
  const start = later(startDate ?? BEGINNING, BEGINNING);
  const bringsUndated = settings.bringsUndated ?? (startDate === null && endDate === null);
  const firstDay = ({ discoveredAt }: DatedState): Day =>
    discoveredAt === null ? start : later(start, addDays(dayOf(instant(discoveredAt)), -lookbackWindowDays));
  const rangeFrom = (from: Day): DatedWindow =>
    endDate === null
      ? { kind: "open", from, undated: bringsUndated && from === BEGINNING && saved.undated === null }
      : closedWindow(earlier(from, endDate), endDate);

  let state = saved;
  let first = rangeFrom(firstDay(state));
  let count = await api.count(first);
  // One wrong clock among several servers is no reason to doubt the state.
  if (isAhead(state, count)) count = await api.count(first);
  if (isAhead(state, count)) {
    state = rewound(state, start, yesterdayOf(count), lookbackWindowDays);
    first = rangeFrom(firstDay(state));
    count = await api.count(first);
  }
  const yesterday = yesterdayOf(count);
  const from = firstDay(state);
  let window: DatedWindow | undefined = first;
  let measured = count;
  if (endDate !== null && from > endDate) window = undefined;
  else if (endDate !== null && endDate >= yesterday) {
    window = { kind: "open", from, undated: false };
    measured = await api.count(window);
  }
  const today = dayOf(count.asked);
  const behind: DayRange = [start, earlier(addDays(earlier(from, yesterday), -1), endDate ?? LAST_DAY)];
  const days = ignoreMissingDays
    .filter((day) => state.days.some(([a, b, , status]) => status === "missing" && day >= a && day <= b))
    .reduce((all, day) => prove(all, [day, day]), without(state.days, [yesterday, LAST_DAY]));
  const known: DatedState = { ...state, days, asked: new Date(count.asked).toISOString() };
  const isDue = known.checked !== today;
  const found: Found =
    isDue && count.known && days.length > 0
      ? await checkDay(known, behind, measured, bringsUndated, api)
      : { state: known, granted: [] };
  const isPending = bringsUndated && (known.undated === null || (isDue && !count.known));
  const undated = isPending ? "pending" : (found.undated ?? "none");
  return {
    kind: "days",
    state: undated === "none" ? { ...found.state, checked: today } : found.state,
    count: measured,
    ...{ yesterday, window, undated, granted: found.granted, lookbackDays: lookbackWindowDays },
    holes: from > start ? uncovered(found.state.days, behind) : [],
    latest: count.asked,
    until: endDate === null ? Number.POSITIVE_INFINITY : startOf(addDays(endDate, 1)) - 1,
    ...(state !== saved && {
      warning: `says ${saved.discoveredAt}, which is later than the service's clock: the days from ${from} on are read again`,
    }),
  };
}

const yesterdayOf = ({ asked }: Count): Day => addDays(dayOf(asked), -1);

const isAhead = ({ discoveredAt }: DatedState, { answered }: Count): boolean =>
  discoveredAt !== null && instant(discoveredAt) > answered;

/**
 * The state with a cursor that fits the service's clock: the run reads from the first day that no span holds, or from
 * yesterday less the lookback if that is earlier. A full refresh begins again.
 */
function rewound(state: DatedState, start: Day, yesterday: Day, lookback: number): DatedState {
  const { full_refresh, days } = state;
  if (full_refresh !== null) return { ...state, discoveredAt: null, days: [], undated: null };
  const from = uncovered(days, [start, LAST_DAY]).reduce(
    (first, [hole]) => earlier(first, hole),
    addDays(yesterday, -lookback),
  );
  const discoveredAt = new Date(startOf(addDays(from, lookback))).toISOString();
  return { ...state, discoveredAt };
}
