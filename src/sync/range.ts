import { addDays, BEGINNING, type Day, dayOf, earlier, instant, LAST, later } from "../base/time.ts";
import {
  type Coverage,
  clipped,
  covered,
  type DayRange,
  daysIn,
  isProven,
  type Span,
  uncovered,
  withoutDays,
  withStatus,
} from "./coverage.ts";
import type { RowState } from "./state.ts";

/** The settings that decide which days are read, by their names in the config. */
export type DaySettings = {
  readonly startDate: Day | null;
  readonly endDate: Day | null;
  readonly lookbackWindowDays: number;
  readonly rereadDays: number;
  readonly ignoreMissingDays: readonly Day[];
  /** Whether people without a date are read; undefined: if no start and no end is set. */
  readonly readsUndated?: boolean | undefined;
};

/** The settings for days and windows. */
export type ReadSettings = DaySettings & {
  readonly maxWindowRows: number;
  readonly numWorkers: number;
  readonly verifyCounts: boolean;
};

/** Days up to "now" are open, because rows still arrive in yesterday and today. */
type ReadWindow = { readonly from: Day; readonly until: Day | "now" };

/** The parts of a stream that a run reads, in this order. All ranges are closed days, oldest first. */
export type ReadPlan = {
  /** Missing days, each read alone. */
  readonly missing: readonly Day[];
  /** Ranges whose rows disappeared during the last reading. */
  readonly again: readonly DayRange[];
  /** Days before the window that no span contains. */
  readonly holes: readonly DayRange[];
  /** Proven days that `reread_days` requires to be read again. */
  readonly reread: readonly DayRange[];
  /** Undefined: people without a date are not read. `known`: the number of these people at the last reading; null: unknown. */
  readonly undated: { readonly known: number | null } | undefined;
  /** Undefined: the range of the settings ends before the window begins. */
  readonly window: ReadWindow | undefined;
  /** The closed days of the window, without ignored days. */
  readonly closed: readonly DayRange[];
  /** Whether the daily check is due. */
  readonly daily: boolean;
  /** Whether the state was made with another API key. */
  readonly isNewKey: boolean;
};

const LAST_DAY: Day = dayOf(LAST);

/**
 * Decides what a run reads next. The plan depends only on the arguments.
 * @param key digest of the API key's id; undefined: as in the state
 */
export function whatToRead(saved: RowState, settings: DaySettings, today: Day, key?: string): ReadPlan {
  const { startDate, endDate, lookbackWindowDays, ignoreMissingDays: ignored } = settings;
  const start = later(startDate ?? BEGINNING, BEGINNING);
  const end = endDate ?? LAST_DAY;
  const yesterday = addDays(today, -1);
  const from = windowStart(saved, start, yesterday, lookbackWindowDays);
  const lastClosed = earlier(end, addDays(yesterday, -1));
  const before: DayRange = [start, earlier(addDays(from, -1), lastClosed)];
  const { days } = saved;
  const missing = withoutDays(clipped(withStatus(days, "missing"), before), ignored);
  const isNewKey = saved.key !== null && key !== undefined && saved.key !== key;
  const daily = saved.checked !== today;
  const isUndatedDue =
    saved.undated === null || saved.discoveredAt === null || isReset(saved) || daily || isNewKey;
  const readsUndated = settings.readsUndated ?? (startDate === null && endDate === null);
  const known = isNewKey || isReset(saved) ? null : (saved.undated?.rows ?? null);
  return {
    missing: missing.flatMap(daysIn),
    again: withoutDays(clipped(withStatus(days, "again"), before), ignored),
    holes: withoutDays(before[0] <= before[1] ? uncovered(days, before) : [], ignored),
    reread: withoutDays(clipped(covered(days.filter(({ status }) => status === "reread")), before), ignored),
    undated: readsUndated && isUndatedDue ? { known } : undefined,
    window: from > end ? undefined : { from, until: end < yesterday ? end : "now" },
    closed: withoutDays(from <= lastClosed ? [[from, lastClosed]] : [], ignored),
    daily,
    isNewKey,
  };
}

/** Whether a person removed the days or the cursor from the state to read everything again. */
const isReset = ({ days, discoveredAt }: RowState): boolean =>
  days.length === 0 || (discoveredAt === null && days.some(({ rows }) => rows > 0));

/** The first day of the window, at the latest yesterday, because the cursor may be ahead of the service's clock. */
function windowStart({ discoveredAt }: RowState, start: Day, yesterday: Day, lookback: number): Day {
  if (discoveredAt === null) return start;
  return later(start, earlier(addDays(dayOf(instant(discoveredAt)), -lookback), yesterday));
}

/** Whether all days of a span are among the closed days of the window. */
export const readsAll = ({ closed }: ReadPlan, span: Span): boolean =>
  closed.some(([first, last]) => span.from >= first && span.to <= last);

/** The proven spans that the window does not read again. */
export const believedSpans = (days: Coverage, plan: ReadPlan): Coverage =>
  days.filter((span) => isProven(span) && !readsAll(plan, span));
