import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { loadSpec } from "../../../src/config/spec.ts";
import { Suppression } from "../../../src/config/suppress.ts";
import {
  isRead,
  parsePlan,
  planDigest,
  type ShardLine,
  shardConfig,
  shardFolder,
  wholeLines,
} from "../../../src/shards/plan.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import type { Day } from "../../../src/time.ts";

const SIZE = { rows: 33, asked: Date.UTC(2026, 10, 21) };
const configOf = (settings: object = {}) =>
  parseConfig({ base_url: "https://contacts.example.com", api_key: "k", ...settings }, {}, "x");
const CONFIG = configOf();
const DIGEST = planDigest(CONFIG, "people", SIZE, 3);

const linesOf = (stream: string, plan = DIGEST): readonly ShardLine[] =>
  [
    { from: null, to: "2019-03-02" as Day, rows: 10 },
    { from: "2019-03-03" as Day, to: "2022-01-01" as Day, rows: 12 },
    { from: "2022-01-02" as Day, to: null, rows: 11 },
  ].map((cut, shard) => ({ version: 2, plan, stream, shard, ...cut }));
const LINES = linesOf("people");
const [, MIDDLE, OPEN] = LINES as [ShardLine, ShardLine, ShardLine];
const toText = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join("\n");

describe("a plan", () => {
  it("is read as it was written, lines in any order", () => {
    const turned = toText(LINES.toReversed()).replaceAll("\n", "\r\n\r\n");
    expect(parsePlan(`${toText(LINES)}\n`, undefined, CONFIG)).toEqual(LINES);
    expect(parsePlan(turned, "people", CONFIG)).toEqual(LINES);
  });

  it("may stand beside the plan of another stream", () => {
    const companies = linesOf("companies", planDigest(CONFIG, "companies", SIZE, 3));
    const both = toText([...LINES, ...companies]);
    expect(parsePlan(both, "companies", CONFIG)).toEqual(companies);
    expect(companies[0]?.plan).not.toBe(DIGEST);
    expect(() => parsePlan(both, undefined, CONFIG)).toThrow("it has shards of several streams. Name one");
  });

  it.each([
    ["", 'it has no shards of "people". Make one with'],
    ["{", "line 1 is no shard: must be object"],
    [
      toText(LINES.map((line) => ({ ...line, version: 1, shards: 3, start_date: null }))),
      "line 1 is of another version. Plan again, or merge the states if all shards are finished",
    ],
    ['{"version":2}', "line 1 is no shard: must have required property"],
    [toText(LINES).replaceAll(DIGEST, "../x"), "line 1 is no shard: plan must match pattern"],
    [toText(linesOf("companies")), 'it has no shards of "people"'],
    [toText(LINES.slice(1)), 'shard 1 of "people" does not follow the line before it'],
    [toText([...LINES, ...LINES]), "does not follow the line before it"],
    [toText(LINES).replace('"from":"2019-03-03"', '"from":"2019-03-04"'), "shard 1 of"],
    [toText([...linesOf("people", "f".repeat(32)).slice(0, 1), ...LINES.slice(1)]), "shard 1 of"],
  ])("is refused when it is none (%#)", (broken, why) => {
    expect(() => parsePlan(broken, "people", CONFIG)).toThrow(why);
  });

  const BINDING: readonly Record<string, unknown>[] = [
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
  ];
  const FREE: readonly Record<string, unknown>[] = [
    { max_window_rows: 5000 },
    { requests_per_minute: 7 },
    { api_key: "other" },
    { num_workers: 3 },
    { lookback_window_days: 9 },
    { max_run_seconds: 99 },
    { idle_timeout_seconds: 99 },
    { allow_insecure_http: true },
    { emit_activate_version_messages: true },
    { receipts_file: "receipts.jsonl" },
    { proof_stream: true },
  ];

  it.each(BINDING)("is refused under other settings: %o", (settings) => {
    expect(() => parsePlan(toText(LINES), "people", configOf(settings))).toThrow("the config differs");
  });

  it.each(FREE)("fits settings that change neither what is read nor what leaves: %o", (settings) => {
    expect(parsePlan(toText(LINES), "people", configOf(settings))).toEqual(LINES);
  });

  it("knows of every setting whether it is bound to it", () => {
    // Paths of the lists, what only jobs read, and the file whose content is bound, below.
    const others = [
      "endpoints",
      "external_api",
      "company_lookup",
      "email_verification",
      "email_check",
      "suppress_file",
    ];
    const known = [...BINDING, ...FREE].flatMap((settings) => Object.keys(settings));
    const all = Object.keys(loadSpec().connectionSpecification.properties ?? {});
    expect([...known, ...others].toSorted()).toEqual(all.toSorted());
  });

  it("is refused under another list of who never leaves", () => {
    const suppressed = new Suppression([["ada@example.com"]]);
    expect(() => parsePlan(toText(LINES), "people", { ...CONFIG, suppressed })).toThrow("the config differs");
  });

  it("is of the same settings whatever the order of their lists, and of a digest that later versions know", () => {
    const lists = {
      drop_fields: ["email", "location"],
      hash_fields: ["id", "company"],
      hash_salt: "0123456789abcdef",
    };
    const turned = {
      ...lists,
      drop_fields: lists.drop_fields.toReversed(),
      hash_fields: lists.hash_fields.toReversed(),
    };
    expect(planDigest(configOf(turned), "people", SIZE, 3)).toBe(
      planDigest(configOf(lists), "people", SIZE, 3),
    );
    const suppressed = new Suppression([["ada@example.com"]]);
    const configs = [CONFIG, { ...CONFIG, suppressed }, { ...CONFIG, suppressed: new Suppression([]) }];
    expect(configs.map((config) => planDigest(config, "people", { rows: 7, asked: 9 }, 3))).toEqual([
      "cf4408b59c77603971e7aaecdd1a801d",
      "f71669fd956f8c7e71e7aaecdd1a801d",
      "cf4408b59c77603971e7aaecdd1a801d",
    ]);
  });

  it.each([
    ["", ""],
    ['{"a":1}', '{"a":1}'],
    ['{"a":1}\n', '{"a":1}\n'],
    ['{"a":1}\n{"b":2}', '{"a":1}\n{"b":2}'],
    ['{"a":1}\n{"b":', '{"a":1}\n'],
    ['{"a":1}\n{"b":2}\n{', '{"a":1}\n{"b":2}\n'],
    ['{"a":', ""],
  ])("that stands as %j in a file which is still being written is %j", (text, whole) => {
    expect(wholeLines(text)).toBe(whole);
  });

  it("names the streams that it has before what is wrong with one of them", () => {
    const [first, , last] = LINES;
    const others = LINES.map((line) => ({ ...line, stream: "companies" }));
    const text = toText([first, last, ...others].filter((line) => line !== undefined));
    expect(() => parsePlan(text, undefined, CONFIG)).toThrow(
      "it has shards of several streams. Name one of them",
    );
    expect(() => parsePlan(text, "people", CONFIG)).toThrow('shard 2 of "people" does not follow');
    expect(parsePlan(text, "companies", CONFIG)).toEqual(others);
  });

  it("tells salts apart", () => {
    const digests = ["0123456789abcdef", "0123456789abcdeF"].map((hash_salt) =>
      planDigest(configOf({ hash_fields: ["email"], hash_salt }), "people", SIZE, 3),
    );
    expect(new Set(digests).size).toBe(2);
  });
});

