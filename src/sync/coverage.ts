import { addDays, type Day, daysBetween, later } from "../base/time.ts";

/** A range of days, both included. */
export type DayRange = readonly [first: Day, last: Day];

/** `again`: rows left while it was read, so the next run reads it again. `missing`: it could not be proven. */
export type DayStatus = "again" | "missing";

/**
 * Days that were read. `rows`: how many they held when they were proven; null: unknown. Without a status: proven. `held`:
 * how many of the rows, at least, were held back because they are suppressed.
 */
export type Span = readonly [
  ...[from: Day, to: Day, rows: number | null],
  ...[status?: DayStatus | undefined, held?: number],
];

/** What is known of a stream's days: sorted, without overlap. A day in no span was never read. */
export type Coverage = readonly Span[];

/** Of touching spans at most this many stay apart, and the newest of all as they are. */
const MOST_APART = 32;
const NEWEST_SPANS = 12;

export function spanOf([from, to]: DayRange, rows: number | null, status?: DayStatus, held = 0): Span {
  if (held > 0) return [from, to, rows, status, held];
  return status === undefined ? [from, to, rows] : [from, to, rows, status];
}

/** Puts a span in the place of all that was known of its days. */
export function put(days: Coverage, span: Span): Coverage {
  const [from, to] = span;
  return [...without(days, [from, to]), span].sort(byFirstDay);
}

/**
 * The range is proven. A proven span of which it holds only a part keeps its days and its number.
 * @param spanIn what is known of a part of the range
 * @param cut the parts that a part becomes
 */
export function prove(
  days: Coverage,
  range: DayRange,
  spanIn: (part: DayRange) => Span = (part) => spanOf(part, null),
  cut: (part: DayRange) => readonly DayRange[] = (part) => [part],
): Coverage {
  const [from, to] = range;
  const kept = days.filter(
    ([first, last, rows, status]) => status === undefined && rows !== null && (first < from || last > to),
  );
  return uncovered(kept, range)
    .flatMap(cut)
    .reduce((all, part) => put(all, spanIn(part)), days);
}

/**
 * Cuts days so that a later check can tell where rows came and where they left: into about as many parts of as many rows,
 * the newest days that hold rows one by one, and before `border`, where the next run begins to read.
 */
export function cutByRows(
  [first, last]: DayRange,
  rowsByDay: ReadonlyMap<Day, number>,
  parts: number,
  border: Day,
): readonly DayRange[] {
  const days = [...rowsByDay].filter(([day]) => day >= first && day <= last).sort();
  const least = days.reduce((sum, [, rows]) => sum + rows, 0) / parts;
  const ends = new Set([addDays(days[0]?.[0] ?? first, -1), addDays(border, -1), last]);
  let rows = 0;
  for (const [nth, [day, held]] of days.entries()) {
    rows += held;
    if (rows < least && nth < days.length - NEWEST_SPANS) continue;
    ends.add(day);
    rows = 0;
  }
  let from = first;
  return [...ends].sort().flatMap((end): readonly DayRange[] => {
    if (end < from || end > last) return [];
    const part: DayRange = [from, end];
    from = addDays(end, 1);
    return [part];
  });
}

/** The days without those of a range. What is left of a span that is cut has no known number, unless it held no rows. */
export function without(days: Coverage, [first, last]: DayRange): Coverage {
  return days.flatMap((span): Coverage => {
    const [from, to, rows, status] = span;
    if (to < first || from > last) return [span];
    const left = rows === 0 ? 0 : null;
    return [
      ...(from < first ? [spanOf([from, addDays(first, -1)], left, status)] : []),
      ...(to > last ? [spanOf([addDays(last, 1), to], left, status)] : []),
    ];
  });
}

/** The days of a range that no span holds. */
export function uncovered(days: Coverage, [first, last]: DayRange): readonly DayRange[] {
  const found: DayRange[] = [];
  let next = first;
  for (const [from, to] of days) {
    if (to < next) continue;
    if (from > last) break;
    if (from > next) found.push([next, addDays(from, -1)]);
    if (to >= last) return found;
    next = later(next, addDays(to, 1));
  }
  return next > last ? found : [...found, [next, last]];
}

export const withStatus = (days: Coverage, status: DayStatus): readonly DayRange[] =>
  days.filter((span) => span[3] === status).map(([from, to]) => [from, to]);

/** The ranges between which no day was read. */
export function covered(days: Coverage): readonly DayRange[] {
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return [];
  const holes = uncovered(days, [first[0], last[1]]);
  const begins = [first[0], ...holes.map(([, to]) => addDays(to, 1))];
  return begins.map((from, nth) => [from, holes[nth] === undefined ? last[1] : addDays(holes[nth][0], -1)]);
}

/** The missing days, one by one. */
export const missingDaysOf = (days: Coverage): readonly Day[] =>
  withStatus(days, "missing").flatMap(([from, to]) =>
    Array.from({ length: daysBetween(from, to) }, (_, nth) => addDays(from, nth)),
  );

/** Joins touching spans of one status, those with the fewest rows first, until fewer than `most` borders are left. */
export function compact(days: Coverage, most: number = MOST_APART): Coverage {
  const all = [...days];
  for (;;) {
    const borders = all.flatMap((span, nth) => {
      const next = all[nth + 1];
      return next !== undefined && isJoinable(span, next) ? [{ nth, ...joined(span, next) }] : [];
    });
    const older = borders.filter(({ nth }) => nth + 1 < all.length - NEWEST_SPANS);
    const [lightest] = older.toSorted((a, b) => a.weight - b.weight);
    if (borders.length < most || lightest === undefined) return all;
    all.splice(lightest.nth, 2, lightest.span);
  }
}

/** What several states know together. Of a day the best counts: proven, then `again`. Where they overlap, numbers are unknown. */
export function union(parts: readonly Coverage[]): Coverage {
  const spans = parts.flat().toSorted(byRank);
  const overlaps = (span: Span): boolean =>
    spans.filter(([from, to]) => from <= span[1] && to >= span[0]).length > 1;
  return spans
    .map((span) => (overlaps(span) ? spanOf([span[0], span[1]], null, span[3]) : span))
    .reduce<Coverage>(put, []);
}

const byFirstDay = ([a]: Span, [b]: Span): number => (a < b ? -1 : 1);

/** Worst first; those of one status in an order that does not depend on where they come from. */
function byRank(a: Span, b: Span): number {
  const [left, right] = [a, b].map(([from, to, rows, status = "1"]) => [status, from, to, rows].join());
  return left === right ? 0 : String(left) > String(right) ? -1 : 1;
}

const isJoinable = ([, to, , a]: Span, [from, , , b]: Span): boolean =>
  a === b && a !== "missing" && addDays(to, 1) === from;

/** `weight`: the rows of both. A number that would be lost weighs most. */
function joined(
  [from, , a, status, held = 0]: Span,
  [, to, b, , more = 0]: Span,
): { span: Span; weight: number } {
  const rows = a === null || b === null ? null : a + b;
  const span = spanOf([from, to], rows, status, rows === null ? 0 : held + more);
  return { span, weight: rows ?? (a === b ? 0 : Number.POSITIVE_INFINITY) };
}
