import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day, daysBetween } from "../../../src/base/time.ts";
import { type Coverage, covered, put, type Span, type Status } from "../../../src/sync/coverage.ts";

const FIRST = "2026-01-01" as Day;
const at = (number: number): Day => addDays(FIRST, number);
const numberOf = (day: Day): number => daysBetween(FIRST, day) - 1;

const reading = fc.record({
  from: fc.nat({ max: 200 }),
  length: fc.nat({ max: 60 }),
  status: fc.constantFrom<Status[]>("proven", "proven", "proven", "again", "missing"),
  rows: fc.array(fc.tuple(fc.nat({ max: 60 }), fc.integer({ min: 1, max: 9 })), { maxLength: 20 }),
});
type Reading = typeof reading extends fc.Arbitrary<infer Value> ? Value : never;

const rangeOf = ({ from, length }: Reading): readonly [Day, Day] => [at(from), at(from + length)];
const rowsOf = ({ from, length, rows }: Reading): Map<Day, number> =>
  new Map(rows.filter(([day]) => day <= length).map(([day, count]) => [at(from + day), count]));
const read = (days: Coverage, one: Reading): Coverage => put(days, rangeOf(one), one.status, rowsOf(one));

const statusOn = (days: Coverage, day: Day): Status | undefined =>
  days.find(({ from, to }) => day >= from && day <= to)?.status;

function expectOrder(days: Coverage): void {
  for (const [nth, { from, to }] of days.entries()) {
    expect(from <= to).toBe(true);
    expect(nth === 0 || from > (days[nth - 1]?.to ?? "")).toBe(true);
  }
}

describe("put()", () => {
  it("changes no proven span that begins before the range or ends after it", () => {
    fc.assert(
      fc.property(fc.array(reading, { minLength: 1, maxLength: 12 }), (readings) => {
        let days: Coverage = [];
        for (const one of readings) {
          const before = days;
          days = read(days, one);
          expectOrder(days);
          const [first, last] = rangeOf(one);
          const outlasts = (span: Span): boolean =>
            span.status === "proven" && (span.from < first || span.to > last);
          for (let number = 0; number <= 270; number++) {
            const day = at(number);
            const span = before.find(({ from, to }) => day >= from && day <= to);
            const isWritten = day >= first && day <= last && !(span && outlasts(span));
            expect(statusOn(days, day), day).toBe(isWritten ? one.status : span?.status);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it("keeps the sum of rows of proven days, and at most 24 proven spans where they touch", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 200 }), (rows) => {
        const byDay = new Map(rows.flatMap((count, nth) => (count > 0 ? [[at(nth), count] as const] : [])));
        const days = put([], [at(0), at(rows.length - 1)], "proven", byDay);
        expectOrder(days);
        expect(covered(days)).toEqual([[at(0), at(rows.length - 1)]]);
        expect(days.length).toBeLessThanOrEqual(24);
        for (const { from, to, rows: count } of days)
          expect(count).toBe(rows.slice(numberOf(from), numberOf(to) + 1).reduce((sum, one) => sum + one, 0));
        // Rows that come late come mostly to the newest days.
        const newest = [...byDay.keys()].slice(-7);
        if (byDay.size > 24) for (const day of newest) expect(days.some(({ to }) => to === day)).toBe(true);
      }),
    );
  });

  it("joins nothing across a hole, or a span that is not proven", () => {
    let days: Coverage = [];
    for (let number = 0; number < 80; number += 2)
      days = put(days, [at(number), at(number)], "proven", new Map([[at(number), 1]]));
    expect(days).toHaveLength(40);
    for (let number = 1; number < 80; number += 2) days = put(days, [at(number), at(number)], "missing");
    expect(days).toHaveLength(80);
  });
});
