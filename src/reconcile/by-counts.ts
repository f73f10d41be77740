import { addDays, type Day, dayOf, daysBetween, earlier, FIRST, LAST, later, startOf } from "../base/time.ts";
import type { Coverage, DayRange } from "../sync/coverage.ts";
import type { Service } from "../sync/service.ts";
import { closedWindow } from "../sync/window.ts";

/** How many rows table and service have on some days. */
export type Numbers = { readonly range: DayRange; readonly table: number; readonly service: number };

/** `lacking`: days to read, because the table has fewer rows; `unlooked`: there was no request left to look at them. */
export type Differences = Readonly<Record<"lacking" | "unlooked" | "more", readonly Numbers[]>>;

/** Ranges that are compared first. */
const RANGES = 64;
/** A range of at most this part of the table is read, not halved. */
const WORTH_READING = 1 / 2000;
const REQUESTS_PER_READ = 2;

/**
 * Compares the number of rows on days before a day, and halves ranges of which the table has fewer rows. A lost row hides
 * behind one that is too many in its range: equal numbers prove nothing.
 * @param left how many requests there are for this and for reading what is found
 */
export async function differences(
  api: Pick<Service, "count">,
  days: Coverage,
  table: ReadonlyMap<Day | "none", number>,
  before: Day,
  left: () => number,
): Promise<Differences> {
  const counts = new RowsByDay(table);
  const few = counts.in([dayOf(FIRST), before]) * WORTH_READING;
  const compare = async (range: DayRange, held = 0): Promise<Numbers> => {
    const { rows } = await api.count(closedWindow(...range));
    return { range, table: counts.in(range) + held, service: rows };
  };
  const isReady = ({ range, service }: Numbers): boolean => daysBetween(...range) === 1 || service <= few;
  const found: Numbers[] = [];
  const unlooked: Numbers[] = [];
  for (const [range, held] of rangesOf(days, before, counts)) {
    if (left() > 0) found.push(await compare(range, held));
    else unlooked.push({ range, table: counts.in(range), service: 0 });
  }
  const lacking = (): Numbers[] => found.filter((one) => one.table < one.service);
  for (;;) {
    // The smallest first, so that what cannot be done in time is left whole.
    const [smallest] = lacking()
      .filter((one) => !isReady(one))
      .sort((a, b) => a.service - b.service);
    const ready = lacking().filter(isReady);
    if (smallest === undefined || left() <= REQUESTS_PER_READ * (ready.length + 1)) break;
    const middle = counts.middleOf(smallest.range);
    const older = await compare([smallest.range[0], middle]);
    const range: DayRange = [addDays(middle, 1), smallest.range[1]];
    const newer = { range, table: counts.in(range), service: smallest.service - older.service };
    found.splice(found.indexOf(smallest), 1, older, newer);
  }
  const most = Math.max(0, Math.floor(left() / REQUESTS_PER_READ));
  const ready = joined(lacking().filter(isReady));
  unlooked.push(...lacking().filter((one) => !isReady(one)), ...ready.slice(most));
  const more = found.filter((one) => one.table > one.service);
  return { lacking: ready.slice(0, most), unlooked: joined(unlooked), more: joined(more) };
}

/** The covered days in about 64 ranges of about as many rows, and how many rows of each the syncs held back. */
function rangesOf(days: Coverage, before: Day, counts: RowsByDay): [range: DayRange, held: number][] {
  const spans = days.flatMap(({ from, to, status }) => {
    const last = earlier(to, addDays(before, -1));
    return status === "missing" || from > last ? [] : [{ from, last, held: 0 }];
  });
  const all = spans.reduce((sum, { from, last }) => sum + counts.in([from, last]), 0);
  const size = Math.ceil(all / Math.max(1, RANGES - spans.length));
  return spans.flatMap(({ from, last, held }) => {
    if (held > 0) return [[[from, last], held]];
    const parts: [DayRange, number][] = [];
    for (let first = from; first <= last; ) {
      const end = earlier(counts.dayOfRow(size, first), last);
      parts.push([[first, end], 0]);
      first = addDays(end, 1);
    }
    return parts;
  });
}

/** Ranges that touch as one. */
function joined(found: readonly Numbers[]): readonly Numbers[] {
  const all: Numbers[] = [];
  for (const next of found.toSorted((a, b) => (a.range[0] < b.range[0] ? -1 : 1))) {
    const last = all.at(-1);
    if (last === undefined || addDays(last.range[1], 1) !== next.range[0]) all.push(next);
    else {
      const range: DayRange = [last.range[0], next.range[1]];
      const [table, service] = [last.table + next.table, last.service + next.service];
      all.splice(-1, 1, { range, table, service });
    }
  }
  return all;
}

/** How many rows of a table stand on some days. */
class RowsByDay {
  /** In the order of the days. */
  readonly #rows: readonly (readonly [day: Day, rows: number])[];

  constructor(table: ReadonlyMap<Day | "none", number>) {
    this.#rows = [...table]
      .filter((one): one is [Day, number] => one[0] !== "none")
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  in([from, to]: DayRange): number {
    return this.#rows.reduce((sum, [day, rows]) => (from <= day && day <= to ? sum + rows : sum), 0);
  }

  /** The day of the nth row from a day on; the last of all days where there are fewer. */
  dayOfRow(nth: number, from: Day): Day {
    let left = Math.max(1, nth);
    for (const [day, rows] of this.#rows) {
      if (day >= from) left -= rows;
      if (left <= 0) return day;
    }
    return dayOf(LAST);
  }

  /** A day before the last that halves a range by rows, or by days where the table has next to none. */
  middleOf([from, to]: DayRange): Day {
    const rows = this.in([from, to]);
    const isDense = rows > daysBetween(from, to);
    const day = isDense ? this.dayOfRow(rows / 2, from) : dayOf((startOf(from) + startOf(to)) / 2);
    return later(from, earlier(day, addDays(to, -1)));
  }
}
