import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settingsIn } from "../../../src/config/spec.ts";
import { unknownSettings, unknownWarnings } from "../../../src/config/unknown.ts";

/** The nearest setting of the only unknown one. */
function nearest(draft: Record<string, unknown>): string | undefined {
  const [unknown, ...others] = unknownSettings(draft);
  expect(others).toEqual([]);
  return unknown?.nearest;
}

describe("unknownSettings()", () => {
  it.each([
    ["start_dat", "start_date"],
    ["startDate", "start_date"],
    ["START-DATE", "start_date"],
    ["strat_date", "start_date"],
    ["apikey", "api_key"],
    ["url", undefined],
    ["", undefined],
    ["x".repeat(100_000), undefined],
  ])("finds what %.20j may mean: %j", (name, meant) => {
    expect(nearest({ [name]: 1 })).toBe(meant);
  });

  it.each([
    [{ company_lookup: { domain: [] } }, "company_lookup.domains"],
    [{ domains: ["a.com"] }, "company_lookup.domains"],
    [{ email_check: { api_url: "x" } }, "external_api.api_url"],
    [{ endpoints: { toString: "/x" } }, undefined],
  ])("looks among the neighbours of %j first, then everywhere: %j", (draft, meant) => {
    expect(nearest(draft)).toBe(meant);
  });

  it("finds nothing in a config of known settings", () => {
    const settings = [...settingsIn()].filter(({ path }) => path.length === 1);
    const draft = Object.fromEntries(settings.map(({ path }) => [path[0], {}]));
    expect(unknownSettings(draft)).toEqual([]);
  });

  it("takes any object", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (draft) => {
        expect(unknownSettings(draft).length).toBeLessThanOrEqual(Object.keys(draft).length);
      }),
    );
  });
});

describe("unknownWarnings()", () => {
  const warningsOf = (draft: Record<string, unknown>): readonly string[] =>
    unknownWarnings(unknownSettings(draft), []);

  it("says at most twenty, and how many more there are", () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`zz${index}`, 1]));
    const warnings = warningsOf(many);
    expect(warnings).toHaveLength(21);
    expect(warnings.at(-1)).toBe("Unknown besides: 980 settings");
  });

  it("escapes what would move the cursor, and cuts what is long", () => {
    const names = { "a\u001b[2J\u202eb\n\u2028": 1, [`k${"y".repeat(5_000)}`]: 1 };
    const [first = "", second = ""] = warningsOf(names);
    expect(first).toBe('Unknown setting "a\\u001b[2J\\u202eb\\n\\u2028". It has no effect');
    expect(second.length).toBeLessThan(300);
  });
});
