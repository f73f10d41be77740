import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import type { ConfiguredStream } from "../../../src/catalog/airbyte.ts";
import { parseDatedState } from "../../../src/state/dated.ts";
import { languageOf, parseStateText } from "../../../src/state/envelopes.ts";
import { type Resume, refuseOtherService, resumeDated, resumeWhole } from "../../../src/state/resume.ts";
import { NEW_STATE } from "../../../src/streams/dated-state.ts";
import { outcome } from "../../support/outcome.ts";

const MOMENT = "2026-01-02T03:04:05Z";
const DAYS = [
  ["1969-12-31", "1970-01-01", 4],
  ["1969-12-30", "1970-01-02", 5],
  ["1990-01-01", "1990-01-31", 31, "again"],
  ["1991-02-01", "1991-01-01", 7, null, 3],
  ["1992-01-01", "1992-01-01", null, "missing"],
  ["2025-12-30", "2026-01-03", 9],
];
const V1 = { version: 1, discoveredAt: MOMENT, missing_days: [], recheck: [], from: null, filters: null };
const shard = (more: object): object => ({
  plan: "p",
  index: 0,
  done: true,
  asked: null,
  ended: null,
  ...more,
});

/** States of a stream: each is understood, or refused with a reason. */
const BLOBS: readonly unknown[] = [
  ...[null, {}, { __ab_x: 1 }, { __ab_x: 1, note: 2 }, [], "text", 7, true],
  // Cursors.
  ...[
    "2026-01-02",
    "2026-01-02T23:30:00-01:00",
    "2026-01-02T03:04:05.000000009Z",
    "2026-1-2",
    "",
    0,
    null,
  ].map((discoveredAt) => ({ discoveredAt })),
  ...["2025-12-01", "2026-02-01T00:00:00+01:00", MOMENT, null, "soon", ["2026-01-02"]].flatMap(
    (replication_key_value) => [
      {
        ...NEW_STATE,
        discoveredAt: MOMENT,
        days: DAYS,
        replication_key: "discoveredAt",
        replication_key_value,
      },
      { ...NEW_STATE, discoveredAt: null, days: DAYS, replication_key_value },
      { discoveredAt: MOMENT, replication_key: "updatedAt", replication_key_value },
      { replication_key: "discoveredAt", replication_key_value },
    ],
  ),
  // Versions.
  ...[0, 1, 2, 3, 2.5, "2", null, {}].map((version) => ({ version, discoveredAt: MOMENT })),
  ...[0, 1, 2, 3].map((version) => ({
    version,
    discoveredAt: MOMENT,
    days: DAYS.slice(2),
    from: "1980-01-01",
  })),
  // What version 1 said.
  ...[
    {},
    { from: "2026-01-01" },
    { from: "2025-12-31" },
    { from: "2026-01-02" },
    { gap: { to: "1999-12-31" } },
    { gap: { from: "1999-01-01", to: "1999-12-31" }, from: "2025-11-01" },
    { recheck: [["2025-12-03", "2025-12-05"]], missing_days: ["2025-12-04", "2025-12-09"] },
    { discoveredAt: null },
    { discoveredAt: null, gap: { from: null, to: "1999-12-31" } },
    ...["pending", "done", null, { rows: 4 }, { rows: 4, seen: ["a"] }].flatMap((undated) => [
      { undated, undated_rows: 3, undated_checked: "2026-01-01" },
      { undated, from: "2025-01-01" },
      { undated, undated_rows: null, undated_checked: null },
    ]),
    { shard: shard({}), discoveredAt: "2025-06-30T23:59:59.999Z" },
    { shard: shard({}), discoveredAt: "2025-06-30T23:59:59.998Z" },
    { shard: shard({ done: false }), discoveredAt: "2025-06-30T23:59:59.999Z" },
    { shard: shard({ asked: MOMENT }) },
    { shard: shard({ asked: MOMENT }), asked: "2026-01-01" },
    { shard: shard({ asked: "soon" }) },
  ].map((more) => ({ ...V1, ...more })),
  // Single keys.
  ...[
    { filters: {} },
    { filters: { source_slug: "crm" } },
    { filters: { is_user: "true" } },
    { full_refresh: { done: true } },
    { full_refresh: { done: false, sync_id: 3 } },
    { full_refresh: { generation_id: 1.5, sync_id: 1, done: true } },
    { full_refresh: {} },
    { asked: "2026-01-01" },
    { asked: "2026-01-01T00:00:00+02:00" },
    { asked: "soon" },
    { checked: "2026-01-01", sources: ["a"], plan: "p", service: "s" },
    { checked: "2026-01-32" },
    { sources: [1] },
    { undated: { rows: 1.5 } },
    { undated: { rows: 1, seen: [1] } },
    { undated: { seen: [] } },
    { undated: "soon" },
    { witness: { keys: ["a"], cursor: MOMENT, key: "k" } },
    { witness: { keys: ["a"], cursor: "soon", key: "k" } },
    { witness: { keys: [1], cursor: MOMENT, key: "k" } },
    { witness: { cursor: MOMENT, key: "k" } },
    { days: [["2026-01-01", "2026-01-01"]] },
    { days: [["2026-01-01", "2026-01-01", 1, "again", 1, 1]] },
    { days: [["2026-01-01", "2026-01-01", -1]] },
    { days: [["2026-01-01", "2026-01-01", 1, "proven"]] },
    { days: [["2026-01-01", "2026-01-01", 1, null, -1]] },
    { days: [["2026-01-01", 5, 1]] },
    { days: {} },
    { missing_days: ["2026-01-01", "2026-1-2"] },
    { recheck: [["2026-01-01"]] },
    { recheck: [["2026-01-01", "2026-01-02", "2026-01-03"]] },
    { shard: { plan: "p" } },
    { shard: { plan: 1, done: true } },
    { shard: { plan: "p", done: true, asked: 1 } },
    { gap: {} },
    { gap: { from: 1, to: "2026-01-01" } },
    { undated_rows: 1.5 },
    { from: 1 },
  ].map((more) => ({ ...NEW_STATE, discoveredAt: MOMENT, ...more })),
];

