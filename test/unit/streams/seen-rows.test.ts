import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IS_NEW, inGroup, inPass, SeenRows } from "../../../src/streams/seen-rows.ts";
import { runs } from "../../support/runs.ts";

/** The same promises kept with a Map, which costs a hundred bytes a row. */
class PlainRows {
  readonly #rows = new Map<string, { key: string; pass: number; group: number }>();

  beginPass(): void {
    for (const row of this.#rows.values()) row.pass = 0;
  }

  beginGroup(): void {
    for (const row of this.#rows.values()) [row.pass, row.group] = [0, 0];
  }

  add(key: string, identity: string | number, flags: number): object {
    let [pass, group] = [0, 0];
    for (const row of this.#rows.values()) {
      if (row.key !== key) continue;
      pass |= row.pass;
      group |= row.group;
    }
    const name = JSON.stringify([key, identity]);
    const row = this.#rows.get(name);
    this.#rows.set(name, { key, pass: (row?.pass ?? 0) | flags, group: (row?.group ?? 0) | flags });
    return { isNew: row === undefined, pass, group };
  }
}

const ROW = fc.record({
  kind: fc.constant("row" as const),
  key: fc.constantFrom("a", "b", "c", "d", "", "é", "aa", "\xe4\xb8\xad"),
  identity: fc.constantFrom<string | number>("1", "2", 3, 1_700_000_000_000, -62_135_596_800_000),
  flags: fc.integer({ min: 1, max: 15 }),
});
const STEP = fc.oneof(
  { weight: 8, arbitrary: ROW },
  fc.constantFrom({ kind: "pass" } as const, { kind: "group" } as const),
);

const add = (rows: SeenRows, key: string, identity: string | number, flags: number): number =>
  rows.add(rows.digestsOf([key]), 0, identity, flags);

describe("SeenRows", () => {
  it("answers as a map of all rows does, over any passes and groups", () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 80 }), (steps) => {
        const rows = new SeenRows();
        const plain = new PlainRows();
        for (const step of steps) {
          for (const kept of [rows, plain]) {
            if (step.kind === "pass") kept.beginPass();
            if (step.kind === "group") kept.beginGroup();
          }
          if (step.kind !== "row") continue;
          const known = add(rows, step.key, step.identity, step.flags);
          expect({ isNew: (known & IS_NEW) !== 0, pass: inPass(known), group: inGroup(known) }).toEqual(
            plain.add(step.key, step.identity, step.flags),
          );
        }
      }),
    );
  });

  it("says whether a pass has shown the very same rows as the one before, and as many as are asked for", () => {
    const rowsOf = fc.shuffledSubarray(
      [
        ...(["1", 1_700_000_000_000] as const).flatMap((identity) =>
          ["a", "b"].map((key) => [key, identity] as const),
        ),
      ],
      { maxLength: 4 },
    );
    // A pass may show a row more than once.
    const PASS = fc.tuple(
      fc.constantFrom("pass", "group", "forget"),
      fc.tuple(rowsOf, rowsOf).map((parts) => parts.flat()),
    );
    fc.assert(
      fc.property(fc.array(PASS, { maxLength: 6 }), (passes) => {
        const rows = new SeenRows();
        let before = "";
        for (const [kind, shown] of passes) {
          if (kind === "group") rows.beginGroup();
          if (kind === "forget") rows.forget();
          rows.beginPass();
          for (const [key, identity] of shown) {
            const known = add(rows, key, identity, 1);
            if (kind === "forget" && known & IS_NEW) expect(inGroup(known) & ~1).toBe(0);
          }
          const different = new Set(shown.map((row) => row.join())).size;
          const now = [...new Set(shown.map((row) => row.join()))].sort().join(" ");
          expect(rows.isRepeated).toBe(now === before);
          for (const number of [0, 1, 2, 3, 4])
            expect(rows.isSameTwice(number)).toBe(now === before && number === different);
          before = now;
        }
      }),
      { numRuns: runs(50, 500) },
    );
  });

  it("passes every row on again once it has forgotten all, and keeps what it learns then", () => {
    const rows = new SeenRows();
    const all = Array.from({ length: 3_000 }, (_, nth) => `k${nth}`);
    for (const key of all) add(rows, key, 1, 1);
    rows.forget();
    rows.beginPass();
    expect(new Set(all.map((key) => add(rows, key, 1, 2)))).toEqual(new Set([IS_NEW]));
    expect(new Set(all.map((key) => inPass(add(rows, key, 1, 1))))).toEqual(new Set([2]));
  });

  it("knows a key again whatever stands beside it in a batch", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("", "a", "ab", "b", "\xff", "per_0123456789"), { maxLength: 20 }),
        (keys) => {
          const rows = new SeenRows();
          for (const key of new Set(keys)) add(rows, key, 1, 1);
          const digests = rows.digestsOf(keys);
          expect(keys.map((_, nth) => rows.add(digests, nth, 1, 1) & IS_NEW)).toEqual(keys.map(() => 0));
        },
      ),
    );
  });
});
