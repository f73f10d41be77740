import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { tempDir } from "../support/temp-dir.ts";

const PEOPLE = {
  discoveredAt: "2026-03-19T23:59:59.999Z",
  missing_days: ["2026-01-02"],
  recheck: [["2026-02-01", "2026-02-09"]],
  from: "2025-01-01",
  undated: "pending",
};
const OF_VERSION_2 = {
  ...{ version: 2, discoveredAt: PEOPLE.discoveredAt, undated: null },
  days: [
    ["2025-01-01", "2026-01-01", 5],
    ["2026-01-02", "2026-01-02", null, "missing"],
    ["2026-01-03", "2026-01-31", 7],
    ["2026-02-01", "2026-02-09", null, "again"],
    ["2026-02-10", "2026-03-17", 9],
  ],
};

const ENVELOPES = {
  Singer: { bookmarks: { people: PEOPLE } },
  Airbyte: [{ type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: PEOPLE } }],
  "version 1": { bookmarks: { people: { version: 1, ...PEOPLE } } },
  "version 2": { bookmarks: { people: OF_VERSION_2 } },
  folder: { output: { numbers: { people: 2 }, pending: [] }, bookmarks: { people: PEOPLE } },
};

const FIRST = "state version 1: written by version 0.1.0, and read by every version of this program";
const BY_VERSION: Readonly<Record<string, string>> = {
  "version 1": FIRST,
  "version 2": "state version 2: written after version 0.1.0, which refuses it",
};
const BY_HAND = "state without a version: written by hand, and read by every version of this program";

const textOf = (envelope: string): string => `people
  ${BY_VERSION[envelope] ?? BY_HAND}
  read up to 2026-03-19T23:59:59.999Z
  days that are covered: 2025-01-01 to 2026-03-17
  missing days: 2026-01-02
  to be checked again: 2026-02-01 to 2026-02-09
  rows without a date: not read yet
`;

