import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day, daysBetween } from "../../../src/base/time.ts";
import {
  type Coverage,
  compact,
  type DayRange,
  type DayStatus,
  prove,
  put,
  type Span,
  spanOf,
  uncovered,
  union,
  without,
  withStatus,
} from "../../../src/sync/coverage.ts";

const FIRST = "2026-01-01" as Day;
const MOST_DAYS = 60;
const day = (nth: number): Day => addDays(FIRST, nth);
const span = (from: number, to: number, rows: number | null, status?: DayStatus): Span =>
  spanOf([day(from), day(to)], rows, status);
/** What each day holds. */
const rowsOn = (nth: number): number => (nth * 7) % 5;
const nthOf = (one: Day): number => daysBetween(FIRST, one) - 1;
const rowsIn = ([first, last]: DayRange): number =>
  daysOf([first, last]).reduce((sum, one) => sum + rowsOn(nthOf(one)), 0);
const daysOf = ([first, last]: DayRange): Day[] =>
  Array.from({ length: daysBetween(first, last) }, (_, nth) => addDays(first, nth));
const spanIn = (part: DayRange): Span => spanOf(part, rowsIn(part));

const RANGE = fc
  .tuple(fc.nat(MOST_DAYS), fc.nat(MOST_DAYS))
  .map(([a, b]): DayRange => [day(Math.min(a, b)), day(Math.max(a, b))]);
const STATUS = fc.constantFrom<(DayStatus | undefined)[]>("again", "missing", undefined);
const STEPS = fc.array(fc.tuple(RANGE, STATUS, fc.boolean()), { maxLength: 25 });

/** A coverage made step by step: a status or a proof, counted or not. */
const COVERAGE = STEPS.map((steps) =>
  steps.reduce<Coverage>((days, [range, status, isCounted]) => {
    if (status !== undefined) return put(days, spanOf(range, null, status));
    return isCounted ? prove(days, range, spanIn) : prove(days, range);
  }, []),
);

/** The status of each day: "proven", "again" or "missing". */
const byDay = (days: Coverage): Map<Day, string> =>
  new Map(
    days.flatMap(([from, to, , status = "proven"]) =>
      daysOf([from, to]).map((one) => [one, status] as const),
    ),
  );

function expectSound(days: Coverage): void {
  for (const [nth, [from, to, rows, status]] of days.entries()) {
    expect(from <= to && (days[nth + 1]?.[0] ?? "9999") > to, JSON.stringify(days)).toBe(true);
    if (rows !== null && status === undefined) expect(rows).toBe(rowsIn([from, to]));
  }
}

describe("put() and prove()", () => {
  it("let later words win day by day, and never tell a wrong number", () => {
    fc.assert(
      fc.property(STEPS, (steps) => {
        let days: Coverage = [];
        const said = new Map<Day, string>();
        for (const [range, status, isCounted] of steps) {
          if (status !== undefined) days = put(days, spanOf(range, null, status));
          else days = isCounted ? prove(days, range, spanIn) : prove(days, range);
          for (const one of daysOf(range)) said.set(one, status ?? "proven");
          expectSound(days);
        }
        expect(byDay(days)).toEqual(new Map([...said].sort()));
      }),
    );
  });

  const around = [span(0, 3, 7), span(6, 9, 9)];
  const left = (from: number, to: number): Span => span(from, to, null, "again");
  it.each<[string, Coverage, [number, number], Coverage]>([
    ["a part that is read again", [span(0, 9, 20)], [8, 9], [span(0, 9, 20)]],
    ["a part that is read again, and new days", [span(0, 9, 20)], [8, 10], [span(0, 9, 20), span(10, 10, 0)]],
    ["days on both sides", around, [3, 6], around.toSpliced(1, 0, span(4, 5, 3))],
    ["all of it", [span(3, 5, 99)], [3, 5], [span(3, 5, 4)]],
    ["more than it", [span(3, 5, 99)], [2, 6], [span(2, 6, 10)]],
    ["a part without a number", [span(0, 9, null)], [8, 9], [span(0, 7, null), span(8, 9, 4)]],
    ["a part of what left it", [left(0, 9)], [3, 4], [left(0, 2), span(3, 4, 1), left(5, 9)]],
  ])("prove() keeps the number of a proven span: %s", (_, days, [from, to], expected) => {
    const counted = ([a, b]: DayRange): Span =>
      a === day(3) && b === day(4) ? span(3, 4, 1) : spanIn([a, b]);
    expect(prove(days, [day(from), day(to)], counted)).toEqual(expected);
  });
});

describe("without() and uncovered()", () => {
  it("are each other's other half", () => {
    fc.assert(
      fc.property(COVERAGE, RANGE, (days, range) => {
        const rest = without(days, range);
        expectSound(rest);
        const held = byDay(days);
        const inRange = daysOf(range);
        expect(new Set(byDay(rest).keys())).toEqual(
          new Set([...held.keys()].filter((one) => !inRange.includes(one))),
        );
        expect(uncovered(days, range).flatMap(daysOf)).toEqual(inRange.filter((one) => !held.has(one)));
        expect(uncovered(rest, range)).toEqual([range]);
      }),
    );
  });
});

describe("compact()", () => {
  it("changes no day and no sum, and joins across no hole", () => {
    fc.assert(
      fc.property(COVERAGE, fc.integer({ min: 1, max: 4 }), (days, most) => {
        const joined = compact(days, most);
        expectSound(joined);
        expect(byDay(joined)).toEqual(byDay(days));
        expect(withStatus(joined, "missing")).toEqual(withStatus(days, "missing"));
      }),
    );
  });
});

describe("union()", () => {
  const RANKS = ["missing", "again", "proven"];

  it("holds the best word of each day, in whatever order the parts come", () => {
    fc.assert(
      fc.property(fc.array(COVERAGE, { maxLength: 4 }), (parts) => {
        const days = union(parts);
        expectSound(days);
        expect(union(parts.toReversed())).toEqual(days);
        const best = new Map<Day, string>();
        for (const [one, status] of parts.flatMap((part) => [...byDay(part)])) {
          if (RANKS.indexOf(status) > RANKS.indexOf(best.get(one) ?? "")) best.set(one, status);
        }
        expect(byDay(days)).toEqual(new Map([...best].sort()));
      }),
    );
  });
});