const people = { discoveredAt: MOMENT };
const stream = (name: string, stream_state: unknown = people, namespace?: string): object => ({
  type: "STREAM",
  stream: { stream_descriptor: { name, ...(namespace !== undefined && { namespace }) }, stream_state },
});
const long = "k".repeat(50);

/** Texts of state files. */
const TEXTS: readonly string[] = [
  ...[
    "",
    " \n",
    "null",
    "[]",
    "{}",
    "[[]]",
    "[[{}]]",
    "[{}]",
    "[null]",
    "[7]",
    '["a"]',
    "7",
    '"a"',
    "true",
    "text",
  ],
  ...[
    { a: 1 },
    { a: 1, b: "x", c: null, d: [], e: {} },
    { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 },
    { [long]: 1 },
    { [long.slice(10)]: 1 },
    [{ a: [] }],
    { people },
    { people: null },
    { people: null, other: people },
    { people, other: 3 },
    { other: people },
    { bookmarks: { people }, note: 1, stream_descriptor: {}, stream_state: {} },
    { bookmarks: 7 },
    { bookmarks: { people: 7 } },
    { airbyte_state: [stream("people")], bookmarks: { companies: people } },
    { airbyte_state: { a: 1 } },
    { singer_state: { bookmarks: { people } } },
    { singer_state: null },
    { singer_state: 7 },
    { completed: { singer_state: { bookmarks: { people } } } },
    { completed: { singer_state: { bookmarks: { people } } }, partial: null },
    { completed: null, partial: { singer_state: { bookmarks: { people: { a: 1 } } } } },
    {
      completed: { singer_state: { bookmarks: { people: { a: 1, b: { c: 1 } }, x: null }, n: 1 } },
      partial: { singer_state: { bookmarks: { people: { a: 2, b: { d: 2 } }, y: {} }, m: 2 } },
    },
    { completed: {}, partial: {} },
    { completed: {}, partial: 7 },
    { completed: { a: 1 } },
    { completed: null, partial: null },
    { type: "STATE", state: stream("people") },
    { type: "STATE", value: { bookmarks: { people } } },
    { type: "STATE", value: 7 },
    { type: "STATE" },
    [stream("people"), stream("people", null), stream("companies", {})],
    [stream("people", people, "eu"), stream("people", people, ""), stream("people")],
    { type: "STREAM", stream: {} },
    { type: "STREAM" },
    { stream: {} },
    {
      type: "GLOBAL",
      global: { stream_states: [{ stream_descriptor: { name: "people" }, stream_state: people }] },
    },
    { type: "GLOBAL", global: { stream_states: {} } },
    { type: "GLOBAL", global: null, global_: null },
    { type: "LEGACY", data: { people } },
    { type: "LEGACY", data: null },
    { type: "LEGACY", data: 7 },
    { type: null, data: { people } },
    { type: 7 },
    { data: { people } },
    { stateType: "stream", streamState: [{ streamDescriptor: { name: "people" }, streamState: people }] },
    { stateType: "stream", streamState: {} },
    {
      stateType: "Global",
      globalState: { streamStates: [{ streamDescriptor: { name: "a" }, streamState: {} }] },
    },
    { stateType: "global", globalState: null },
    { stateType: "legacy", state: { people } },
    { stateType: "NOT_SET" },
    { stateType: 7 },
    { streamDescriptor: { name: "people" }, streamState: people },
    { streamDescriptor: null },
    ...["RECORD", "LOG", "SCHEMA", "ACTIVATE_VERSION", "BATCH", "CATALOG", "CONNECTION_STATUS"].map(
      (type) => ({ type }),
    ),
    ...["CONTROL", "SPEC", "TRACE", "RECORDS", "XTRACE"].map((type) => ({ type })),
  ].flatMap((value) => [
    JSON.stringify(value),
    `said\n${JSON.stringify(value)}\n{"type":"LOG"}\n${JSON.stringify(value)}\r\n`,
  ]),
  '{"type":"LOG"}\n{"type":"STATE","value":{"bookmarks":{"people":{}}}}\n{"type":"STA',
  '{"type":"LOG"}\n{"type":"STA\n{"type":"STATE","value":{"bookmarks":{"people":{}}}}',
  '  {"bookmarks":{"people":{"a":1}}}\n\t{"bookmarks":{"people":{"a":2}}}',
  '[{"streamDescriptor":{"name":"people"},"streamState":{}}]\n[]',
  '{"bookmarks":{}\n{"bookmarks":{}}',
  '{"bookmarks":{}}\n{"bookmarks":{}',
  '\uFEFF{"singer_state" : {}}',
  '{"note":"bookmarks"}',
];

