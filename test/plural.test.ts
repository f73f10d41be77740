import { describe, expect, it } from "vitest";
import { plural } from "../src/plural.ts";

describe("plural()", () => {
  it.each([
    [0, "0 rows"],
    [1, "1 row"],
    [2_003, "2,003 rows"],
  ])("says %i with its noun", (count, text) => {
    expect(plural(count, "row")).toBe(text);
  });

  it("takes a plural that is not made with an s", () => {
    expect([1, 2].map((count) => plural(count, "retry", "retries"))).toEqual(["1 retry", "2 retries"]);
  });
});
