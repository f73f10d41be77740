import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Cut, shardWindow } from "../../../src/shards/cut.ts";
import type { Row } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import { addDays, type Day, startOf } from "../../../src/time.ts";
import { cutAll } from "../../support/cut-all.ts";

const TODAY = "2026-11-21" as Day;
const LAST_CLOSED = addDays(TODAY, -2);
const ago = (days: number): Day => addDays(TODAY, -days);

type Held = readonly (readonly [age: number, rows: number])[];

const sum = (days: Held): number => days.reduce((all, [, rows]) => all + rows, 0);

/** A service that holds rows on days of some ages, and counts what it is asked. Its list may say nothing. */
function account(days: Held, lists = true) {
  const newest = [...new Map(days)].sort(([a], [b]) => a - b);
  const within = (window: Window): Held => {
    const { from, to = TODAY } = window as { from: Day; to?: Day };
    return newest.filter(([age]) => ago(age) >= from && ago(age) <= to);
  };
  const asked = startOf(TODAY) + 3_600_000;
  const api = {
    requests: 0,
    rows: ({ from, to }: Cut): number => sum(within(shardWindow(from, to))),
    async count(window: Window) {
      api.requests += 1;
      return { rows: sum(within(window)), undated: 0, known: true, asked, answered: asked };
    },
    async rowAt(window: Window, place: number) {
      api.requests += 1;
      const held = within(window);
      const [age] = held.find((_, nth) => sum(held.slice(0, nth + 1)) >= place) ?? [];
      if (!lists) return undefined;
      if (age === undefined) return { row: undefined, total: sum(held) };
      return { row: { cursor: `${ago(age)}T10:00:00Z` } as Row, total: sum(held) };
    },
  };
  return api;
}

const everyDay = (days: number, rows: number, since = 0): Held =>
  Array.from({ length: days }, (_, age) => [age + since, rows]);

/** The last four days may hold the most, and a third of the others is near them: yesterday and today are places to cut. */
const accounts = fc
  .tuple(
    fc.array(
      fc.tuple(
        fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: 400 }), fc.nat({ max: 4000 })),
        fc.integer({ min: 1, max: 500 }),
      ),
      { maxLength: 60 },
    ),
    fc.array(fc.nat({ max: 20_000 }), { minLength: 4, maxLength: 4 }),
  )
  .map(([days, last]): Held => [...days, ...last.map((rows, age) => [age, rows] as const)]);

describe("cutRange()", () => {
  it("covers every day once, oldest first, and ends with the open shard", async () => {
    const shards = fc.integer({ min: 1, max: 12 });
    await fc.assert(
      fc.asyncProperty(accounts, shards, fc.boolean(), async (days, wanted, lists) => {
        const api = account(days, lists);
        const cuts = await cutAll(api, { from: null, to: null }, wanted);
        expect(api.requests).toBeLessThanOrEqual(1 + (lists ? 1 : 17) * wanted);
        expect(cuts.length).toBeLessThanOrEqual(wanted);
        const ends = cuts.slice(0, -1).map(({ to }) => to as Day);
        expect(cuts.map(({ from }) => from)).toEqual([null, ...ends.map((end) => addDays(end, 1))]);
        expect(cuts.at(-1)?.to).toBeNull();
        for (const [nth, end] of ends.entries())
          expect(end <= LAST_CLOSED && (cuts[nth]?.from ?? "") <= end).toBe(true);
        expect(cuts.map(api.rows)).toEqual(cuts.map(({ rows }) => rows));
      }),
    );
  });

  it.each<[what: string, days: Held, wanted: number, lists: boolean]>([
    ["even days", everyDay(3650, 7), 16, true],
    ["days that gather in the last month", [...everyDay(30, 900, 2), [2000, 30], [3000, 30]], 5, true],
    ["even days where the list says nothing", everyDay(3650, 7), 8, false],
  ])("shares %s within a factor of two", async (_what, days, wanted, lists) => {
    const rows = (await cutAll(account(days, lists), { from: null, to: null }, wanted)).map(
      (cut) => cut.rows,
    );
    expect(rows).toHaveLength(wanted);
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * Math.min(...rows));
  });

  it("makes a shard of each million rows, and the open one, where nobody says how many", async () => {
    expect(await cutAll(account(everyDay(100, 35_000)), { from: null, to: null }, undefined)).toHaveLength(5);
  });

  it.each<[what: string, days: Held, wanted: number, last: Cut]>([
    [
      "leaves yesterday and today to the open shard, whatever they hold",
      [...[9, 8, 7, 2].map((age) => [age, 10] as const), [1, 9_000], [0, 9_000]],
      9,
      { from: ago(1), to: null, rows: 18_000 },
    ],
    ["makes one open shard of rows of today", [[0, 1_000_000]], 8, { from: null, to: null, rows: 1_000_000 }],
    [
      "cuts no more off behind a day that holds most",
      [
        [20, 5],
        [10, 100],
        [9, 1],
        [8, 1],
        [7, 1],
      ],
      5,
      { from: ago(9), to: null, rows: 3 },
    ],
    ["has one shard for an empty account", [], 4, { from: null, to: null, rows: 0 }],
  ])("%s", async (_what, days, wanted, last) => {
    const cuts = await cutAll(account(days), { from: null, to: null }, wanted);
    expect(cuts.at(-1)).toEqual(last);
    expect(cuts.length > 1).toBe(last.from !== null);
  });

  it.each([
    [5, false],
    [2, false],
    [1, true],
  ])("has an open shard only if it ends after all closed days: %i days ago, %s", async (age, isOpen) => {
    const days = [10, 20, 30].map((one) => [one, 5] as const);
    const cuts = await cutAll(account([...days, [0, 99]]), { from: ago(40), to: ago(age) }, 3);
    expect([cuts[0]?.from, cuts.at(-1)?.to]).toEqual([ago(40), isOpen ? null : ago(age)]);
    expect(cuts.map(({ rows }) => rows)).toEqual([5, 5, 5]);
  });
});