/** What a state says beyond a new one. */
const news = (state: object | null): object | null =>
  state &&
  Object.fromEntries(
    Object.entries(state).filter(([key, value]) => !isDeepStrictEqual(value, SAID_BY_NEW[key])),
  );
const SAID_BY_NEW: Readonly<Record<string, unknown>> = NEW_STATE;

/** In short, what is gone on from. */
const resumed = ({ state, ...more }: Resume): unknown => [more, news(state)];

it("understands these states of a stream, and refuses these", async () => {
  const lines = BLOBS.map(
    (saved) => `${JSON.stringify(saved)}\n  ${outcome(() => news(parseDatedState("people", saved)))}`,
  );
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/state-blobs.txt");
});

it("finds these states in these files, and refuses these", async () => {
  const lines = TEXTS.map((text) => {
    const found = outcome(() => {
      const { streams, rest } = parseStateText(text);
      return [languageOf(text), Object.fromEntries(streams), rest];
    });
    return `${JSON.stringify(text)}\n  ${found}`;
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/state-files.txt");
});

it("goes on from these states so", async () => {
  const filters = { source_slug: null, is_user: "all" };
  const saved = { ...NEW_STATE, discoveredAt: MOMENT, filters, undated: { rows: 0, seen: [] } };
  const refresh = (generation_id: unknown, sync_id: unknown, done = false): object => ({
    full_refresh: { generation_id, sync_id, done },
  });
  const states: readonly unknown[] = [
    ...[
      null,
      {},
      saved,
      { discoveredAt: MOMENT },
      { ...saved, filters: null, service: "s" },
      { ...saved, service: "t" },
    ],
    ...[{ source_slug: "crm" }, { is_user: "true" }, { source_slug: "crm", is_user: "false" }].map(
      (other) => ({
        ...saved,
        filters: { ...filters, ...other },
      }),
    ),
    ...[refresh(1, 2), refresh(1, 2, true), refresh(1, 3), refresh(2, 2), refresh(null, null, true)].flatMap(
      (own) => [
        { ...saved, ...own },
        { version: 2, ...own },
        { version: 1, ...own, discoveredAt: null, days: null },
        { version: 3, ...own },
        { version: 1, ...own, missing_days: [] },
        { version: 2, ...own, days: [] },
        { version: 2, ...own, replication_key_value: MOMENT },
      ],
    ),
  ];
  const lines = states.flatMap((state) => [
    JSON.stringify(state),
    ...["incremental", "full_refresh"].flatMap((syncMode) =>
      [1, null].flatMap((generationId) => {
        const configured: ConfiguredStream = {
          ...{ name: "people", syncMode, destinationSyncMode: null, schema: null },
          ...{ generationId, syncId: generationId === null ? null : 2 },
        };
        return [
          `  ${syncMode}, ${generationId}: ${outcome(() => resumed(resumeDated(configured, state, filters, "p", "s")))}`,
          `    without days: ${outcome(() => resumed(resumeWhole(configured, state, filters)))}`,
        ];
      }),
    ),
    ...["s", null].map(
      (service) => `  ${service}: ${outcome(() => refuseOtherService("people", state, service) ?? "")}`,
    ),
  ]);
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("../../golden/state-resumed.txt");
});
