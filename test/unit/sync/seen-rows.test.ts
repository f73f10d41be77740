import { describe, expect, it } from "vitest";
import { IS_NEW, SeenRows } from "../../../src/sync/seen-rows.ts";

/** Adds a row of a batch, in which another key stands before it. */
const add = (rows: SeenRows, key: string, identity: string | number, flags: number): number =>
  rows.add(rows.digestsOf([`${identity}`, key]), 1, identity, flags);

describe("SeenRows", () => {
  it("finds exactly the rows that were added, also while it grows", () => {
    const rows = new SeenRows();
    for (const known of [IS_NEW, 1 << 4]) {
      rows.beginPass();
      for (let row = 0; row < 50_000; row++)
        if (add(rows, `per_${row.toString(16)}`, row % 60, 1) !== known) expect.fail(`row ${row}`);
    }
  });
});
