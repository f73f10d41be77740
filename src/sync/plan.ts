import { addDays, type Day, dayOf, daysBetween, earlier, instant, later } from "../base/time.ts";
import type { DayRange } from "./coverage.ts";
import type { Why } from "./event.ts";
import type { ReadPlan } from "./range.ts";
import type { Count, Service } from "./service.ts";
import { type ClosedWindow, closedWindow, type DatedWindow, type Window } from "./window.ts";
import type { WindowSize } from "./window-size.ts";

type PlanContext = {
  readonly service: Service;
  readonly yesterday: Day;
  readonly windowSize: Pick<WindowSize, "rows" | "most" | "smallRange">;
};

/** A window to read. `count`: its own, if it was counted; the reader counts again if it is too old. */
export type Planned = {
  readonly window: Window;
  readonly count?: Count | undefined;
  readonly why: Why;
};

/** The window of the run's first count, and the count. */
export type Counted = { readonly window: Window; readonly count: Count };

/** More people without a date are not read every day. The number is promised to users: it does not follow from the page size. */
const MAX_UNDATED_DAILY = 1_000;

/** A range of days is at most this many times as long as the one before. */
const GROWTH = 4;

/**
 * The windows of a run, in order: missing days, ranges to read again, holes, days whose turn it is, people without a date, the
 * closed days of the window, and the days from yesterday on. Rows only move towards today, so today is read last.
 * @param plan undefined: the stream has no days, so it is one window
 */
export async function* planWindows(
  { plan, window, count }: Counted & { readonly plan: ReadPlan | undefined },
  context: PlanContext,
): AsyncGenerator<Planned> {
  if (plan === undefined) return yield { window, count, why: "new" };
  for (const day of plan.missing) yield* planClosed([day, day], "new", context);
  for (const range of plan.again) yield* planClosed(range, "retry", context);
  for (const range of plan.holes) yield* planClosed(range, "new", context);
  for (const range of plan.reread) yield* planClosed(range, "turn", context);
  const isAll = window.kind === "open" && window.undated;
  const isOne = isInOneWindow(plan, count, context);
  if (plan.undated !== undefined && !(isOne && isAll))
    yield* planUndated(plan.undated, isAll ? count : undefined, context);
  if (isOne) return yield { window, count, why: "lookback" };
  for (const range of plan.closed)
    yield* planClosed(
      range,
      "lookback",
      context,
      window.kind === "open" || isRange(window, range) ? { window, count } : undefined,
    );
  if (plan.window?.until !== "now") return;
  const from = later(plan.window.from, context.yesterday);
  const isCounted = window.kind === "open" && window.from === from && !isAll;
  yield { window: { kind: "open", from, undated: false }, why: "lookback", ...(isCounted && { count }) };
}

const isRange = (window: Window, [first, last]: DayRange): boolean =>
  window.kind === "closed" && window.from === first && window.to === last;

/** A small account is read by one request, people without a date included. Ignored days are not read, so they divide the window. */
function isInOneWindow(
  { window, closed }: ReadPlan,
  count: Count,
  { windowSize, yesterday }: PlanContext,
): boolean {
  if (window?.until !== "now" || !count.known || count.rows > windowSize.smallRange) return false;
  const { from } = window;
  return (
    from >= yesterday || closed.some(([first, last]) => first === from && addDays(last, 1) === yesterday)
  );
}

/** Many people without a date are read again only if their number has changed. */
async function* planUndated(
  before: { readonly known: number | null },
  counted: Count | undefined,
  { service }: PlanContext,
): AsyncGenerator<Planned> {
  const window = { kind: "undated" } as const;
  const count = counted ?? (await service.count(window));
  if (count.known && count.undated > MAX_UNDATED_DAILY && count.undated === before.known) return;
  yield { window, why: "lookback", count };
}

/**
 * Plans the days of a closed range by their density. Together the windows cover all its days, oldest first.
 * @param counted a window that contains the range and may reach further
 */
async function* planClosed(
  [first, last]: DayRange,
  why: Why,
  context: PlanContext,
  counted?: Counted,
): AsyncGenerator<Planned> {
  const { service, windowSize } = context;
  const window = closedWindow(first, last);
  const { window: around, count } = counted ?? { window, count: await service.count(window) };
  const isSmall = around.kind === "closed" && count.rows <= windowSize.smallRange;
  if (!count.known || isSmall) return yield { window, count, why };
  const dated = around.kind === "open" ? { ...around, undated: false } : window;
  const oldest = later(first, await oldestDay(dated, last, count.rows, service));
  if (oldest > first)
    yield {
      window: closedWindow(first, earlier(addDays(oldest, -1), last)),
      count: { ...count, rows: 0 },
      why,
    };
  for await (const part of spans(closedWindow(oldest, last), count.rows, context)) yield { ...part, why };
}

/**
 * Returns the day of the last row in the list, which is newest first, if nothing lies before it; else the window's first day.
 * A row that moves to today leaves the last place of a closed list empty. A list of an open window keeps it, and its length.
 */
async function oldestDay(window: DatedWindow, to: Day, rows: number, service: Service): Promise<Day> {
  const { from } = window;
  const last = await service.rowAt(window, rows);
  const at = instant(last?.row?.cursor ?? "");
  if (Number.isNaN(at) || dayOf(at) <= from) return from;
  const oldest = earlier(dayOf(at), addDays(to, 1));
  const before = await service.count(closedWindow(from, addDays(oldest, -1)));
  return before.rows === 0 ? oldest : from;
}

/** Consecutive windows of about as many rows as the window size, each with its count. */
async function* spans(
  { from, to }: ClosedWindow,
  rows: number,
  { service, windowSize }: PlanContext,
): AsyncGenerator<{ readonly window: ClosedWindow; readonly count: Count }> {
  let first = from;
  let left = rows;
  let days = (daysBetween(from, to) * windowSize.rows) / Math.max(1, rows);
  while (first <= to) {
    const rest = daysBetween(first, to);
    // The rest of the total fits one window: one count serves all its days.
    const span = left <= windowSize.rows ? rest : Math.min(rest, Math.max(1, Math.floor(days)));
    const window = closedWindow(first, addDays(first, span - 1));
    const count = await service.count(window);
    const fitting = (span * windowSize.rows) / count.rows;
    if (count.rows > Math.min(2 * windowSize.rows, windowSize.most) && span > 1) {
      left = Math.max(left, count.rows);
      days = Math.min(span - 1, fitting);
      continue;
    }
    left -= count.rows;
    first = addDays(window.to, 1);
    yield { window, count };
    days = count.rows === 0 ? 2 * span : Math.min(GROWTH * span, fitting);
  }
}
