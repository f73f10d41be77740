import fc from "fast-check";
import { expect, it } from "vitest";
import { differences } from "../../../src/reconcile/by-counts.ts";
import { type Coverage, spanOf } from "../../../src/streams/coverage.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import { addDays, type Day, daysBetween } from "../../../src/time.ts";
import { runs } from "../../support/runs.ts";

const FIRST = "2024-01-01" as Day;
const ASKED = Date.parse("2026-03-20T10:00:00Z");

it("differences() names each day on which the table has fewer rows, and each that it did not look at, within its requests", async () => {
  const days = fc.array(fc.nat(6), { minLength: 1, maxLength: 400 });
  await fc.assert(
    fc.asyncProperty(
      days,
      fc.array(fc.nat(399), { maxLength: 4 }),
      fc.nat(5),
      fc.constantFrom(300, 80, 10),
      async (rows, lost, gap, most) => {
        const dayAt = (nth: number): Day => addDays(FIRST, nth);
        const table = new Map(
          rows
            .map((count, nth) => [dayAt(nth), count] as const)
            .sort(([a], [b]) => (a.slice(-2) < b.slice(-2) ? -1 : 1)),
        );
        const lacking = new Set(lost.filter((nth) => nth < rows.length).map(dayAt));
        let requests = 0;
        const count: StreamApi["count"] = async (window) => {
          requests += 1;
          const [from, to] = window.kind === "closed" ? [window.from, window.to] : [FIRST, FIRST];
          let found = 0;
          for (const [day, own] of table)
            if (from <= day && day <= to) found += own + Number(lacking.has(day));
          return { rows: found, undated: 0, known: true, asked: ASKED, answered: ASKED };
        };
        // A day that was never covered is not looked at.
        const end = dayAt(rows.length - 1);
        const hole = dayAt(Math.floor(rows.length / 2));
        const coverage: Coverage =
          gap > 0 || rows.length < 3
            ? [spanOf([FIRST, end], null)]
            : [spanOf([FIRST, addDays(hole, -1)], null), spanOf([addDays(hole, 1), end], null)];
        const isCovered = (day: Day): boolean => coverage.some(([from, to]) => from <= day && day <= to);
        const left = (): number => most - requests;
        const found = await differences({ count }, coverage, table, addDays(end, 1), left);
        const named = (day: Day, list: keyof typeof found): boolean =>
          found[list].some(({ range: [from, to] }) => from <= day && day <= to);
        for (const day of lacking)
          expect(named(day, "lacking") || named(day, "unlooked"), day).toBe(isCovered(day));
        for (const { range, service, table: own } of found.lacking) {
          expect(service).toBeGreaterThan(own);
          expect(daysBetween(...range)).toBeLessThanOrEqual(Math.max(1, 2 * lacking.size));
        }
        if (most === 300) expect(found.unlooked).toEqual([]);
        // Each range that is read takes two.
        expect(requests + 2 * found.lacking.length).toBeLessThanOrEqual(most);
      },
    ),
    { numRuns: runs(300, 5_000) },
  );
});

it("differences() counts what the syncs held back as there, where they say of which days it was", async () => {
  const dayAt = (nth: number): Day => addDays(FIRST, nth);
  const table = new Map(Array.from({ length: 10 }, (_, nth) => [dayAt(nth), 3]));
  const count: StreamApi["count"] = async (window) => {
    const [from, to] = window.kind === "closed" ? [window.from, window.to] : [FIRST, FIRST];
    const rows = 3 * daysBetween(from, to) + (from <= dayAt(4) && dayAt(4) <= to ? 2 : 0);
    return { rows, undated: 0, known: true, asked: ASKED, answered: ASKED };
  };
  const lackingOf = async (last: Day, before: Day, held: number): Promise<unknown> => {
    const coverage = [spanOf([FIRST, last], null, undefined, held)];
    const found = await differences({ count }, coverage, table, before, () => 100);
    return found.lacking.map(({ range }) => range);
  };
  const day = [dayAt(4), dayAt(4)];
  expect(await lackingOf(dayAt(9), dayAt(10), 2)).toEqual([]);
  expect(await lackingOf(dayAt(9), dayAt(10), 1)).toEqual([day]);
  expect(await lackingOf(dayAt(9), dayAt(9), 2)).toEqual([day]);
});

/** A table and a service: rows by day, from the first on; `service`: what it has more or less. */
type Situation = {
  readonly rows: readonly number[];
  readonly service?: Readonly<Record<number, number>>;
  readonly coverage?: Coverage;
  readonly before?: number;
  readonly most?: number;
  readonly undated?: number;
};

const dayAt = (nth: number): Day => addDays(FIRST, nth);
const even = (days: number, rows: number): number[] => Array.from({ length: days }, () => rows);
const range = (from: number, to: number): [Day, Day] => [dayAt(from), dayAt(to)];