describe("state show", () => {
  it.each(Object.entries(ENVELOPES))(
    "says how far a stream has come, in the envelope of %s",
    async (envelope, state) => {
      const { stdout, code } = await run(CONNECTOR, ["state", "show", await file("state.json", state)]);
      expect(stdout).toBe(textOf(envelope));
      expect(code).toBe(0);
    },
  );

  it("reads stdin, counts jobs by step, and says what is read from the start", async () => {
    const job = { item: "A".repeat(16), step: "submitted", at: "2026-03-01T00:00:00.000Z", job_id: "j1" };
    const state = {
      company_lookups: {
        version: 1,
        created_at: null,
        jobs: [job, { ...job, item: "B".repeat(16), step: "done" }],
      },
      sources: { version: 1, full_refresh: null },
    };
    const { stdout } = await run(CONNECTOR, ["state", "show", "-"], { input: JSON.stringify(state) });
    const [lookups, sources] = stdout.split("\nsources\n");
    expect(lookups?.split("\n  ")).toEqual([
      "company_lookups",
      FIRST,
      "nothing is delivered yet",
      "items: 1 open, 1 finished\n",
    ]);
    expect(sources).toBe(`  ${FIRST}\n  is read from the start in every run\n`);
  });

  it("says under what a stream was read, and what no run has read", async () => {
    const filters = { source_slug: "crm", is_user: "true" };
    const [begun, done] = [false, true].map((is) => ({ generation_id: 1, sync_id: 2, done: is }));
    const days = [["0001-01-01", "2026-01-05", 5]];
    const whole = { ...OF_VERSION_2, days, undated: { rows: 3, seen: null }, filters };
    const state = {
      people: { ...whole, full_refresh: done, plan: "abc" },
      companies: { version: 2, discoveredAt: null, days: [], full_refresh: begun },
      elsewhere: { version: 9 },
    };
    const shown = await run(CONNECTOR, ["state", "show", await file("state.json", state)]);
    const second = BY_VERSION["version 2"];
    expect(shown.stdout).toBe(`people
  ${second}
  read up to 2026-03-19T23:59:59.999Z
  days that are covered: the beginning to 2026-01-05
  no missing days
  rows without a date: read
  filters: source crm, is_user true
  full refresh: complete
  part of the plan abc

companies
  ${second}
  no row is read yet
  days that are covered: none
  no missing days
  rows without a date: not read yet
  full refresh: not complete

elsewhere
  this program has no such stream
`);
    const none = await run(CONNECTOR, ["state", "show", await file("state.json", { bookmarks: {} })]);
    expect(none.stdout).toBe("The state is empty: the next run reads everything.\n");
  });

  it("says up to which run the records of runs have left, and which streams are too old, each in a line", async () => {
    const began = "2026-03-01T00:00:00.000Z";
    const state = {
      sync_windows: { version: 1, run_started_at: began },
      people: { version: 2, discoveredAt: null, days: [] },
      companies: { version: 2, discoveredAt: began, days: [["2026-01-01", "2026-02-27", 3]] },
      "crm/people": {
        version: 2,
        discoveredAt: "2026-03-02T00:00:00.000Z",
        days: [["2026-01-01", "2026-02-26", 3]],
      },
      sources: { version: 2, full_refresh: null },
    };
    const path = await file("state.json", { bookmarks: state });
    const { code, stdout, stderr } = await run(CONNECTOR, ["state", "show", "--max-age", "1m", path]);
    expect(stdout).toContain(
      `sync_windows\n  ${FIRST}\n  records of all runs up to the one that began at ${began}\n\n`,
    );
    expect([code, stderr.split("\n")]).toEqual([
      1,
      [
        "Too old: people was never read whole",
        `Too old: companies is complete up to ${began}`,
        "Too old: crm/people is complete up to 2026-02-27T00:00:00.000Z",
        "",
      ],
    ]);
  });

  it("is complete up to the first day that is missing or that no window covers", async () => {
    const dated = (...days: readonly unknown[][]) => ({
      version: 2,
      discoveredAt: "2026-03-01T00:00:00.000Z",
      days,
    });
    const [first, last] = [
      ["2026-01-01", "2026-01-05", 1],
      ["2026-01-11", "2026-02-27", 1],
    ];
    const missing = (from: string, to: string) => [from, to, null, "missing"];
    const state = {
      "a/people": dated(first, missing("2026-01-08", "2026-01-10"), last),
      "b/people": dated(first, missing("2026-01-06", "2026-01-07"), last),
      "c/people": dated(first, missing("2026-01-06", "2026-01-10"), last),
      "d/people": dated(first, last),
    };
    const path = await file("state.json", { bookmarks: state });
    const { stderr } = await run(CONNECTOR, ["state", "show", "--max-age", "1m", path]);
    const until = "is complete up to 2026-01-06T00:00:00.000Z";
    expect(stderr.trimEnd().split("\n")).toEqual(Object.keys(state).map((key) => `Too old: ${key} ${until}`));
  });

  it("says what is no state, and what the command wants", async () => {
    const wrong = await run(CONNECTOR, ["state", "show", await file("state.json", { a: 1 })]);
    expect(wrong).toMatchObject({ code: 1, stdout: "" });
    expect(wrong.stderr).toContain("state");
    expect(await run(CONNECTOR, ["state"])).toMatchObject({ code: 2 });
  });
});

