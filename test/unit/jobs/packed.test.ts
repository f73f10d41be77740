import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Column, DigestTable, dayOfNumber, numberOfDay, remembered } from "../../../src/jobs/packed.ts";
import type { Day } from "../../../src/time.ts";

const DAYS = ["0001-01-01", "1969-12-31", "2026-02-28", "9999-12-31"] as Day[];

/** Keys whose digests begin alike, so that they meet in the table. */
const keyOf = (number: number): string => {
  const digest = Buffer.alloc(12);
  digest.writeUInt32LE(number % 3, 0);
  digest.writeUInt32LE(number, 8);
  return digest.toString("base64url");
};

describe("DigestTable", () => {
  it("finds each key in the row that it was given, one by one or packed, however many there are", () => {
    const step = fc.record({
      number: fc.nat(300),
      others: fc.array(fc.nat(300), { maxLength: 3 }),
      isPacked: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const table = new DigestTable();
        const plain = new Map<string, number>();
        const column = new Column(table);
        const values = new Map<number, number>();
        for (const { number, others, isPacked } of steps) {
          const keys = isPacked ? [number, ...others].map(keyOf) : [keyOf(number)];
          const rows = isPacked ? [...table.addPacked(keys.join(""))] : keys.map((key) => table.add(key));
          for (const [nth, key] of keys.entries()) {
            const row = rows[nth] ?? -1;
            expect(row).toBe(plain.get(key) ?? plain.size);
            plain.set(key, row);
            column.set(row, number + 1);
            values.set(row, number + 1);
            expect([column.get(row), table.find(key), table.keyAt(row)]).toEqual([number + 1, row, key]);
          }
        }
        expect(table.size).toBe(plain.size);
        for (const [row, value] of values) expect(column.get(row)).toBe(value);
        expect(table.find(keyOf(301))).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });

  it("packs by group, the lowest first, in the order of rows, whether they came packed or not", () => {
    const lists = fc.array(fc.array(fc.nat(40), { minLength: 1, maxLength: 8 }), { maxLength: 8 });
    fc.assert(
      fc.property(
        lists,
        fc.array(fc.constantFrom(0, 1, 2 ** 33), { minLength: 41, maxLength: 41 }),
        (all, by) => {
          const table = new DigestTable();
          for (const list of all) for (const _row of table.addPacked(list.map(keyOf).join("")));
          // A list of rows that follow one another is mostly one group again.
          const first = all[0]?.length ?? 0;
          const groupOf = (row: number): number => (row < first ? 7 : (by[row] ?? 0));
          const rows = Array.from({ length: table.size }, (_, row) => row);
          const packed = [1, 7, 2 ** 33].map((group) => [
            group,
            rows.flatMap((row) => (groupOf(row) === group ? [table.keyAt(row)] : [])).join(""),
          ]);
          expect(table.toPacked(groupOf)).toEqual(packed.filter(([, text]) => text !== ""));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("Column", () => {
  it.each([
    ["numbers of a few bits", new Uint8Array(0), 255],
    ["whole numbers", undefined, 4_000_000_000],
    ["any numbers", new Float64Array(0), 2 ** 40 + 0.5],
  ])("of %s has 0 where none was set, and 0 again where that is set", (_what, none, large) => {
    const table = new DigestTable();
    const column = new Column(table, none);
    expect([-1, 0, 1_000].map((row) => column.get(row))).toEqual([0, 0, 0]);
    column.set(5, 0);
    for (let number = 0; number < 200; number++) {
      const row = table.add(keyOf(number));
      column.set(row, number % 2 === 0 ? large : 7);
      if (number % 3 === 0) column.set(row, 0);
    }
    const kept = Array.from({ length: 201 }, (_, row) => column.get(row));
    const set = Array.from({ length: 200 }, (_, row) => (row % 3 === 0 ? 0 : row % 2 === 0 ? large : 7));
    expect(kept).toEqual([...set, 0]);
  });
});

describe("remembered()", () => {
  it("does the work once for each value, and the work of no other", () => {
    const worked: string[] = [];
    const length = remembered((text: string) => {
      worked.push(text);
      return text.length;
    });
    expect(["a", "bb", "", "a", "bb", ""].map(length)).toEqual([1, 2, 0, 1, 2, 0]);
    expect(worked).toEqual(["a", "bb", ""]);
  });
});

describe("numberOfDay()", () => {
  it("gives every day a number above 0 that gives the day again", () => {
    for (const day of [...DAYS, "" as const]) expect(dayOfNumber(numberOfDay(day))).toBe(day);
    expect(DAYS.map(numberOfDay).toSorted((a, b) => a - b)).toEqual(DAYS.map(numberOfDay));
    expect([numberOfDay(""), numberOfDay(DAYS[0] ?? "")]).toEqual([0, 1]);
  });
});
