import { describe, expect, it } from "vitest";
import { IS_NEW, MOST_SEEN_ROWS, SeenRows } from "../../../src/streams/seen-rows.ts";

const add = (rows: SeenRows, key: string, identity: string | number, flags: number): number =>
  rows.add(rows.digestsOf([key]), 0, identity, flags);

describe("SeenRows", () => {
  it("takes no row for seen that was not, over many rows and growth", () => {
    const rows = new SeenRows();
    const addNth = (row: number): number =>
      add(rows, `per_${row.toString(16)}`, `2026-01-01T00:00:${row % 60}Z`, 1);
    for (const known of [IS_NEW, 1 << 4]) {
      rows.beginPass();
      for (let row = 0; row < 300_000; row++)
        if (addNth(row) !== known) expect.fail(`row ${row} was taken for seen, or forgotten`);
    }
  });

  it("costs at most sixteen bytes a row where the rows were counted", () => {
    const count = 200_000;
    globalThis.gc?.();
    const before = process.memoryUsage().arrayBuffers;
    const rows = new SeenRows(count);
    const bytes = process.memoryUsage().arrayBuffers - before;
    for (let row = 0; row < count; row++) add(rows, `k${row}`, "x", 1);
    expect(bytes).toBeLessThanOrEqual(count * 16.05);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThanOrEqual(count * 16.05 + 1_000_000);
  });

  it("stops remembering at its limit and says so", () => {
    const rows = new SeenRows(MOST_SEEN_ROWS);
    for (let row = 0; row < MOST_SEEN_ROWS; row += 1_000) {
      const keys = rows.digestsOf(Array.from({ length: 1_000 }, (_, nth) => String(row + nth)));
      for (let nth = 0; nth < 1_000; nth++) rows.add(keys, nth, "", 1);
    }
    expect(rows.isFull).toBe(true);
    expect(add(rows, "one more", "", 1) & IS_NEW).toBe(IS_NEW);
    expect(add(rows, "one more", "", 1) & IS_NEW).toBe(IS_NEW);
    expect(add(rows, "17", "", 1) & IS_NEW).toBe(0);
  });
});
