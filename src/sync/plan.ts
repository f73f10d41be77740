import {
  addDays,
  type Day,
  dayOf,
  daysBetween,
  earlier,
  instant,
  LAST,
  later,
  startOf,
} from "../base/time.ts";
import {
  type Coverage,
  type DayRange,
  type DayStatus,
  missingDaysOf,
  put,
  spanOf,
  uncovered,
  without,
  withStatus,
} from "./coverage.ts";
import type { Planned } from "./outcome.ts";
import type { Range } from "./range.ts";
import type { Count, Service } from "./service.ts";
import { type ClosedWindow, closedWindow, type DatedWindow, within } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

/** A window to read, which of its days' statuses it clears, and the days that it covers with those before it that are empty. */
export type PlannedWindow = Planned & { readonly clears: DayStatus | null; readonly days?: DayRange };

/** What a plan needs of the rules of a run. */
type PlanRules = {
  /** Days that are not read. */
  readonly ignoredDays?: readonly Day[];
  readonly api: Service;
  readonly yesterday: Day;
  readonly windowSize: Pick<WindowSize, "rows" | "most" | "smallRange">;
};

const FIRST_TIME = { isRetry: false, clears: null };

type CountedWindow = { readonly window: ClosedWindow; readonly count: Count };

/** A span of days is at most this many times the one before. */
const SPAN_GROWTH = 4;

/**
 * The one home of order: days that earlier runs could not prove, ranges that drained in them, closed days oldest first, those of
 * new sources, rows without a date, the open window. Rows only move towards today, so reading today last lets none fall between two windows.
 */
export async function* planWindows(range: Range, rules: PlanRules): AsyncGenerator<PlannedWindow> {
  if (range.kind === "all") {
    yield { window: { kind: "all" }, ...FIRST_TIME, count: range.count };
    return;
  }
  const { window, holes } = range;
  const last = window?.kind === "closed" ? window.to : dayOf(LAST);
  const rest = window === undefined ? range.state.days : without(range.state.days, [window.from, last]);
  for (const day of missingDaysOf(rest))
    yield { window: closedWindow(day, day), isRetry: false, clears: "missing" };
  for (const days of withStatus(rest, "again")) yield* planClosed(closedWindow(...days), "again", rules);
  for (const days of holes) yield* planClosed(closedWindow(...days), null, rules);
  for (const granted of range.granted) yield* planClosed(granted, null, rules);
  if (window !== undefined) yield* planRange(window, range, rules);
}

async function* planRange(
  window: DatedWindow,
  range: Range,
  rules: PlanRules,
): AsyncGenerator<PlannedWindow> {
  const { count } = range;
  if (window.kind === "closed") {
    yield* planClosed(window, null, rules, { window, count });
    return;
  }
  const lastClosed = addDays(rules.yesterday, -1);
  const { ignoredDays = [] } = rules;
  const isWhole = !ignoredDays.some((day) => day >= window.from && day <= lastClosed);
  const isOneWindow = isWhole && count.known && count.rows <= rules.windowSize.smallRange;
  if (!isOneWindow) yield* planClosed(closedWindow(window.from, lastClosed), null, rules, { window, count });
  yield* planUndated(range, window, isOneWindow);
  const from = isOneWindow ? window.from : later(window.from, rules.yesterday);
  const open: DatedWindow = { kind: "open", from, undated: isOneWindow && window.undated };
  const isCounted = open.from === window.from && open.undated === window.undated;
  yield { window: open, ...FIRST_TIME, count: isCounted ? count : undefined };
}

/** The people without a date, unless the open window brings them. */
function* planUndated(
  { count, undated }: Range,
  window: DatedWindow,
  isOneWindow: boolean,
): Generator<PlannedWindow> {
  const isCounted = window.kind === "open" && window.undated;
  if (undated === "none" || (isCounted && isOneWindow)) return;
  yield {
    window: { kind: "undated" },
    ...FIRST_TIME,
    count: undated !== "pending" ? undated : isCounted ? count : undefined,
  };
}

/**
 * Plans the days of a closed window by their density. Together the windows stand for all its days.
 * @param measured a window that was counted, and may reach further
 */
async function* planClosed(
  window: ClosedWindow,
  clears: "again" | null,
  rules: PlanRules,
  measured?: { readonly window: DatedWindow; readonly count: Count },
): AsyncGenerator<PlannedWindow> {
  const ignored = (rules.ignoredDays ?? []).map((day) => spanOf([day, day], null)).reduce<Coverage>(put, []);
  for (const [from, to] of uncovered(ignored, [window.from, window.to])) {
    const isWhole = from === window.from && to === window.to;
    if (isWhole) yield* planPart(window, clears, rules, measured);
    else yield* planPart(within(window, from, to), clears, rules);
  }
}

