import type { DayRange } from "../streams/coverage.ts";
import type { StreamApi } from "../streams/stream-api.ts";
import { closedWindow, type DatedWindow } from "../streams/window.ts";
import { addDays, BEGINNING, type Day, dayOf, earlier, instant } from "../time.ts";

/** What planning asks the service. Each call is one request. */
type Counter = Pick<StreamApi, "count" | "rowAt">;

/** How many rows some days hold, and when that was asked (epoch ms by the service's clock). */
export type Size = { readonly rows: number; readonly asked: number };

/** Dated rows only. `from` null: the beginning. `to` null: up to now. */
export function shardWindow(from: Day | null, to: Day | null): DatedWindow {
  const first = from ?? BEGINNING;
  return to === null ? { kind: "open", from: first, undated: false } : closedWindow(first, to);
}

/** The day of the row at a place of a range's list, newest first, 1 is the newest; undefined if the list does not say. */
async function dayAt(api: Counter, range: DatedWindow, place: number): Promise<Day | undefined> {
  const at = instant((await api.rowAt(range, place))?.row?.cursor ?? "");
  return Number.isNaN(at) ? undefined : dayOf(at);
}

/** The days of one shard, both included. `from` null: the beginning. `to` null: the open shard, which reads up to now. */
export type Cut = { readonly from: Day | null; readonly to: Day | null; readonly rows: number };

/** A quarter of an hour of a service that streams 1,000 rows a second. */
const ROWS_PER_SHARD = 1_000_000;
const MOST_SHARDS = 1_000;

/** Days before yesterday only lose rows, so they can be read in any order. */
const lastClosed = ({ asked }: Size): Day => addDays(dayOf(asked), -2);

const isOpenShard = (to: Day | null, size: Size): to is null => to === null || to > lastClosed(size);

/** How many shards to cut a range into: as many as are asked for, or one for each million rows and the open one. */
export function shardsFor(size: Size, to: Day | null, wanted: number | undefined): number {
  const usual = Math.ceil(size.rows / ROWS_PER_SHARD) + (isOpenShard(to, size) ? 1 : 0);
  return Math.min(MOST_SHARDS, Math.max(1, wanted ?? usual));
}

/**
 * Cuts a range between days into shards of about the same number of rows, oldest first, with two requests a shard. The
 * last one is open, unless the range ends before yesterday. There are fewer where there are too few days or rows.
 * @param size of the range
 */
export async function* cutRange(
  api: Counter,
  { from, to }: Pick<Cut, "from" | "to">,
  size: Size,
  shards: number,
): AsyncGenerator<Cut> {
  const latest = isOpenShard(to, size) ? lastClosed(size) : addDays(to, -1);
  let start = from;
  let before = 0;
  for (let nth = 1; nth < shards && (start === null || start <= latest); nth++) {
    const target = Math.floor((nth * size.rows) / shards);
    const day =
      (await dayAt(api, shardWindow(from, to), Math.max(1, size.rows - target))) ??
      (await dayByCounts(api, from, [start ?? FIRST_GUESS, latest], target));
    const isFree = (end: Day): boolean => start === null || end >= start;
    const end = [addDays(day, -1), day].map((last) => earlier(last, latest)).find(isFree);
    const held = end === undefined ? 0 : (await api.count(shardWindow(start, end))).rows;
    if (end === undefined || held === 0) continue;
    yield { from: start, to: end, rows: held };
    start = addDays(end, 1);
    before += held;
  }
  yield { from: start, to: isOpenShard(to, size) ? null : to, rows: Math.max(0, size.rows - before) };
}

const FIRST_GUESS = "1970-01-02" as Day;

/** The first day up to which a range holds at least `target` rows, for a service whose list does not go so deep. */
async function dayByCounts(
  api: Counter,
  from: Day | null,
  [first, last]: DayRange,
  target: number,
): Promise<Day> {
  let [low, high] = [first, last];
  while (low < high) {
    const middle = dayOf((Date.parse(low) + Date.parse(high)) / 2);
    if ((await api.count(shardWindow(from, middle))).rows < target) low = addDays(middle, 1);
    else high = middle;
  }
  return low;
}