describe("a shard", () => {
  it("is read with its days and its share of the requests; a closed one reads no day twice", () => {
    const config = configOf({ requests_per_minute: 60, lookback_window_days: 3, end_date: "2030-01-01" });
    expect(shardConfig(config, MIDDLE, 4)).toEqual({
      ...config,
      ...{ startDate: "2019-03-03", endDate: "2022-01-01", lookbackWindowDays: 0, requestsPerMinute: 15 },
    });
    expect(shardConfig(config, OPEN, 1)).toEqual({ ...config, startDate: "2022-01-02" });
    expect(() => shardConfig(config, OPEN, 61)).toThrow("Cannot share 60 requests a minute among 61 shards");
    expect(() => shardConfig(configOf({ max_run_seconds: 9 }), OPEN, 1)).toThrow("max_run_seconds");
  });

  it("has a folder of its own", () => {
    expect(LINES.map(shardFolder)).toEqual([
      `shard-${DIGEST}-0-start-2019-03-02`,
      `shard-${DIGEST}-1-2019-03-03-2022-01-01`,
      `shard-${DIGEST}-2-2022-01-02-open`,
    ]);
  });

  it.each<[what: string, line: ShardLine, expected: boolean, ...days: (readonly unknown[])[]]>([
    ["all its days, and those of others", MIDDLE, true, ["0001-01-01", "2022-01-01", 5]],
    ["days that are checked again", MIDDLE, true, ["2019-03-03", "2022-01-01", 5, "again"]],
    ["a day too few", MIDDLE, false, ["2019-03-03", "2021-12-31", 5]],
    [
      "a missing day",
      MIDDLE,
      false,
      ["2019-03-03", "2021-12-31", 5],
      ["2022-01-01", "2022-01-01", null, "missing"],
    ],
    ["the days of another shard", MIDDLE, false, ["0001-01-01", "2019-03-02", 5]],
    ["days up to yesterday of the open shard", OPEN, false, ["2022-01-02", "2026-11-20", 5]],
  ])("is read once a state holds its days: %s", (_what, line, expected, ...days) => {
    expect(isRead(line, { ...NEW_STATE, plan: DIGEST, days })).toBe(expected);
  });

  it("is not read without a state, and refuses the state of another plan or of none", () => {
    expect(isRead(MIDDLE, undefined)).toBe(false);
    for (const [plan, of] of [
      ["f".repeat(32), "another"],
      [null, "no"],
    ])
      expect(() => isRead(MIDDLE, { ...NEW_STATE, plan })).toThrow(`the state is of ${of} plan`);
  });
});
