import { addDays, type Day, daysBetween, later } from "../base/time.ts";

/** A range of days, both included. */
export type DayRange = readonly [first: Day, last: Day];

/**
 * The status of a range of days.
 * - `again`: rows disappeared during the reading, so the next run reads the days again.
 * - `missing`: no attempt proved the days.
 * - `reread`: the days were proven, and `reread_days` requires another reading.
 */
export type Status = "proven" | "again" | "missing" | "reread";

/**
 * Days that were read together.
 * `rows`: the distinct rows of a proven span, also suppressed rows; otherwise 0.
 * `read`: the day of the oldest reading of a proven span, if the setting `reread_days` is on.
 */
export type Span = {
  readonly from: Day;
  readonly to: Day;
  readonly status: Status;
  readonly rows: number;
  readonly read?: Day;
};

/** The spans of a stream, in order and without overlaps. A day in no span is a hole. */
export type Coverage = readonly Span[];

/** If a state has more proven spans, neighbours are joined, except the newest 8 spans. */
const MAX_PROVEN = 24;
const NEWEST = 8;

export const isProven = ({ status }: Span): boolean => status === "proven";

/** The parts of a range of days that no span contains. */
export function uncovered(days: Coverage, [first, last]: DayRange): readonly DayRange[] {
  const found: DayRange[] = [];
  let next = first;
  for (const { from, to } of days) {
    if (to < next) continue;
    if (from > last) break;
    if (from > next) found.push([next, addDays(from, -1)]);
    if (to >= last) return found;
    next = later(next, addDays(to, 1));
  }
  return next > last ? found : [...found, [next, last]];
}

/** The given ranges without the given days. */
export function withoutDays(ranges: readonly DayRange[], days: readonly Day[]): readonly DayRange[] {
  const excluded = days.toSorted().map((day): Span => ({ from: day, to: day, status: "proven", rows: 0 }));
  return ranges.flatMap((range) => uncovered(excluded, range));
}

/** The parts of ranges that are within another range. */
export const clipped = (ranges: readonly DayRange[], [first, last]: DayRange): readonly DayRange[] =>
  ranges.flatMap(([from, to]): readonly DayRange[] => {
    const part: DayRange = [later(from, first), to < last ? to : last];
    return part[0] <= part[1] ? [part] : [];
  });

/**
 * Adds the result of a reading of days. Replaces the proven spans within the days. A proven span that also has other days stays.
 * @param rowsByDay the rows of each day with rows, if the days are proven
 */
export function put(
  days: Coverage,
  [from, to]: DayRange,
  status: Status,
  rowsByDay: ReadonlyMap<Day, number> = new Map(),
  more = 0,
): Coverage {
  const range = [{ from, to, status, rows: 0 }];
  const kept = days.flatMap((span): Coverage => {
    if (span.to < from || span.from > to) return [span];
    if (isProven(span)) return span.from >= from && span.to <= to ? [] : [span];
    return uncovered(range, [span.from, span.to]).map((rest) => ({ ...span, from: rest[0], to: rest[1] }));
  });
  const added = uncovered(kept, [from, to]).flatMap((part) =>
    status === "proven" ? provenSpans(part, rowsByDay) : [{ from: part[0], to: part[1], status, rows: 0 }],
  );
  const spans = [...kept, ...added].sort((a, b) => (a.from < b.from ? -1 : 1));
  return joined(spans, more);
}

/** One span for each day with rows, together with the empty days before the day. */
function provenSpans([first, last]: DayRange, rowsByDay: ReadonlyMap<Day, number>): Coverage {
  const ends = [...rowsByDay.keys()].filter((day) => day >= first && day <= last).sort();
  if (ends.at(-1) !== last) ends.push(last);
  return ends.map((to, nth) => {
    const before = ends[nth - 1];
    const from = before === undefined ? first : addDays(before, 1);
    return { from, to, status: "proven", rows: rowsByDay.get(to) ?? 0 };
  });
}

/** Joins the two proven neighbours with the fewest rows, until 24 + `more` proven spans are left. */
export function joined(days: Coverage, more = 0): Coverage {
  const all = [...days];
  for (let rest = all.filter(isProven).length - MAX_PROVEN - more; rest > 0; rest--) {
    const nth = lightestPair(all);
    const [span, next] = all.slice(nth, nth + 2);
    if (nth < 0 || span === undefined || next === undefined) break;
    const oldest = (next.read ?? "9") < (span.read ?? "9") ? next : span;
    all.splice(nth, 2, { ...oldest, from: span.from, to: next.to, rows: span.rows + next.rows });
  }
  return all;
}

/** The index of the first of two proven neighbours with the fewest rows together. The newest spans are left out. -1: none. */
function lightestPair(all: Coverage): number {
  let [lightest, fewest] = [-1, Number.POSITIVE_INFINITY];
  all.slice(0, -NEWEST).forEach((span, nth, { [nth + 1]: next }) => {
    if (next === undefined || span.rows + next.rows >= fewest) return;
    // The days are compared last, because this is slow and a first load has thousands of spans.
    const areNeighbours = isProven(span) && isProven(next) && addDays(span.to, 1) === next.from;
    if (areNeighbours) [lightest, fewest] = [nth, span.rows + next.rows];
  });
  return lightest;
}

export const withStatus = (days: Coverage, status: Status): readonly DayRange[] =>
  days.filter((span) => span.status === status).map(({ from, to }) => [from, to]);

export const daysIn = ([first, last]: DayRange): readonly Day[] =>
  Array.from({ length: daysBetween(first, last) }, (_, nth) => addDays(first, nth));

export const missingDaysOf = (days: Coverage): readonly Day[] => withStatus(days, "missing").flatMap(daysIn);

/** The longest ranges without a hole. */
export function covered(days: Coverage): readonly DayRange[] {
  const ranges: [Day, Day][] = [];
  for (const span of days) {
    const last = ranges.at(-1);
    if (last !== undefined && addDays(last[1], 1) === span.from) last[1] = span.to;
    else ranges.push([span.from, span.to]);
  }
  return ranges;
}

/** The spans that contain none of the given days. */
export const withoutSpansOf = (spans: Coverage, days: readonly string[]): Coverage =>
  spans.filter(({ from, to }) => !days.some((day) => from <= day && day <= to));
