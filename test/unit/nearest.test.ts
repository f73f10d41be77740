import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { distanceOf, nearestName, plain } from "../../src/nearest.ts";

describe("distanceOf()", () => {
  it.each([
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["abc", "abd", 1],
    ["abc", "xbc", 1],
    ["abc", "ab", 1],
    ["abc", "bc", 1],
    ["abc", "ac", 1],
    ["abc", "acb", 1],
    ["abc", "bac", 1],
    ["abcd", "badc", 2],
    ["abcd", "cbad", 2],
    ["abc", "cab", 2],
    ["ab", "ba", 1],
    ["aab", "aba", 1],
    ["abab", "baba", 2],
    ["kitten", "sitting", 3],
    ["abc", "xyz", 3],
    ["a", "xyz", 3],
  ])("of %j and %j is %i", (a, b, distance) => {
    expect(distanceOf(a, b)).toBe(distance);
    expect(distanceOf(b, a)).toBe(distance);
  });

  it("is no more than the edits that were made, and never less than the lengths differ", () => {
    const edit = fc.record({ at: fc.nat(20), how: fc.constantFrom("add", "remove", "change", "swap") });
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });
    fc.assert(
      fc.property(word, fc.array(edit, { maxLength: 3 }), (from, edits) => {
        const letters = [...from];
        for (const { at, how } of edits) {
          const place = at % (letters.length + 1);
          if (how === "add") letters.splice(place, 0, "d");
          if (how === "remove") letters.splice(place, 1);
          if (how === "change" && place < letters.length) letters[place] = "d";
        }
        const to = letters.join("");
        const distance = distanceOf(from, to);
        expect(distance).toBeLessThanOrEqual(edits.length);
        expect(distance).toBeGreaterThanOrEqual(Math.abs(from.length - to.length));
        expect(distance === 0).toBe(from === to);
      }),
    );
  });
});

describe("plain()", () => {
  it("is what is left of a name whatever way it is written, of its first hundred characters", () => {
    for (const name of ["startDate", "start-date", "START_DATE", " start date "])
      expect(plain(name)).toBe("startdate");
    expect(plain(`A9${"-".repeat(97)}bc`)).toBe("a9b");
    expect(plain("é+")).toBe("");
  });
});

describe("nearestName()", () => {
  const NAMES = ["start_date", "end_date", "api_key", "base_url"];

  it.each([
    ["startDate", "start_date"],
    ["strat_date", "start_date"],
    ["stop_date", undefined],
    ["apikey", "api_key"],
    ["api_keys", "api_key"],
    ["apx_kxy", "api_key"],
    ["axx_kxy", undefined],
    ["url", undefined],
    ["", undefined],
    ["completely_different", undefined],
  ])("takes %j for %j", (name, nearest) => {
    expect(nearestName(name, NAMES)).toBe(nearest);
    expect(nearestName(name, new Set(NAMES).values())).toBe(nearest);
  });

  it("takes the nearest, and of two that are as near the first", () => {
    expect(nearestName("abcdef", ["abcdxx", "abcdex", "abcxxx"])).toBe("abcdex");
    expect(nearestName("abcdef", ["abcdey", "abcdex"])).toBe("abcdey");
    expect(nearestName("abcdef", [])).toBeUndefined();
  });

  it("allows one letter in a short name, and a third of them in a longer one", () => {
    const near = (name: string): boolean[] =>
      [1, 2, 3, 4].map((wrong) => nearestName(name, ["0".repeat(wrong) + name.slice(wrong)]) !== undefined);
    expect(
      ["ab", "abcde", "abcdef", "abcdefgh", "abcdefghi"].map((name) => near(name).indexOf(false)),
    ).toEqual([...[1, 1, 2, 2, 3]]);
  });
});
