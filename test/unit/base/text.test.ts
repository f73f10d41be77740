import fc from "fast-check";
import { expect, it } from "vitest";
import { nearestName, plural, shown, table } from "../../../src/base/text.ts";

it.each<[name: string, meant: string | undefined]>([
  ["startDate", "start_date"],
  ["START-DATE", "start_date"],
  ["strat_date", "start_date"],
  ["api_keys", "api_key"],
  ["apx_kxy", "api_key"],
  ["axx_kxy", undefined],
  ["stop_date", undefined],
  ["url", undefined],
  ["", undefined],
])("a misspelled %j is taken for %j", (name, meant) => {
  expect(nearestName(name, ["start_date", "end_date", "api_key", "base_url"])).toBe(meant);
});

it("a misspelled name is taken for the nearest, and for the first of two that are as near", () => {
  expect(nearestName("abcdef", ["abcdxx", "abcdex", "abcdey"])).toBe("abcdex");
});

it("numbers are grouped as English readers know them", () => {
  const numbers = fc.oneof(
    fc.integer(),
    fc.maxSafeInteger(),
    fc.integer().map((n) => n / 1_000),
  );
  fc.assert(
    fc.property(numbers, (count) => {
      expect(shown(count)).toBe(count.toLocaleString("en-US"));
    }),
  );
  expect([0, 1, 2_003].map((count) => plural(count, "row"))).toEqual(["0 rows", "1 row", "2,003 rows"]);
  expect(plural(2, "retry", "retries")).toBe("2 retries");
});

it("a table has columns as wide as their widest cell, and no spaces at the end of a line", () => {
  expect(table([["a", "wide", "c"], ["long", "b", ""], ["", "", "last"], ["x"]])).toEqual([
    ...["a     wide  c", "long  b", "            last", "x"],
  ]);
});
