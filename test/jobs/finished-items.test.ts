import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FinishedItems } from "../../src/jobs/finished-items.ts";
import { addDays, type Day } from "../../src/time.ts";

const DAYS = ["1970-01-01", "2026-02-28", "2026-03-01", "2026-03-02"] as Day[];

/** Keys whose digests begin alike, so that they meet in the table. */
const keyOf = (number: number): string => {
  const digest = Buffer.alloc(12);
  digest.writeUInt32LE(number % 3, 0);
  digest.writeUInt32LE(number, 8);
  return digest.toString("base64url");
};

const STEP = fc.record({
  what: fc.constantFrom("add", "add", "add", "pack", "delete"),
  number: fc.nat(200),
  /** What is packed with it: the same again, or others. */
  others: fc.array(fc.nat(200), { maxLength: 3 }),
  day: fc.nat(30).map((days) => addDays(DAYS[1] as Day, days)),
});

/** What a packed list says: each item and its day. */
const unpacked = (items: FinishedItems): readonly (readonly [string, Day])[] =>
  items.toPacked().flatMap(([day, text]) => (text.match(/.{16}/g) ?? []).map((key) => [key, day] as const));

describe("FinishedItems", () => {
  it("knows of each item the latest day that it was told, through any additions and removals", () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 400 }), (steps) => {
        const items = new FinishedItems();
        const plain = new Map<string, Day>();
        for (const { what, number, others, day } of steps) {
          const key = keyOf(number);
          const added = what === "pack" ? [key, ...others.map(keyOf)] : [key];
          if (what === "delete") {
            items.delete(key);
            plain.delete(key);
          } else {
            if (what === "add") items.add(key, day);
            else expect(items.addPacked(day, added.join(""))).toBe(true);
            for (const one of added) {
              const before = plain.get(one);
              if (before === undefined || before < day) plain.set(one, day);
            }
          }
          expect(items.size).toBe(plain.size);
          expect(items.dayOf(key)).toBe(plain.get(key));
          // What is packed is kept until it changes.
          if (number % 7 === 0) items.toPacked();
        }
        expect(unpacked(items)).toHaveLength(plain.size);
        expect(new Map(unpacked(items))).toEqual(plain);
        expect([...items.keys()].toSorted()).toEqual([...plain.keys()].toSorted());
      }),
      { numRuns: 60 },
    );
  });

  it("packs by day, oldest first, sixteen characters an item, and reads that again", () => {
    const items = new FinishedItems();
    for (let number = 0; number < 1_000; number++) items.add(keyOf(number), DAYS[number % 4] as Day);
    const packed = items.toPacked();
    expect(packed.map(([day]) => day)).toEqual(DAYS);
    expect(packed.map(([, text]) => text.length)).toEqual([4_000, 4_000, 4_000, 4_000]);
    const again = new FinishedItems();
    for (const [day, text] of packed) expect(again.addPacked(day, text)).toBe(true);
    expect(again.toPacked()).toEqual(packed);
    expect(again.dayOf(keyOf(1_001))).toBeUndefined();
  });

  it.each(["A", "A".repeat(15), "A".repeat(17), `${"A".repeat(15)}!`])(
    "takes %j for no packed digests",
    (text) => {
      const items = new FinishedItems();
      expect(items.addPacked(DAYS[1] as Day, text)).toBe(false);
      expect(items.size).toBe(0);
    },
  );
});
