import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plural, shown, table } from "../../src/plural.ts";

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
    expect([1.2344, 1.23456, 1_234.5678].map(shown)).toEqual(["1.234", "1.235", "1,234.568"]);
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

describe("table()", () => {
  it("has columns as wide as their widest cell, two spaces apart, and nothing at the end of a line", () => {
    expect(
      table([
        ["a", "wide", "c"],
        ["long", "b", ""],
        ["", "", "last"],
      ]),
    ).toEqual(["a     wide  c", "long  b", "            last"]);
    expect([table([]), table([["x"]])]).toEqual([[], ["x"]]);
  });

  it("takes rows that have fewer cells than the first, or more", () => {
    expect(table([["ab", "cd"], ["a"], ["a", "b", "c"]])).toEqual(["ab  cd", "a", "a   b   c"]);
  });
});
