import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fingerprint } from "../../../src/fingerprint.ts";
import { NewestKeys, type Witness } from "../../../src/streams/newest-keys.ts";

type Seen = readonly [key: string, at: number];

/** The same, kept without end. */
function newestOf(rows: readonly Seen[], key: string): Witness | null {
  const newest = new Map<string, number>();
  for (const [name, at] of rows)
    if (!Number.isNaN(at)) newest.set(name, Math.max(at, newest.get(name) ?? Number.NEGATIVE_INFINITY));
  const kept = [...newest].sort(([, a], [, b]) => b - a).slice(0, 8);
  const oldest = kept.at(-1);
  if (oldest === undefined) return null;
  return { keys: kept.map(([name]) => fingerprint(name)), cursor: new Date(oldest[1]).toISOString(), key };
}

const MOMENT = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: -1e12, max: 1e12 }) },
  fc.constant(Number.NaN),
);
const keysBelow = (most: number): fc.Arbitrary<Seen[]> =>
  fc.uniqueArray(fc.tuple(fc.nat(most).map(String), MOMENT), {
    ...{ maxLength: 700, selector: ([, at]) => at, size: "max" },
  });

describe("NewestKeys", () => {
  it.each([3, 9, 2_000])(
    "are the eight newest of up to %i keys, each once, with the oldest moment",
    (most) => {
      fc.assert(
        fc.property(keysBelow(most), fc.nat(700), (rows, middle) => {
          const newest = new NewestKeys();
          for (const [nth, [key, at]] of rows.entries()) {
            // A checkpoint asks before all rows have come.
            if (nth === middle) expect(newest.witness("k")).toEqual(newestOf(rows.slice(0, nth), "k"));
            newest.see(key, at);
          }
          expect(newest.witness("other")).toEqual(newestOf(rows, "other"));
        }),
        { numRuns: 25 },
      );
    },
  );

  it.each([1, 7, 8, 9, 300])(
    "take an older key while there are few, however often the others came: %i times",
    (times) => {
      const newest = new NewestKeys();
      const rows = Array.from({ length: times }, (_, nth): Seen => ["a", nth + 10]);
      for (const [key, at] of rows) newest.see(key, at);
      expect(newest.witness("k")).toEqual(newestOf(rows, "k"));
      newest.see("b", 5);
      expect(newest.witness("k")).toEqual(newestOf([...rows, ["b", 5]], "k"));
    },
  );

  it("are none before a row with a moment has come", () => {
    const newest = new NewestKeys();
    expect(newest.witness("k")).toBeNull();
    newest.see("a", Number.NaN);
    expect(newest.witness("k")).toBeNull();
  });
});
