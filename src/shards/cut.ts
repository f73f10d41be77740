import type { StreamApi } from "../streams/stream-api.ts";
import { closedWindow, type DatedWindow } from "../streams/window.ts";
import { addDays, BEGINNING, type Day, dayOf, earlier, instant } from "../time.ts";
import type { Cut } from "./plan-file.ts";

/** What planning asks the service. Each call is one request. */
export type Counter = {
  /** How many dated rows the days hold, both ends included. `to` null: up to now. `asked`: epoch ms by the service's clock. */
  count(from: Day | null, to: Day | null): Promise<{ readonly rows: number; readonly asked: number }>;
  /** The day of the row at a place of the list of these days, newest first, 1 is the newest; undefined if the list does not say. */
  dayAt(from: Day | null, to: Day | null, place: number): Promise<Day | undefined>;
};

/** Counts and places of a stream whose rows are dated, as the service tells them. */
export function counterOf(api: Pick<StreamApi, "count" | "rowAt">): Counter {
  const window = (from: Day | null, to: Day | null): DatedWindow => {
    const first = from ?? BEGINNING;
    return to === null ? { kind: "open", from: first, undated: false } : closedWindow(first, to);
  };
  return {
    count: (from, to) => api.count(window(from, to)),
    dayAt: async (from, to, place) => {
      const at = instant((await api.rowAt(window(from, to), place))?.row?.cursor ?? "");
      return Number.isNaN(at) ? undefined : dayOf(at);
    },
  };
}

export type Range = { readonly from: Day | null; readonly to: Day | null };

/** The shards of a range, oldest first, and when the first count was asked (epoch ms by the service's clock). */
export type Cuts = { readonly cuts: readonly Cut[]; readonly asked: number };

/** Rows a shard where the user does not say how many shards: a quarter of an hour of a service that streams 1,000 rows a second. */
const ROWS_PER_SHARD = 1_000_000;
const MOST_SHARDS = 1_000;

/**
 * Cuts a range between days into shards of about the same number of rows, with at most four requests a shard.
 * Days before yesterday only lose rows, so they can be read in any order; the rest is one open shard.
 * A range that ends before yesterday has no open shard. Fewer shards than asked for where there are too few days or rows.
 */
export async function cutRange(
  counter: Counter,
  { from, to }: Range,
  wanted: number | undefined,
): Promise<Cuts> {
  const { rows, asked } = await counter.count(from, to);
  const lastClosed = addDays(dayOf(asked), -2);
  const isOpen = to === null || to > lastClosed;
  const shards = Math.min(
    MOST_SHARDS,
    Math.max(1, wanted ?? Math.ceil(rows / ROWS_PER_SHARD) + (isOpen ? 1 : 0)),
  );
  const ends: { readonly to: Day; readonly before: number }[] = [];
  const latest = isOpen ? lastClosed : addDays(to, -1);
  for (let nth = 1; nth < shards; nth++) {
    const target = Math.floor((nth * rows) / shards);
    const end = await endNear(counter, { from, to }, rows, target, latest, ends.at(-1)?.to ?? from);
    if (end !== undefined) ends.push(end);
  }
  const starts = [from, ...ends.map((end) => addDays(end.to, 1))];
  const upTo = [...ends.map((end) => end.before), rows];
  return {
    asked,
    cuts: starts.map((start, index) => ({
      from: start,
      to: ends[index]?.to ?? (isOpen ? null : to),
      rows: Math.max(0, (upTo[index] ?? 0) - (upTo[index - 1] ?? 0)),
    })),
  };
}

/**
 * The day after which to cut so that about `target` rows lie before the cut, and how many do.
 * Undefined if every such day is cut off already.
 */
async function endNear(
  counter: Counter,
  range: Range,
  rows: number,
  target: number,
  latest: Day,
  after: Day | null,
): Promise<{ readonly to: Day; readonly before: number } | undefined> {
  const place = Math.max(1, rows - target);
  const day = (await counter.dayAt(range.from, range.to, place)) ?? middle(after ?? BEGINNING, latest);
  const isFree = (end: Day): boolean => end <= latest && (after === null || end > after);
  const ends = [addDays(earlier(day, addDays(latest, 1)), -1), earlier(day, latest)].filter(isFree);
  const counted: { to: Day; before: number }[] = [];
  for (const end of new Set(ends))
    counted.push({ to: end, before: (await counter.count(range.from, end)).rows });
  const useful = counted.filter(({ before }) => before > 0);
  return useful.toSorted((a, b) => Math.abs(a.before - target) - Math.abs(b.before - target))[0];
}

const middle = (a: Day, b: Day): Day => dayOf((Date.parse(a) + Date.parse(b)) / 2);
