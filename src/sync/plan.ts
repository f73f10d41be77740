import { addDays, type Day, dayOf, daysBetween, earlier, instant, later, startOf } from "../base/time.ts";
import type { DayRange } from "./coverage.ts";
import type { Planned } from "./outcome.ts";
import type { ReadPlan } from "./range.ts";
import type { Count, Service } from "./service.ts";
import { type ClosedWindow, closedWindow, type DatedWindow } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

export type PlanContext = {
  readonly service: Service;
  readonly yesterday: Day;
  readonly windowSize: Pick<WindowSize, "rows" | "most" | "smallRange">;
};

/** A window to read, and the closed days that it covers together with the empty days before it. */
export type PlannedWindow = Planned & {
  readonly days?: DayRange;
  /** Every run reads these days, so that most of the rows were delivered before. */
  readonly isReread: boolean;
};

/** The window of the run's first count, and the count. */
export type Counted = { readonly window: DatedWindow; readonly count: Count };
type CountedWindow = { readonly window: ClosedWindow; readonly count: Count };

/** More people without a date than these are not read every day. */
const MAX_UNDATED_DAILY = 1_000;

/** A range of days is at most this many times as long as the one before. */
const GROWTH = 4;

/**
 * The windows of a run, in order: missing days, ranges to read again, holes, people without a date, the closed days of the
 * window, and the days from yesterday on. Rows only move towards today, so today is read last.
 */
export async function* planWindows(
  plan: ReadPlan,
  counted: Counted,
  context: PlanContext,
): AsyncGenerator<PlannedWindow> {
  const once = { isRetry: false, isReread: false };
  const reread = { isRetry: false, isReread: true };
  for (const day of plan.missing) yield* planClosed([day, day], once, context);
  for (const range of plan.again) yield* planClosed(range, { ...once, isRetry: true }, context);
  for (const range of plan.holes) yield* planClosed(range, once, context);
  const { window, closed } = plan;
  const { count } = counted;
  const lastClosed = addDays(context.yesterday, -1);
  const isOneWindow = isInOneWindow(plan, count, context);
  const isUndatedCounted = counted.window.kind === "open" && counted.window.undated;
  if (!(isOneWindow && isUndatedCounted))
    yield* planUndated(plan, isUndatedCounted ? count : undefined, context);
  if (isOneWindow) {
    const { from } = counted.window;
    const days = from <= lastClosed ? { days: [from, lastClosed] as const } : {};
    yield { ...counted, ...days, ...reread };
    return;
  }
  for (const range of closed) yield* planClosed(range, reread, context, counted);
  if (window?.until !== "now") return;
  const open = { kind: "open", from: later(window.from, context.yesterday), undated: false } as const;
  yield {
    window: open,
    ...reread,
    ...(open.from === counted.window.from && !isUndatedCounted && { count }),
  };
}

/** A small account is read by one request, people without a date included. */
function isInOneWindow(
  { window, closed }: ReadPlan,
  count: Count,
  { windowSize, yesterday }: PlanContext,
): boolean {
  if (window?.until !== "now" || !count.known || count.rows > windowSize.smallRange) return false;
  // Ignored days are not read, so they divide the window.
  if (window.from >= yesterday) return true;
  return closed.length === 1 && closed[0]?.[0] === window.from && closed[0][1] === addDays(yesterday, -1);
}

/** Many people without a date are read again only if their number has changed. */
async function* planUndated(
  { undated }: ReadPlan,
  counted: Count | undefined,
  { service }: PlanContext,
): AsyncGenerator<PlannedWindow> {
  if (undated === undefined) return;
  const window = { kind: "undated" } as const;
  const count = counted ?? (await service.count(window));
  if (count.known && count.undated > MAX_UNDATED_DAILY && count.undated === undated.known) return;
  yield { window, isRetry: false, isReread: true, count };
}

/**
 * Plans the days of a closed range by their density. Together the windows cover all its days.
 * @param counted a window that contains the range and may reach further
 */
async function* planClosed(
  [first, last]: DayRange,
  kind: Pick<PlannedWindow, "isRetry" | "isReread">,
  context: PlanContext,
  counted?: Counted,
): AsyncGenerator<PlannedWindow> {
  const range = closedWindow(first, last);
  const isSame =
    counted?.window.kind === "closed" && counted.window.from === first && counted.window.to === last;
  const count =
    isSame || counted?.window.kind === "open" ? counted.count : await context.service.count(range);
  const around = isSame || counted === undefined ? range : counted.window;
  let from = first;
  for await (const part of denseWindows(range, count, context, around)) {
    yield { ...part, ...kind, days: [from, part.window.to] };
    from = addDays(part.window.to, 1);
  }
  if (from > last) return;
  const nothing = { ...count, rows: 0, known: true, answered: context.service.now() };
  yield { window: closedWindow(from, last), ...kind, count: nothing, days: [from, last] };
}

/** Windows that contain all rows of a closed range, oldest first. Days between them are empty. */
async function* denseWindows(
  range: ClosedWindow,
  count: Count,
  context: PlanContext,
  counted: DatedWindow,
): AsyncGenerator<CountedWindow> {
  if (!count.known) {
    yield { window: range, count };
  } else if (counted === range && count.rows <= context.windowSize.smallRange) {
    if (count.rows > 0) yield { window: range, count };
  } else {
    const oldest = await oldestDay(counted, count, context);
    const from = later(range.from, oldest);
    if (from <= range.to) yield* spans(closedWindow(from, range.to), count.rows, context);
  }
}

/** The day of the last row in the list, which is newest first, if nothing lies before it; else the first day that holds a row. */
async function oldestDay(
  window: DatedWindow,
  count: Count,
  { service, yesterday }: PlanContext,
): Promise<Day> {
  const { from } = window;
  const dated: DatedWindow = window.kind === "open" ? { ...window, undated: false } : window;
  const end = window.kind === "closed" ? window.to : addDays(yesterday, -1);
  const firstWithRows = (to: Day): Promise<Day> =>
    bisect(from, to, async (middle) => (await service.count(closedWindow(from, middle))).rows > 0);
  const last = await service.rowAt(dated, count.rows);
  const at = instant(last?.row?.cursor ?? "");
  if (Number.isNaN(at)) return await firstWithRows(end);
  const day = dayOf(at);
  if (day <= from) return from;
  const before = closedWindow(from, earlier(addDays(day, -1), end));
  const { rows } = await service.count(before);
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
  { service, windowSize }: PlanContext,
): AsyncGenerator<CountedWindow> {
  const { from, to } = range;
  let first = from;
  let left = rows;
  let days = (daysBetween(from, to) * windowSize.rows) / Math.max(1, rows);
  while (first <= to) {
    const rest = daysBetween(first, to);
    // The rest of the total fits one window: one count serves all its days.
    const span = left <= windowSize.rows ? rest : Math.min(rest, Math.max(1, Math.floor(days)));
    const window = closedWindow(first, addDays(first, span - 1));
    const count = await service.count(window);
    if (count.rows > Math.min(2 * windowSize.rows, windowSize.most) && span > 1) {
      left = Math.max(left, count.rows);
      days = Math.min(span - 1, (span * windowSize.rows) / count.rows);
      continue;
    }
    left -= count.rows;
    first = addDays(window.to, 1);
    if (count.rows > 0) yield { window, count };
    days = count.rows === 0 ? 2 * span : Math.min(GROWTH * span, (span * windowSize.rows) / count.rows);
  }
}