describe("state merge", () => {
  const asked = "2026-03-18T01:00:00.000Z";
  const stateOf = (from: string, to: string, moment: string, records: readonly string[] = []) => ({
    ...{ version: 2, discoveredAt: moment, asked, undated: null, plan: "abc", days: [[from, to, 5]] },
    ...(records.length > 0 && { sync_windows: records.map((id) => ({ id, run_started_at: asked })) }),
  });
  const streamOf = (name: string, state: object) => ({
    type: "STREAM",
    stream: { stream_descriptor: { name }, stream_state: state },
  });
  const [older, newer] = ["2026-03-17T01:00:00.000Z", "2026-03-17T02:00:00.000Z"];
  const people = stateOf("2026-01-01", "2026-01-31", older, ["1", "2"]);
  const others = stateOf("2026-02-01", "2026-02-28", newer, ["2", "3"]);
  const companies = stateOf("2026-01-01", "2026-02-01", newer);
  const singer = { bookmarks: { people, companies } };
  const airbyte = [streamOf("people", others), streamOf("companies", companies)];

  const merged = async (...states: readonly unknown[]) => {
    const files: string[] = [];
    for (const state of states) files.push(await file("state.json", state));
    const { code, stdout, stderr } = await run(CONNECTOR, ["state", "merge", ...files]);
    expect([code, stderr, stdout.endsWith("\n")]).toEqual([0, "", true]);
    return JSON.parse(stdout);
  };

  it("speaks the language of the first, and keeps each record of sync_windows that has not left once", async () => {
    const all = { days: [...people.days, ...others.days], discoveredAt: newer, asked };
    const waiting = ["1", "2", "3"].map((id) => ({ id, run_started_at: asked }));
    const cursor = { replication_key: "discoveredAt", replication_key_value: newer };
    const inSinger = await merged(singer, airbyte);
    expect(Object.keys(inSinger)).toEqual(["bookmarks"]);
    expect(Object.keys(inSinger.bookmarks)).toEqual(["people", "companies"]);
    expect(inSinger.bookmarks.people).toMatchObject({
      ...all,
      ...cursor,
      plan: "abc",
      sync_windows: waiting,
    });
    expect(inSinger.bookmarks.companies).toMatchObject({
      ...{ ...cursor, days: [["2026-01-01", "2026-02-01", null]] },
    });
    expect(inSinger.bookmarks.companies).not.toHaveProperty("sync_windows");
    const { replication_key: _, replication_key_value: __, ...own } = inSinger.bookmarks.people;
    const inAirbyte = await merged(airbyte, singer);
    const [first, second, ...more] = inAirbyte;
    expect([first, second.stream.stream_descriptor, more]).toEqual([
      ...[
        streamOf("people", { ...own, sync_windows: expect.arrayContaining(waiting) }),
        { name: "companies" },
        [],
      ],
    ]);
  });

  it.each([
    [
      "a stream that only the second has",
      [{ people }, { people: others, companies }],
      /"companies" is in "\S+-b\.json", and not/,
    ],
    [
      "a stream that only the first has",
      [{ people, companies }, { people: others }],
      /"companies" is in "\S+-a\.json", and not/,
    ],
    [
      "a state without dates",
      [{ people }, { people: null }],
      /Cannot merge the state "\S+-b\.json": it holds no state of/,
    ],
    [
      "a state of records alone",
      [{ sync_windows: { version: 1, run_started_at: asked } }, { people }],
      /the state "\S+-a\.json": it holds no/,
    ],
    [
      "days that none holds",
      [{ people }, { people: stateOf("2026-02-03", "2026-02-04", newer) }],
      /none of them holds 2026-02-01 to 2026-02-02\. /,
    ],
  ])("refuses %s", async (_what, [a, b], why) => {
    const paths = [await file("a.json", { bookmarks: a }), await file("b.json", { bookmarks: b })];
    const ended = await run(CONNECTOR, ["state", "merge", ...paths]);
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(why) });
  });

  it.each<[what: string, output: unknown, why: string | undefined]>([
    ["knows of no file", { files: 0 }, undefined],
    ["is of a version without manifests", { numbers: {} }, undefined],
    ["says nothing of files", undefined, undefined],
    [
      "knows of a file that no manifest names",
      { files: 1 },
      "manifest.json names 0 of 1 file that the state knows",
    ],
  ])("takes a folder whose state %s: %o", async (_what, output, why) => {
    const folder = await tempDir();
    await writeFile(
      join(folder, "state.json"),
      JSON.stringify({ bookmarks: { people }, ...(output !== undefined && { output }) }),
    );
    const ended = await run(CONNECTOR, ["state", "merge", folder]);
    expect([
      ended.code,
      ended.stderr.includes(`Cannot merge "${folder}": ${why}. Read this shard again`),
    ]).toEqual([...[why === undefined ? 0 : 1, why !== undefined]]);
    const alone = await run(CONNECTOR, ["state", "merge", join(folder, "state.json")]);
    expect([alone.code, JSON.parse(alone.stdout).bookmarks.people.days]).toEqual([0, people.days]);
  });

  it("leaves days that none holds to the next run if it may", async () => {
    const paths = [
      await file("a.json", { bookmarks: { people } }),
      await file("b.json", { people: stateOf("2026-02-03", "2026-02-04", newer) }),
    ];
    const { stdout } = await run(CONNECTOR, ["state", "merge", "--partial", ...paths]);
    expect(JSON.parse(stdout).bookmarks.people.days).toEqual([
      ["2026-01-01", "2026-01-31", 5],
      ["2026-02-03", "2026-02-04", 5],
    ]);
  });
});
