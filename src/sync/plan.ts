import { addDays, type Day, dayOf, daysBetween, earlier, instant, later } from "../base/time.ts";
import type { DayRange } from "./coverage.ts";
import type { Why } from "./event.ts";
import type { RunRules } from "./prepare.ts";
import type { ReadPlan } from "./range.ts";
import type { Count, Service } from "./service.ts";
import { type ClosedWindow, closedWindow, type DatedWindow, type Window } from "./window.ts";

type PlanContext = Pick<RunRules, "service" | "yesterday"> & {
  readonly windowSize: Pick<WindowSize, "rows" | "maxRows" | "undividedRows">;
};

/** A range of at most this number of rows is one window. */
const UNDIVIDED_ROWS = 50_000;
/** The number of rows of the first planned window, and the limits of later windows. */
const [FIRST_SIZE, MIN_SIZE, MAX_SIZE] = [25_000, 5_000, 100_000];
/** The time (ms) that the export of a window should take. */
const WINDOW_MS = 10_000;
/** Exports with fewer rows do not measure the service's speed. */
const MEASURED_ROWS = 5_000;
/** Windows are planned with this share of the maximum, because days differ. */
const PLANNED_SHARE = 0.75;

/** The number of rows that a window should have: as many as the service exports in ten seconds. */
export class WindowSize {
  /** The setting max_window_rows. A window of several days with more rows is halved. */
  readonly maxRows: number;
  /** Whether no export proved the last window, so that the next window gets only one export. */
  exportsFail = false;
  /** Whether an export had another form than lines of JSON. Then no further export is requested. */
  exportsLackForm = false;
  #rows = FIRST_SIZE;

  constructor(maxWindowRows: number) {
    this.maxRows = maxWindowRows;
  }

  get rows(): number {
    return Math.min(this.#rows, Math.ceil(this.maxRows * PLANNED_SHARE));
  }

  /** A range of at most this number of rows is one window, because a plan would need too many requests. */
  get undividedRows(): number {
    return Math.min(UNDIVIDED_ROWS, this.maxRows);
  }

  /** Adapts the size to the time (ms) that an export took from its request to its end. */
  measure(rows: number, ms: number): void {
    if (rows < MEASURED_ROWS) return;
    this.#rows = Math.min(MAX_SIZE, Math.max(MIN_SIZE, Math.round((rows * WINDOW_MS) / ms)));
  }
}

/** A window to read. `count`: the count of the window, if the plan needed one; the reader counts again if the count is old. */
export type Planned = { readonly window: Window; readonly count?: Count | undefined; readonly why: Why };

/** The window of the run's first count, and the count. */
export type Counted = { readonly window: Window; readonly count: Count };

/** More people without a date are not read every day. The documentation states this number, so it ignores the page size. */
const MAX_UNDATED_DAILY = 1_000;

/** A window has at most this many times the days of the window before it. */
const GROWTH = 4;

/**
 * Yields the windows of a run in the order of `ReadPlan`. Today is read last, because rows move only towards today.
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
  for (const range of plan.closed) {
    const isRange = window.kind === "closed" && window.from === range[0] && window.to === range[1];
    const counted = window.kind === "open" || isRange ? { window, count } : undefined;
    yield* planClosed(range, "lookback", context, counted);
  }
  if (plan.window?.until !== "now") return;
  const from = later(plan.window.from, context.yesterday);
  const isCounted = window.kind === "open" && window.from === from && !isAll;
  yield { window: { kind: "open", from, undated: false }, why: "lookback", ...(isCounted && { count }) };
}

/** Whether one request can read all closed and open days. Ignored days divide the window, because they are not read. */
function isInOneWindow(
  { window, closed }: ReadPlan,
  count: Count,
  { windowSize, yesterday }: PlanContext,
): boolean {
  if (window?.until !== "now" || !count.known || count.rows > windowSize.undividedRows) return false;
  const { from } = window;
  return (
    from >= yesterday || closed.some(([first, last]) => first === from && addDays(last, 1) === yesterday)
  );
}

/** Plans the people without a date. More than `MAX_UNDATED_DAILY` people are read again only if their number has changed. */
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
 * Plans the days of a closed range by the density of rows. The windows cover all days of the range, oldest first.
 * @param counted a count of the range, or of the range and later days
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
  const isSmall = around.kind === "closed" && count.rows <= windowSize.undividedRows;
  if (!count.known || isSmall) return yield { window, count, why };
  const dated = around.kind === "open" ? { ...around, undated: false } : window;
  const oldest = later(first, await oldestDay(dated, last, count.rows, service));
  const empty = closedWindow(first, earlier(addDays(oldest, -1), last));
  if (oldest > first) yield { window: empty, count: { ...count, rows: 0 }, why };
  for await (const part of spans(closedWindow(oldest, last), count.rows, context)) yield { ...part, why };
}

/**
 * Returns the day of the last row in the list (newest first) if no row is older. If a row is older, returns the first day.
 * The caller prefers an open window, because its list keeps its length when a row moves to today.
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

/** Yields consecutive windows with counts. Each window has about `windowSize.rows` rows. */
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
    // If the remaining rows fit into one window, one count is enough.
    const span = left <= windowSize.rows ? rest : Math.min(rest, Math.max(1, Math.floor(days)));
    const window = closedWindow(first, addDays(first, span - 1));
    const count = await service.count(window);
    const fitting = (span * windowSize.rows) / count.rows;
    if (count.rows > Math.min(2 * windowSize.rows, windowSize.maxRows) && span > 1) {
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
