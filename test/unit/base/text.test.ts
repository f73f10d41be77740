import { expect, it } from "vitest";
import { nearestName } from "../../../src/base/text.ts";

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
