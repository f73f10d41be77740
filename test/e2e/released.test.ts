import { readFile } from "node:fs/promises";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { linesOf } from "../support/airbyte-messages.ts";
import { catalogBreaks, specBreaks } from "../support/airbyte-rules.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { ROOT } from "../support/run.ts";

// test/released holds the last released forms. A config or a connection that was made with them may never break.

const released = async (name: string) =>
  JSON.parse(await readFile(`${ROOT}test/released/${name}.json`, "utf8"));

it("CS18: a config of the released version is still valid: no setting is gone, narrower or newly required", async () => {
  const before = (await released("spec")).connectionSpecification;
  const { stdout } = await run(CONNECTOR, ["spec"]);
  const now = JSON.parse(stdout).spec.connectionSpecification;
  expect(specBreaks(before, now)).toEqual([]);
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(now);
  const config = {
    ...{ base_url: "https://contacts.example.com", api_key: "k", start_date: "2026-01-02", is_user: "all" },
    ...{ num_workers: 8, max_window_rows: 1_000, ignore_missing_days: ["2026-01-02"], endpoints: {} },
    external_api: { api_url: "https://external.example.com", api_key: "k" },
    company_lookup: { domains: ["a.example"], from_companies: false, max_wait_seconds: null },
  };
  expect([isValid(config), isValid.errors]).toEqual([true, null]);
});

it("CD9: a connection of the released version still has its streams, fields, types, keys and cursors", async () => {
  const { config } = await sandboxWith({ people: 20, requestsPerMinute: 0 });
  const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
  const now = JSON.parse(stdout).catalog;
  const before = await released("catalog");
  expect(before.streams.length).toBeGreaterThan(2);
  expect(catalogBreaks(before, now)).toEqual([]);
});

/** The state of people by version 0.1.0, and the same by later ones. */
const FIRST = {
  ...{ version: 1, discoveredAt: "2026-03-19T23:59:59.999Z", missing_days: ["2026-01-02"] },
  ...{ recheck: [["2026-02-01", "2026-02-09"]], from: "2025-01-01", undated: "pending" },
};
const SECOND = {
  ...{ version: 2, discoveredAt: FIRST.discoveredAt, undated: null },
  days: [
    ["2025-01-01", "2026-01-01", 5],
    ["2026-01-02", "2026-01-02", null, "missing"],
    ["2026-01-03", "2026-01-31", 7],
    ["2026-02-01", "2026-02-09", null, "again"],
    ["2026-02-10", "2026-03-17", 9],
  ],
};
const UNCOUNTED = SECOND.days.map(([from, to, , ...of]) => [from, to, null, ...of]);
const { version: _, ...BY_HAND } = FIRST;
const OUTPUT = { numbers: { people: 2 }, pending: [] };
const airbyte = (stream_state: object) => [
  { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state } },
];

describe("the state of people", () => {
  it.each<[whose: string, state: unknown, version: string]>([
    ["Singer by version 0.1.0", { bookmarks: { people: FIRST } }, "version 1: written by version 0.1.0"],
    ["Airbyte by version 0.1.0", airbyte(FIRST), "version 1: written by version 0.1.0"],
    ["Singer by later versions", { bookmarks: { people: SECOND } }, "version 2: written after version 0.1.0"],
    ["Airbyte by later versions", airbyte(SECOND), "version 2: written after version 0.1.0"],
    ["a folder", { output: OUTPUT, bookmarks: { people: FIRST } }, "version 1"],
    ["a person", { bookmarks: { people: BY_HAND } }, "without a version: written by hand"],
  ])("of %s is understood", async (_whose, state, version) => {
    const { stdout, code } = await run(CONNECTOR, ["state", "show", await file("state.json", state)]);
    const [head, first, ...more] = stdout.split("\n  ");
    expect([code, head, first]).toEqual([0, "people", expect.stringContaining(`state ${version}`)]);
    expect(more).toEqual([
      "read up to 2026-03-19T23:59:59.999Z",
      "days that are covered: 2025-01-01 to 2026-03-17",
      "missing days: 2026-01-02",
      "to be checked again: 2026-02-01 to 2026-02-09",
      "rows without a date: not read yet\n",
    ]);
  });

  it.each([
    ["version 0.1.0", FIRST],
    ["later versions", { ...SECOND, days: UNCOUNTED }],
  ])("of %s is gone on from: missing and new days are read, and no others", async (_whose, people) => {
    const account = { people: 400, undated: 2, days: 300, requestsPerMinute: 0 };
    const { sandbox, config } = await sandboxWith({ ...account, now: "2026-03-20T12:00:00Z" });
    const state = await file("state.json", { bookmarks: { people } });
    const words = ["read", "--config", config, "--stream", "people", "--format", "jsonl", "--state", state];
    const { stdout, stderr } = await run(CONNECTOR, words);
    const dates = new Set(linesOf(stdout).map((line) => JSON.parse(line).discoveredAt?.slice(0, 10)));
    const everyone = sandbox.people().map(({ discoveredAt }) => discoveredAt?.slice(0, 10));
    const due = everyone.filter((day) => day === undefined || day === "2026-01-02" || day >= "2026-03-19");
    expect(
      [...new Set(due)].filter((day) => !dates.has(day)),
      stderr,
    ).toEqual([]);
    const known = [...dates].filter((day) => day < "2026-01-02" || /^2026-01-(0[3-9]|[12]\d|3)/.test(day));
    expect(known).toEqual([]);
  });
});

it("state merge joins the shards that version 0.1.0 has finished", async () => {
  const shardOf = (from: string, to: string): object => ({
    ...{ ...FIRST, discoveredAt: `${to}T23:59:59.999Z`, missing_days: [], recheck: [], from, gap: null },
    ...{ filters: null, undated_checked: null, undated_rows: 0, full_refresh: null },
    shard: { plan: "0a", index: 0, done: true, asked: "2026-02-09T00:00:00Z", ended: null },
  });
  const shards = [shardOf("2026-01-01", "2026-01-31"), shardOf("2026-02-01", "2026-02-03")];
  const files = await Promise.all(shards.map((people) => file("state.json", { bookmarks: { people } })));
  const { stdout, stderr } = await run(CONNECTOR, ["state", "merge", ...files]);
  const { days, plan } = JSON.parse(stdout).bookmarks.people;
  expect([stderr, plan, days[0]?.[0], days.at(-1)?.[1]]).toEqual(["", "0a", "2026-01-01", "2026-02-03"]);
});
