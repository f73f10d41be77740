import fc from "fast-check";
import { expect, it } from "vitest";
import { differences } from "../../src/reconcile/by-counts.ts";
import { type Coverage, spanOf } from "../../src/streams/coverage.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";
import { addDays, type Day, daysBetween } from "../../src/time.ts";
import { runs } from "../support/runs.ts";

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
