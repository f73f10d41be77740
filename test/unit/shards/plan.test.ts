import { describe, expect, it } from "vitest";
import type { Day } from "../../../src/base/time.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { isComplete, parsePlan, type Shard, shardConfig } from "../../../src/shards/plan.ts";
import { NEW_STATE } from "../../../src/sync/state.ts";

const configOf = (settings: object = {}) =>
  parseConfig({ base_url: "https://contacts.example.com", api_key: "k", ...settings }, {}, { name: "x" });
const PLAN = "0123456789abcdef";
const LINES = [
  { from: null, to: "2019-03-02" as Day, rows: 10 },
  { from: "2019-03-03" as Day, to: "2022-01-01" as Day, rows: 12 },
  { from: "2022-01-02" as Day, to: null, rows: 11 },
].map((days, shard): Shard => ({ version: 3, plan: PLAN, stream: "people", shard, ...days, share: 0.25 }));
const [FIRST, MIDDLE, OPEN] = LINES as [Shard, Shard, Shard];
const toText = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join("\n");

describe("a plan", () => {
  it("is read as it was written, lines in any order", () => {
    const turned = toText(LINES.toReversed()).replaceAll("\n", "\r\n\r\n");
    expect(parsePlan(turned, "p")).toEqual(LINES);
  });

  it.each([
    [
      "of another version",
      toText([{ ...FIRST, version: 2 }]),
      'plan "p": line 1 is not a line of a plan. Make',
    ],
    ["whose name is a path", toText([{ ...FIRST, plan: "../x" }]), "line 1 is not a line of a plan"],
    ["that has shards of two plans", toText([FIRST, { ...MIDDLE, plan: "f".repeat(16) }]), "does not follow"],
    ["with no share of the requests", toText([{ ...FIRST, share: 0 }]), "line 1 is not a line of a plan"],
    ["without a line", "\n", "it is empty"],
    ["of two streams", toText([FIRST, { ...MIDDLE, stream: "companies" }]), "does not follow"],
    ["that lacks its first shard", toText([MIDDLE, OPEN]), 'shard 1 of "people" does not follow'],
    ["that lacks a shard in the middle", toText([FIRST, OPEN]), 'shard 2 of "people" does not follow'],
    ["with a day in no shard", toText([FIRST, { ...MIDDLE, from: "2019-03-04" }]), "does not follow"],
    ["with a day in two shards", toText([FIRST, { ...MIDDLE, from: "2019-03-02" }]), "does not follow"],
  ])("%s is refused", (_what, text, why) => {
    expect(() => parsePlan(text, "p")).toThrow(why);
  });
});

describe("a shard", () => {
  it("has its days and its share of the requests, and reads no closed day twice", () => {
    const config = configOf({ requests_per_minute: 60, lookback_window_days: 3, end_date: "2030-01-01" });
    expect(shardConfig(config, MIDDLE)).toEqual({
      ...config,
      ...{ startDate: "2019-03-03", endDate: "2022-01-01", lookbackWindowDays: 0, requestsPerMinute: 15 },
      readsUndated: false,
    });
    expect(shardConfig(config, { ...OPEN, share: 1 })).toEqual({
      ...config,
      ...{ startDate: "2022-01-02", readsUndated: false },
    });
    expect(() => shardConfig(configOf({ requests_per_minute: 3 }), OPEN)).toThrow(
      "less than one request per minute",
    );
  });

  it.each<[what: string, line: Shard, expected: boolean, from: string, to: string, status: string]>([
    ["all its days, and those of others", MIDDLE, true, "1970-01-02", "2022-01-01", "proven"],
    ["days that the next run reads again", MIDDLE, true, "2019-03-03", "2022-01-01", "again"],
    ["a day too few", MIDDLE, false, "2019-03-03", "2021-12-31", "proven"],
    ["a missing day", MIDDLE, false, "2019-03-03", "2022-01-01", "missing"],
    ["days up to yesterday of the open shard", OPEN, false, "2022-01-02", "2026-11-20", "proven"],
  ])("with a state that contains %s", (_what, line, expected, from, to, status) => {
    expect(isComplete(line, { ...NEW_STATE, days: [{ from, to, status, rows: 5 }] })).toBe(expected);
    expect(isComplete(line, undefined)).toBe(false);
  });
});
