import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IS_NEW, inGroup, inPass, SeenRows } from "../../../src/sync/seen-rows.ts";

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

/** Adds a row of a batch, in which another key stands before it. */
const add = (rows: SeenRows, key: string, identity: string | number, flags: number): number =>
  rows.add(rows.digestsOf([`${identity}`, key]), 1, identity, flags);

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

  it("finds exactly the rows that were added, also while it grows", () => {
    const rows = new SeenRows();
    for (const known of [IS_NEW, 1 << 4]) {
      rows.beginPass();
      for (let row = 0; row < 50_000; row++)
        if (add(rows, `per_${row.toString(16)}`, row % 60, 1) !== known) expect.fail(`row ${row}`);
    }
  });
});
