import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Column, DigestTable, dayOfNumber, numberOfDay } from "../../src/jobs/packed.ts";
import type { Day } from "../../src/time.ts";

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
        for (const { number, others, isPacked } of steps) {
          const keys = isPacked ? [number, ...others].map(keyOf) : [keyOf(number)];
          const rows = isPacked ? [...table.addPacked(keys.join(""))] : keys.map((key) => table.add(key));
          for (const [nth, key] of keys.entries()) {
            const row = rows[nth] ?? -1;
            expect(row).toBe(plain.get(key) ?? plain.size);
            plain.set(key, row);
            column.set(row, number + 1);
            expect([column.get(row), table.find(key), table.keyAt(row)]).toEqual([number + 1, row, key]);
          }
        }
        expect(table.size).toBe(plain.size);
        expect(table.find(keyOf(301))).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });

  it("packs by day, oldest first, sixteen characters each, and leaves out what has no day", () => {
    const table = new DigestTable();
    for (let number = 0; number < 1_000; number++) table.add(keyOf(number));
    const numbers = [...DAYS, "" as const].map(numberOfDay);
    const packed = table.toPacked((row) => numbers[row % 5] ?? 0);
    expect(packed.map(([day, text]) => [day, text.length])).toEqual(DAYS.map((day) => [day, 200 * 16]));
    expect(packed[1]?.[1].slice(0, 32)).toBe(keyOf(1) + keyOf(6));
  });
});

describe("numberOfDay()", () => {
  it("gives every day a number above 0 that gives the day again", () => {
    for (const day of [...DAYS, "" as const]) expect(dayOfNumber(numberOfDay(day))).toBe(day);
    expect(DAYS.map(numberOfDay).toSorted((a, b) => a - b)).toEqual(DAYS.map(numberOfDay));
    expect([numberOfDay(""), numberOfDay(DAYS[0] ?? "")]).toEqual([0, 1]);
  });
});
