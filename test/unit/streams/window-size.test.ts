import { describe, expect, it } from "vitest";
import { WindowSize } from "../../../src/streams/window-size.ts";

const LARGE = 250_000;
const inTenSeconds = (size: WindowSize, rows: number): void => size.measure(rows, 10_000);

describe("WindowSize", () => {
  it.each([
    [250_000, 25_000, 250_000, 50_000],
    [50_001, 25_000, 50_001, 50_000],
    [49_999, 25_000, 49_999, 49_999],
    [33_334, 25_000, 33_334, 33_334],
    [33_332, 24_999, 33_332, 33_332],
    [1_000, 750, 1_000, 1_000],
    [1_001, 751, 1_001, 1_001],
  ])("begins, for max_window_rows %i, with %i rows", (most, rows, split, small) => {
    const size = new WindowSize(most);
    expect([size.rows, size.most, size.smallRange]).toEqual([rows, split, small]);
    expect([size.maxWindowRows, size.exportsFail, size.fallsShort]).toEqual([most, false, false]);
  });

  it.each([
    [60_000, 10_000, 60_000],
    [60_000, 20_000, 30_000],
    [20_000, 5_000, 40_000],
    [100_000, 9_000, 100_000],
    [99_999, 10_000, 99_999],
    [5_000, 10_000, 5_000],
    [5_000, 20_000, 5_000],
    [5_001, 10_000, 5_001],
    [6_000, 0, 100_000],
    [7_001, 20_001, 5_000],
    [70_007, 20_001, 35_002],
  ])("is what comes in ten seconds, between 5,000 and 100,000: of %i rows in %i ms", (rows, ms, size) => {
    const sized = new WindowSize(LARGE);
    sized.measure(rows, ms);
    expect(sized.rows).toBe(size);
  });

  it("learns no pace from fewer than 5,000 rows, and forgets that exports fail", () => {
    const size = new WindowSize(LARGE);
    size.exportsFail = true;
    size.measure(4_999, 1_000);
    expect([size.rows, size.exportsFail]).toEqual([25_000, false]);
    size.measure(5_000, 1_000);
    expect(size.rows).toBe(50_000);
  });

  it("halves what exports failed of, but never below what one has brought", () => {
    const size = new WindowSize(LARGE);
    size.tooLarge(80_001);
    expect([size.most, size.rows, size.smallRange]).toEqual([40_001, 25_000, 40_001]);
    size.tooLarge(100_000);
    expect(size.most).toBe(40_001);
    size.tooLarge(20_000);
    expect([size.most, size.rows]).toEqual([10_000, 7_500]);
    inTenSeconds(size, 12_000);
    expect([size.most, size.rows]).toEqual([12_000, 9_000]);
    size.tooLarge(8_000);
    expect(size.most).toBe(12_000);
    inTenSeconds(size, 6_000);
    expect(size.most).toBe(12_000);
    const slow = new WindowSize(LARGE);
    slow.tooLarge(4_000);
    slow.measure(3_000, 60_000);
    expect([slow.most, slow.rows]).toEqual([3_000, 2_250]);
  });

  it("knows before any failure what one has brought", () => {
    const size = new WindowSize(LARGE);
    inTenSeconds(size, 30_000);
    inTenSeconds(size, 10_000);
    size.tooLarge(40_000);
    expect(size.most).toBe(30_000);
  });

  it.each([
    [20_000, LARGE],
    [20_001, 10_000],
    [1, LARGE],
  ])(
    "blames the number no longer when a day of %i rows fails that has hardly more than is allowed",
    (rows, most) => {
      const size = new WindowSize(LARGE);
      size.tooLarge(20_000);
      expect(size.most).toBe(10_000);
      size.dayFailed(rows);
      expect(size.most).toBe(most);
    },
  );
});
