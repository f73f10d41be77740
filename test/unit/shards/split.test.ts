import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addDays, type Day, startOf } from "../../../src/base/time.ts";
import { type DateRange, shardWindow } from "../../../src/shards/split.ts";
import type { Row } from "../../../src/sync/service.ts";
import type { Window } from "../../../src/sync/window.ts";
import { runs } from "../../support/runs.ts";
import { splitAll } from "../../support/split-all.ts";

const TODAY = "2026-11-21" as Day;
const ago = (days: number): Day => addDays(TODAY, -days);

type Held = readonly (readonly [age: number, rows: number])[];

const sum = (days: Held): number => days.reduce((all, [, rows]) => all + rows, 0);

/** A service that holds rows on days of some ages. Its list may say nothing. */
function account(days: Held, lists = true) {
  const newest = [...new Map(days)].sort(([a], [b]) => a - b);
  const within = (window: Window): Held => {
    const { from, to = TODAY } = window as { from: Day; to?: Day };
    return newest.filter(([age]) => ago(age) >= from && ago(age) <= to);
  };
  const asked = startOf(TODAY) + 3_600_000;
  return {
    rows: ({ from, to }: DateRange): number => sum(within(shardWindow(from, to))),
    async count(window: Window) {
      return { rows: sum(within(window)), undated: 0, known: true, asked, answered: asked };
    },
    async rowAt(window: Window, place: number) {
      const held = within(window);
      const [age] = held.find((_, nth) => sum(held.slice(0, nth + 1)) >= place) ?? [];
      if (!lists) return undefined;
      if (age === undefined) return { row: undefined, total: sum(held) };
      return { row: { cursor: `${ago(age)}T10:00:00Z` } as Row, total: sum(held) };
    },
  };
}

const ALL = { from: null, to: null };

const everyDay = (days: number, rows: number): Held => Array.from({ length: days }, (_, age) => [age, rows]);

const accounts = fc
  .tuple(
    fc.array(fc.tuple(fc.nat({ max: 400 }), fc.integer({ min: 1, max: 500 })), { maxLength: 60 }),
    fc.array(fc.nat({ max: 20_000 }), { minLength: 4, maxLength: 4 }),
  )
  .map(([days, last]): Held => [...days, ...last.map((rows, age) => [age, rows] as const)]);

describe("the shards of an account", () => {
  it("contain each day once, oldest first; yesterday and today are in the last, open shard", async () => {
    const shards = fc.integer({ min: 1, max: 12 });
    await fc.assert(
      fc.asyncProperty(accounts, shards, fc.boolean(), async (days, wanted, lists) => {
        const api = account(days, lists);
        const cuts = await splitAll(api, ALL, wanted);
        expect(cuts.length).toBeLessThanOrEqual(wanted);
        const ends = cuts.slice(0, -1).map(({ to }) => to as Day);
        expect(cuts.map(({ from }) => from)).toEqual([null, ...ends.map((end) => addDays(end, 1))]);
        expect(cuts.at(-1)?.to).toBeNull();
        for (const [nth, end] of ends.entries())
          expect(end <= ago(2) && (cuts[nth]?.from ?? "") <= end).toBe(true);
        expect(cuts.map(api.rows)).toEqual(cuts.map(({ rows }) => rows));
      }),
      { numRuns: runs(60, 1_000) },
    );
  });

  it.each<[what: string, days: Held, wanted: number, lists: boolean]>([
    ["even days", everyDay(3650, 7), 16, true],
    ["days that gather in the last month", [...everyDay(30, 900), [2000, 30], [3000, 30]], 5, true],
    ["even days where the list says nothing", everyDay(365, 7), 4, false],
  ])("are of similar size: %s", async (_what, days, wanted, lists) => {
    const rows = (await splitAll(account(days, lists), ALL, wanted)).map((cut) => cut.rows);
    expect(rows).toHaveLength(wanted);
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * Math.min(...rows));
  });

  it("have a million rows each, except the open one, if no number is given", async () => {
    expect(await splitAll(account(everyDay(100, 35_000)), ALL, undefined)).toHaveLength(5);
  });

  it.each([
    [5, ago(5)],
    [2, ago(2)],
    [1, null],
  ])("are all closed where the range ends %i days ago, but for yesterday", async (age, end) => {
    const days = [10, 20, 30].map((one) => [one, 5] as const);
    const cuts = await splitAll(account([...days, [0, 99]]), { from: ago(40), to: ago(age) }, 3);
    expect([cuts[0]?.from, cuts.at(-1)?.to]).toEqual([ago(40), end]);
    expect(cuts.map(({ rows }) => rows)).toEqual([5, 5, 5]);
  });
});