/** Plans closed days of which none is ignored. */
async function* planPart(
  window: ClosedWindow,
  clears: "again" | null,
  rules: PlanRules,
  measured?: { readonly window: DatedWindow; readonly count: Count },
): AsyncGenerator<PlannedWindow> {
  let { from } = window;
  const isRetry = clears === "again";
  const count = measured?.count ?? (await rules.api.count(window));
  for await (const part of denseWindows(window, count, rules, measured?.window ?? window)) {
    yield { ...part, isRetry, clears, days: [from, part.window.to] };
    from = addDays(part.window.to, 1);
  }
  const isEmpty = { ...count, rows: 0, known: true, answered: rules.api.now() };
  if (from > window.to) return;
  const rest = within(window, from, window.to);
  yield { window: rest, isRetry, clears, count: isEmpty, days: [from, window.to] };
}

/** Windows that hold all rows of a closed window, oldest first. Days between them are empty. */
async function* denseWindows(
  window: ClosedWindow,
  count: Count,
  rules: PlanRules,
  counted: DatedWindow,
): AsyncGenerator<CountedWindow> {
  if (!count.known) {
    yield { window, count };
  } else if (counted === window && count.rows <= rules.windowSize.smallRange) {
    if (count.rows > 0) yield { window, count };
  } else {
    const oldest = await oldestDay(counted, count, rules);
    if (oldest <= window.to) yield* spans(within(window, oldest, window.to), count.rows, rules);
  }
}

/** The day of the row that stands last in the list, which is newest first, if nothing lies before it; else the first day that holds a row. */
async function oldestDay(window: DatedWindow, count: Count, { api, yesterday }: PlanRules): Promise<Day> {
  const { from } = window;
  const dated: DatedWindow = window.kind === "open" ? { ...window, undated: false } : window;
  const end = window.kind === "closed" ? window.to : addDays(yesterday, -1);
  const firstWithRows = (to: Day): Promise<Day> =>
    bisect(from, to, async (middle) => (await api.count(within(window, from, middle))).rows > 0);
  const last = await api.rowAt(dated, count.rows);
  const at = instant(last?.row?.cursor ?? "");
  if (Number.isNaN(at)) return await firstWithRows(end);
  const day = dayOf(at);
  if (day <= from) return from;
  const before = within(window, from, earlier(addDays(day, -1), end));
  const { rows } = await api.count(before);
  if (rows === 0) return addDays(before.to, 1);
  return await firstWithRows(before.to);
}

/** The first day up to which there are rows; the day after `to` if there is none. */
async function bisect(from: Day, to: Day, holdsUpTo: (day: Day) => Promise<boolean>): Promise<Day> {
  let low = from;
  let high = addDays(to, 1);
  while (low < high) {
    const middle = dayOf((startOf(low) + startOf(high)) / 2);
    if (await holdsUpTo(middle)) high = middle;
    else low = addDays(middle, 1);
  }
  return low;
}

/** Consecutive windows of about as many rows as the window size, each with its count; those that hold nothing are left out. */
async function* spans(
  range: ClosedWindow,
  rows: number,
  { api, windowSize }: PlanRules,
): AsyncGenerator<CountedWindow> {
  const { from, to } = range;
  let first = from;
  let left = rows;
  let days = (daysBetween(from, to) * windowSize.rows) / Math.max(1, rows);
  while (first <= to) {
    const rest = daysBetween(first, to);
    // What is left of the total fits one window: one count says so of all days at once.
    const span = left <= windowSize.rows ? rest : Math.min(rest, Math.max(1, Math.floor(days)));
    const window = within(range, first, addDays(first, span - 1));
    const count = await api.count(window);
    if (count.rows > Math.min(2 * windowSize.rows, windowSize.most) && span > 1) {
      left = Math.max(left, count.rows);
      days = Math.min(span - 1, (span * windowSize.rows) / count.rows);
      continue;
    }
    left -= count.rows;
    first = addDays(window.to, 1);
    if (count.rows > 0) yield { window, count };
    days = count.rows === 0 ? 2 * span : Math.min(SPAN_GROWTH * span, (span * windowSize.rows) / count.rows);
  }
}
