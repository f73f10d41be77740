import { describe, expect, it } from "vitest";
import type { Day } from "../../../src/base/time.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { Suppression } from "../../../src/privacy/suppress.ts";
import { isRead, parsePlan, planDigest, type ShardLine, shardConfig } from "../../../src/shards/plan.ts";
import { NEW_STATE } from "../../../src/sync/state.ts";

const configOf = (settings: object = {}) =>
  parseConfig({ base_url: "https://contacts.example.com", api_key: "k", ...settings }, {}, "x");
const CONFIG = configOf();
const PLAN = planDigest(CONFIG, "people", { rows: 33, asked: 1 }, 3);
const LINES = [
  { from: null, to: "2019-03-02" as Day, rows: 10 },
  { from: "2019-03-03" as Day, to: "2022-01-01" as Day, rows: 12 },
  { from: "2022-01-02" as Day, to: null, rows: 11 },
].map((cut, shard): ShardLine => ({ version: 2, plan: PLAN, stream: "people", shard, ...cut }));
const [FIRST, MIDDLE, OPEN] = LINES as [ShardLine, ShardLine, ShardLine];
const toText = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join("\n");
const isReadWith = (line: ShardLine, ...days: (readonly unknown[])[]): boolean =>
  isRead(line, { ...NEW_STATE, plan: PLAN, days });

describe("a plan", () => {
  it("is read as it was written, lines in any order, under settings that do not change what it reads", () => {
    const turned = toText(LINES.toReversed()).replaceAll("\n", "\r\n\r\n");
    const others = { max_window_rows: 5000, api_key: "other", lookback_window_days: 9, num_workers: 3 };
    expect(parsePlan(turned, "people", configOf(others))).toEqual(LINES);
  });

  it.each([
    ["of version 1", toText([{ ...FIRST, version: 1 }]), "line 1 is of another version"],
    ["whose name is a path", toText([{ ...FIRST, plan: "../x" }]), "line 1 is no shard: plan must match"],
    ["of another stream", toText([{ ...FIRST, stream: "companies" }]), 'it has no shards of "people"'],
    ["that lacks its first shard", toText([MIDDLE, OPEN]), 'shard 1 of "people" does not follow'],
    ["that lacks a shard in the middle", toText([FIRST, OPEN]), 'shard 2 of "people" does not follow'],
    ["with a day in no shard", toText([FIRST, { ...MIDDLE, from: "2019-03-04" }]), "does not follow"],
    ["with a day in two shards", toText([FIRST, { ...MIDDLE, from: "2019-03-02" }]), "does not follow"],
  ])("%s is refused", (_what, text, why) => {
    expect(() => parsePlan(text, "people", CONFIG)).toThrow(why);
  });

  it.each<Record<string, unknown>>([
    { base_url: "https://other.example.com" },
    { source_slug: "crm" },
    { is_user: "true" },
    { start_date: "2020-01-01" },
    { end_date: "2020-01-01" },
    { verify_counts: false },
    { ignore_missing_days: ["2020-01-01"] },
    { drop_fields: ["phone"] },
    { only_fields: ["email"] },
    { hash_fields: ["email"], hash_salt: "0123456789abcdef" },
  ])("is refused under settings that decide what is read or what leaves: %o", (settings) => {
    expect(() => parsePlan(toText(LINES), "people", configOf(settings))).toThrow("the config differs");
  });

  it("is refused under another list of suppressed people", () => {
    const suppressed = new Suppression([["ada@example.com"]]);
    expect(() => parsePlan(toText(LINES), "people", { ...CONFIG, suppressed })).toThrow("the config differs");
  });
});

describe("a shard", () => {
  it("has its days and its share of the requests, and reads no closed day twice", () => {
    const config = configOf({ requests_per_minute: 60, lookback_window_days: 3, end_date: "2030-01-01" });
    expect(shardConfig(config, MIDDLE, 4)).toEqual({
      ...config,
      ...{ startDate: "2019-03-03", endDate: "2022-01-01", lookbackWindowDays: 0, requestsPerMinute: 15 },
    });
    expect(shardConfig(config, OPEN, 1)).toEqual({ ...config, startDate: "2022-01-02" });
  });

  it.each<[what: string, line: ShardLine, expected: boolean, ...days: (readonly unknown[])[]]>([
    ["all its days, and those of others", MIDDLE, true, ["0001-01-01", "2022-01-01", 5]],
    ["days that are checked again", MIDDLE, true, ["2019-03-03", "2022-01-01", 5, "again"]],
    ["a day too few", MIDDLE, false, ["2019-03-03", "2021-12-31", 5]],
    ["a missing day", MIDDLE, false, ["2019-03-03", "2022-01-01", null, "missing"]],
    ["days up to yesterday of the open shard", OPEN, false, ["2022-01-02", "2026-11-20", 5]],
  ])("with a state that holds %s", (_what, line, expected, ...days) => {
    expect(isReadWith(line, ...days)).toBe(expected);
  });

  it("is not read without a state, and refuses the state of another plan or of none", () => {
    expect(isRead(MIDDLE, undefined)).toBe(false);
    expect(() => isRead(MIDDLE, { ...NEW_STATE, plan: "f".repeat(32) })).toThrow("is of another plan");
    expect(() => isRead(MIDDLE, { ...NEW_STATE, plan: null })).toThrow("is of no plan");
  });
});