const SITUATIONS: Readonly<Record<string, Situation>> = {
  "nothing is lacking": { rows: even(6, 5) },
  "a row of one day is lacking": { rows: even(200, 50), service: { 70: 1 } },
  "rows of neighbours are lacking": { rows: even(200, 50), service: { 70: 1, 71: 4, 72: 1 } },
  "rows of the first and the last day are lacking": { rows: even(200, 50), service: { 0: 1, 199: 2 } },
  "the table has rows too many on days that touch, and on one that does not": {
    rows: even(200, 50),
    service: { 3: -1, 4: -2, 5: -3, 6: -4, 90: -5 },
  },
  "a lost row hides behind one that is too many": { rows: even(200, 50), service: { 3: 1, 4: -1 } },
  "most rows are of one day": {
    rows: [...even(20, 1), 5_000, ...even(20, 1)],
    service: { 3: 1, 20: 1, 35: 1 },
  },
  "the table has rows on the first and the last day alone": {
    rows: [1, ...even(300, 0), 1],
    service: { 40: 1, 250: 6_000 },
  },
  "the table is empty": { rows: even(100, 0), service: { 10: 3, 90: 5 } },
  "most rows have no date": { rows: even(100, 1), service: { 10: 1 }, undated: 1_000_000 },
  "days are missing, read again, never covered, or held back": {
    rows: even(60, 100),
    service: { 5: 1, 15: 1, 25: 1, 35: 1, 45: 3, 55: 1 },
    coverage: [
      spanOf(range(0, 9), 1),
      spanOf(range(10, 19), null, "missing"),
      spanOf(range(20, 29), null, "again"),
      spanOf(range(40, 49), 7, undefined, 2),
      spanOf(range(50, 59), 7, undefined, 1),
    ],
  },
  "what was held back is of days that are not all compared": {
    rows: even(60, 100),
    service: { 45: 2 },
    coverage: [spanOf(range(0, 49), 7, undefined, 2)],
    before: 47,
  },
  "what was held back is of days that just end in time": {
    rows: even(60, 100),
    service: { 45: 2 },
    coverage: [spanOf(range(0, 46), 7, undefined, 2), spanOf(range(47, 59), 1)],
    before: 47,
  },
  "one day is compared": { rows: even(3, 10), service: { 0: 1, 1: 1 }, before: 1 },
  "no day is compared": { rows: even(3, 10), service: { 0: 1 }, before: 0 },
  "more spans than ranges are covered": {
    rows: even(200, 10),
    service: { 40: 1, 41: 1, 160: 1 },
    coverage: Array.from({ length: 100 }, (_, nth) => spanOf(range(2 * nth, 2 * nth), 10)),
  },
  "requests end before the ranges do": { rows: even(200, 50), service: { 3: 1, 150: 1 }, most: 20 },
  "requests end while ranges are halved": {
    rows: even(2_000, 5),
    service: { 3: 1, 500: 2, 501: 1, 1500: 3, 1900: 1 },
    most: 75,
  },
  "requests are left for one read": { rows: even(64, 5), service: { 3: 1, 20: 1, 21: 1, 40: 1 }, most: 38 },
  "requests are left for two reads": { rows: even(64, 5), service: { 3: 1, 20: 1, 21: 1, 40: 1 }, most: 41 },
  "no request is left": { rows: even(20, 5), service: { 3: 1 }, most: 0 },
};

it("comparisons by counts ask and find what golden/counts-compared.txt says", async () => {
  const lines: string[] = [];
  for (const [name, situation] of Object.entries(SITUATIONS)) {
    const { rows, service = {}, most = 300, before = rows.length, undated = 0 } = situation;
    const { coverage = [spanOf(range(0, rows.length - 1), null)] } = situation;
    // Of the days of a table no order is known.
    const days = rows.map((count, nth): [Day, number] => [dayAt(nth), count]);
    const table = new Map<Day | "none", number>([["none", undated]]);
    for (const odd of [1, 0]) for (const [nth, day] of days.entries()) if (nth % 2 === odd) table.set(...day);
    const asked: string[] = [];
    const count: StreamApi["count"] = async (window) => {
      const [from, to] = window.kind === "closed" ? [window.from, window.to] : [FIRST, FIRST];
      asked.push(from === to ? from : `${from} to ${to}`);
      const found = rows.reduce(
        (sum, own, nth) => (from <= dayAt(nth) && dayAt(nth) <= to ? sum + own + (service[nth] ?? 0) : sum),
        0,
      );
      return { rows: found, undated: 0, known: true, asked: ASKED, answered: ASKED };
    };
    const left = (): number => most - asked.length;
    const found = await differences({ count }, coverage, table, dayAt(before), left);
    lines.push(`# ${name}`, `asked ${asked.join(", ")}`);
    for (const [kind, numbers] of Object.entries(found))
      for (const { range: ends, table: held, service: shown } of numbers)
        lines.push(`${kind} ${ends.join(" to ")}: ${held} in the table, ${shown} at the service`);
  }
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/counts-compared.txt");
});
