import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shardWindow } from "../../src/shards/cut.ts";
import type { Count, PlacedRow, Row, StreamApi } from "../../src/streams/stream-api.ts";
import type { Window } from "../../src/streams/window.ts";
import { addDays, type Day, startOf } from "../../src/time.ts";
import { cutAll } from "../support/cut-all.ts";

const TODAY = "2026-11-21" as Day;
const LAST_CLOSED = addDays(TODAY, -2);

/** A service that holds some number of rows on each of some days before today, and counts what it is asked. */
class Account implements Pick<StreamApi, "count" | "rowAt"> {
  requests = 0;
  readonly #days: readonly (readonly [Day, number])[];
  readonly #lists: boolean;

  constructor(rowsByAge: ReadonlyMap<number, number>, lists = true) {
    this.#days = [...rowsByAge].map(([age, rows]) => [addDays(TODAY, -age), rows] as const);
    this.#lists = lists;
  }

  async count(window: Window): Promise<Count> {
    this.requests += 1;
    const asked = startOf(TODAY) + 3_600_000;
    return { rows: rowsIn(this.#within(window)), undated: 0, known: true, asked, answered: asked };
  }

  async rowAt(window: Window, place: number): Promise<PlacedRow | undefined> {
    this.requests += 1;
    const newest = this.#within(window).toSorted(([a], [b]) => (a < b ? 1 : -1));
    const day = newest.find((_, nth) => rowsIn(newest.slice(0, nth + 1)) >= place)?.[0];
    const row = { id: "a", cursor: `${day}T10:00:00Z`, raw: "" } as unknown as Row;
    return this.#lists && day !== undefined ? { row, total: null } : undefined;
  }

  held(from: Day | null, to: Day | null): number {
    return rowsIn(this.#within(shardWindow(from, to)));
  }

  #within(window: Window): readonly (readonly [Day, number])[] {
    const { from, to } = window as { from: Day; to?: Day };
    return this.#days.filter(([day]) => day >= from && (to === undefined || day <= to));
  }
}

const rowsIn = (days: readonly (readonly [Day, number])[]): number =>
  days.reduce((sum, [, rows]) => sum + rows, 0);

/** The last four days may hold the most, so that yesterday and today are places to cut. */
const accounts = fc
  .tuple(
    fc.array(fc.tuple(fc.nat({ max: 4000 }), fc.integer({ min: 1, max: 500 })), { maxLength: 60 }),
    fc.array(fc.nat({ max: 20_000 }), { minLength: 4, maxLength: 4 }),
  )
  .map(([days, last]) => new Map([...days, ...last.map((rows, age) => [age, rows] as const)]));

describe("cutRange()", () => {
  it("covers every day once, oldest first, and ends with the open shard", async () => {
    await fc.assert(
      fc.asyncProperty(
        accounts,
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        async (days, wanted, lists) => {
          const account = new Account(days, lists);
          const cuts = await cutAll(account, { from: null, to: null }, wanted);
          expect(cuts.length).toBeLessThanOrEqual(wanted);
          expect(cuts[0]?.from).toBeNull();
          expect(cuts.at(-1)?.to).toBeNull();
          for (const [index, cut] of cuts.entries()) {
            const before = cuts[index - 1];
            if (before === undefined) continue;
            expect(before.to).not.toBeNull();
            expect(cut.from).toBe(addDays(before.to as Day, 1));
            expect((before.to as Day) <= LAST_CLOSED).toBe(true);
            expect((before.from ?? "") <= (before.to as Day)).toBe(true);
          }
          expect(account.requests).toBeLessThanOrEqual(1 + (lists ? 2 : 17) * wanted);
          expect(cuts.map(({ from, to }) => account.held(from, to))).toEqual(cuts.map(({ rows }) => rows));
        },
      ),
    );
  });

  it("shares even days within a factor of two", async () => {
    const account = new Account(new Map(Array.from({ length: 3650 }, (_, age) => [age, 7])));
    const cuts = await cutAll(account, { from: null, to: null }, 16);
    expect(cuts).toHaveLength(16);
    const rows = cuts.map((cut) => cut.rows);
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * Math.min(...rows));
  });

  it("shares days that gather in the last month within a factor of two", async () => {
    const recent = Array.from({ length: 30 }, (_, age) => [age + 2, 900] as const);
    const account = new Account(new Map([...recent, [2000, 30], [3000, 30]]));
    const cuts = await cutAll(account, { from: null, to: null }, 5);
    const rows = cuts.map((cut) => cut.rows);
    expect(rows).toHaveLength(5);
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * Math.min(...rows));
  });

  it("shares even days within a factor of two where the list says nothing", async () => {
    const even = new Map(Array.from({ length: 3650 }, (_, age) => [age, 7]));
    const cuts = await cutAll(new Account(even, false), { from: null, to: null }, 8);
    const rows = cuts.map((cut) => cut.rows);
    expect(rows).toHaveLength(8);
    expect(Math.max(...rows)).toBeLessThanOrEqual(2 * Math.min(...rows));
  });

  it("makes a shard of each million rows, and the open one, where nobody says how many", async () => {
    const account = new Account(new Map(Array.from({ length: 100 }, (_, age) => [age, 35_000])));
    expect(await cutAll(account, { from: null, to: null }, undefined)).toHaveLength(5);
  });

  it("leaves yesterday and today to the open shard, whatever they hold", async () => {
    const account = new Account(new Map([9, 8, 7, 2, 1, 0].map((age) => [age, age < 2 ? 9_000 : 10])));
    const cuts = await cutAll(account, { from: null, to: null }, 9);
    expect(cuts.at(-1)).toEqual({ from: addDays(LAST_CLOSED, 1), to: null, rows: 18_000 });
  });

  it("makes one open shard of an account whose rows are all of today", async () => {
    const cuts = await cutAll(new Account(new Map([[0, 1_000_000]])), { from: null, to: null }, 8);
    expect(cuts).toEqual([{ from: null, to: null, rows: 1_000_000 }]);
  });

  it("has no open shard before an end date that is before yesterday", async () => {
    const account = new Account(
      new Map([
        [10, 5],
        [20, 5],
        [30, 5],
        [1, 99],
      ]),
    );
    const range = { from: addDays(TODAY, -40), to: addDays(TODAY, -5) };
    const cuts = await cutAll(account, range, 3);
    expect(cuts.at(0)?.from).toBe(range.from);
    expect(cuts.at(-1)?.to).toBe(range.to);
    expect(cuts.reduce((sum, { rows }) => sum + rows, 0)).toBe(15);
    expect(cuts.length).toBeGreaterThan(1);
  });

  it("has one shard for an empty account", async () => {
    const cuts = await cutAll(new Account(new Map()), { from: null, to: null }, 4);
    expect(cuts).toEqual([{ from: null, to: null, rows: 0 }]);
  });
});
