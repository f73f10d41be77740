import { addDays, BEGINNING, type Day, dayOf, earlier, instant, later } from "../base/time.ts";
import type { Service } from "../sync/service.ts";
import { closedWindow, type DatedWindow } from "../sync/window.ts";

/** The requests of planning. Each call is one request. */
type Counter = Pick<Service, "count" | "rowAt">;

/** The number of rows of a range of days, and the moment of the count (epoch ms by the service's clock). */
export type Size = { readonly rows: number; readonly asked: number };

/** The first and last day of a shard. `from` null: the beginning. `to` null: the open shard, which reads up to now. */
export type DateRange = { readonly from: Day | null; readonly to: Day | null; readonly rows: number };

/** The window of a shard's dated rows. `from` null: the beginning. `to` null: up to now. */
export const shardWindow = (from: Day | null, to: Day | null): DatedWindow =>
  to === null
    ? { kind: "open", from: from ?? BEGINNING, undated: false }
    : closedWindow(from ?? BEGINNING, to);

/** A service that streams 1,000 rows a second needs about a quarter of an hour for a shard. */
const ROWS_PER_SHARD = 1_000_000;
const MAX_SHARDS = 1_000;
/** A search by counts begins with this day. */
const FIRST_GUESS = "1970-01-02" as Day;

/**
 * Splits a range into shards with about equal numbers of rows, oldest first. One request for a row finds the day of a cut. If
 * the row has no date, counts find the day. The last shard is open, unless the range ends before yesterday.
 * @param wanted the highest number of shards; undefined: one per million rows, and the open shard
 */
export async function* splitRange(
  api: Counter,
  { from, to }: Pick<DateRange, "from" | "to">,
  size: Size,
  wanted?: number,
): AsyncGenerator<DateRange> {
  // Days before yesterday get no new rows, so shards may read these days in any order.
  const lastClosed = addDays(dayOf(size.asked), -2);
  const end = to === null || to > lastClosed ? null : to;
  const usual = Math.ceil(size.rows / ROWS_PER_SHARD) + (end === null ? 1 : 0);
  const shards = Math.min(MAX_SHARDS, wanted ?? usual);
  const latest = end === null ? lastClosed : addDays(end, -1);
  /** The days of the last shard, whose rows are not counted yet. */
  let before: { readonly from: Day | null; readonly to: Day } | undefined;
  let [start, left] = [from, size.rows];
  for (let nth = 1; ; nth++) {
    const isLast = nth >= shards || (start !== null && start > latest);
    const target = Math.floor((nth * size.rows) / shards);
    const place = Math.max(1, size.rows - target);
    const placed = isLast ? undefined : await api.rowAt(shardWindow(start, to), place);
    if (before !== undefined) {
      const rows = placed?.total ?? (await api.count(shardWindow(start, to))).rows;
      if (rows < left) {
        yield { ...before, rows: left - rows };
        left = rows;
      } else start = before.from;
      before = undefined;
    }
    if (isLast) break;
    // One day may contain the rows of several shards.
    if (left < place) continue;
    const at = instant(placed?.row?.cursor ?? "");
    let [low, high] = Number.isNaN(at) ? [start ?? FIRST_GUESS, latest] : [dayOf(at), dayOf(at)];
    while (low < high) {
      const middle = dayOf((Date.parse(low) + Date.parse(high)) / 2);
      if ((await api.count(shardWindow(from, middle))).rows < target) low = addDays(middle, 1);
      else high = middle;
    }
    if (start !== null && low < start) continue;
    const last = earlier(later(addDays(low, -1), start ?? BEGINNING), latest);
    before = { from: start, to: last };
    start = addDays(last, 1);
  }
  yield { from: start, to: end, rows: left };
}
