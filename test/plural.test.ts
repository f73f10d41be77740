import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plural, shown } from "../src/plural.ts";

describe("shown()", () => {
  it("is what an English reader is used to", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.integer(),
          fc.maxSafeInteger(),
          fc.integer().map((n) => n / 1_000),
        ),
        (count) => {
          expect(shown(count)).toBe(count.toLocaleString("en-US"));
        },
      ),
    );
    expect(shown(0.1 + 0.2)).toBe("0.3");
  });
});

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
