import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { addDays, type Day, dayOf } from "../../src/base/time.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { configFor, environmentOf, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { recordsOf, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL: SandboxOptions = { people: 40, companies: 3, sources: 2 };

/** Reads people as JSON lines. */
const JSONL = ["read", "--format", "jsonl", "--stream", "people"];

const idsOf = (text: string): string[] => linesOf(text).map((line) => JSON.parse(line).id);

/** The cursor of people in a state file, whichever language wrote it last. */
const cursorIn = (path: string): string =>
  /"discoveredAt":\s*"([^"]+)"/.exec(readFileSync(path, "utf8"))?.[1] ?? "none";

const read = (sandbox: Sandbox, ...words: readonly string[]) =>
  run(CONNECTOR, ["read", ...words], { env: environmentOf(sandbox), clock: hurriedClock() });

describe("read with a saved state", () => {
  it("continues where the last run ended, in every language, without older days", async () => {
    const { sandbox, config } = await sandboxWith({ ...SMALL, people: 60 });
    const state = join(await tempDir(), "state.json");
    const jsonl = [...JSONL, "--config", config, "--state-file", state];
    const first = await run(CONNECTOR, jsonl);
    expect(first.code).toBe(0);
    expect(new Set(idsOf(first.stdout))).toEqual(new Set(sandbox.people().map(({ id }) => id)));
    expect(linesOf(first.stderr).at(-1)).toMatch(
      / INFO Run complete: 63 rows\. All days up to .* are proven\. /,
    );
    const asked = sandbox.requests.length;
    const numbers = {
      airbyte: async () => {
        const words = ["read", "--config", config, "--stream", "people", "--state-file", state];
        return (await connector(words)).messages.filter(({ type }) => type === "RECORD").length;
      },
      singer: async () =>
        recordsOf((await tap(["--config", config, "--state-file", state])).messages, "people").length,
      jsonl: async () => idsOf((await run(CONNECTOR, jsonl)).stdout).length,
    };
    for (const [language, numberOf] of Object.entries(numbers)) {
      sandbox.arrive(2);
      const rows = await numberOf();
      expect([language, rows >= 2 && rows < 20]).toEqual([language, true]);
    }
    const exports = sandbox.requests.slice(asked).filter(({ path }) => path.endsWith("/people/stream"));
    expect(exports.every(({ query }) => query["discovered_from"] !== undefined)).toBe(true);
    expect(Object.keys(JSON.parse(await readFile(state, "utf8")).bookmarks)).toContain("sources");
    expect(existsSync(`${state}.previous`)).toBe(true);
  });

  it.each(["utc", "utc-brackets", "short-offset"])(
    "reads the dates of %s, and few rows again",
    async (spelling) => {
      const { sandbox, config } = await sandboxWith({ ...SMALL, people: 60, undated: 0 });
      sandbox.fault(`dates=${spelling}`);
      const words = [...JSONL, "--config", config, "--state-file", join(await tempDir(), "state.json")];
      const rows: number[] = [];
      for (let nth = 0; nth < 3; nth++) rows.push(idsOf((await run(CONNECTOR, words)).stdout).length);
      expect([rows[0], (rows[2] ?? 60) < 20], `${rows}`).toEqual([60, true]);
    },
  );

  it.each<[string, object]>([
    ["has no days any more", { days: undefined }],
    ["has an empty list of days", { days: [] }],
    ["has a null cursor", { discoveredAt: null }],
    ["has a null bookmark", { replication_key: "discoveredAt", replication_key_value: null }],
  ])("reads everyone, with or without a date, on the day of the first run, if it %s", async (_, change) => {
    const { sandbox, config } = await sandboxWith({ ...SMALL, people: 30, undated: 1_200 });
    const path = join(await tempDir(), "state.json");
    const words = [...JSONL, "--config", config, "--state-file", path];
    expect((await run(CONNECTOR, words)).code).toBe(0);
    const { bookmarks } = JSON.parse(await readFile(path, "utf8"));
    await writeFile(path, JSON.stringify({ bookmarks: { people: { ...bookmarks.people, ...change } } }));
    const { code, stdout, stderr } = await run(CONNECTOR, words);
    expect([code, new Set(idsOf(stdout))]).toEqual([0, new Set(sandbox.people().map(({ id }) => id))]);
    expect(stderr.includes("has a cursor and no days. Everything is read again")).toBe("days" in change);
  });

  it.each(
    [
      ...[
        '[{"type":"LEGACY","data":{"state":{}}}]',
        '{"state":{}}',
        '{"data":{"state":{}}}',
        '{"data":[]}',
        "[{}]",
      ],
      ...[
        '{"value":{"bookmarks":{}}}',
        '{"bookmarks":[],"currently_syncing":null}',
        '{"singer_state":{}}',
        '""',
        "",
      ],
      ...[
        '{"completed":{},"partial":null}',
        '[{"type":"GLOBAL","global":{"stream_states":[]},"id":3}]',
        "\ufeff{}\n",
      ],
      '[{"type":"STREAM","stream":{"stream_descriptor":{"name":"people"}},"sourceStats":{"recordCount":1}}]',
    ].map((state) => [state]),
  )("takes the empty envelope %s for no state, in both languages", async (state) => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const to = ["--config", config, "--state", await file("state.json", state)];
    const airbyte = await connector(["read", "--stream", "people", ...to]);
    const rows = airbyte.messages.filter(({ type }) => type === "RECORD").length;
    const singer = recordsOf((await tap(to)).messages, "people").length;
    expect([airbyte.code, rows, singer]).toEqual([0, ...Array(2).fill(sandbox.people().length)]);
  });

  it.each([
    ['{"bookmark":{}}', '"bookmark" (object)'],
    ['{"bookmarks":{},"poeple":{"days":[1]}}', '"poeple" (object)'],
    ['{"bookmarks":{"users":{"cursor":"2026-01-01"}}}', 'the stream "users", and no stream of this program'],
    ['{"data":{"state":{}},"people":{"discoveredAt":null}}', '"people" (object)'],
    ['{"complete":{"singer_state":{"bookmarks":{}}},"partial":{}}', '"complete" (object)'],
    ['[{"type":"ODD","data":{}}]', '"type" (string)'],
  ])("refuses %s: as an empty state it would read everything again", async (state, why) => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const to = ["--config", config, "--state", await file("state.json", state)];
    const ended = [await run(CONNECTOR, [...JSONL, ...to]), await run(TAP, to)];
    expect(ended.flatMap(({ code, stdout }) => [code, stdout])).toEqual([2, "", 1, ""]);
    for (const { stderr } of ended) expect(stderr.replaceAll('\\"', '"')).toContain(why);
    expect(sandbox.requests).toEqual([]);
  });

  it("refuses a state of a newer version, and asks for no row", async () => {
    const { sandbox } = await sandboxWith(SMALL);
    const given = await file("state.json", { bookmarks: { people: { version: 99 } } });
    const { code, stdout } = await read(sandbox, "--stream", "people", "--state", given);
    expect([code === 0, stdout.includes('"RECORD"')]).toEqual([false, false]);
    expect(stdout).toContain('"failure_type":"config_error"');
    expect(sandbox.requests.filter(({ path }) => path.includes("/people"))).toEqual([]);
  });

  it.each([[[]], [["--stream", "people"]]])(
    "refuses the state of another service, asks it nothing, and names both ways out: %j",
    async (streams) => {
      const path = join(await tempDir(), "state.json");
      const to = [...streams, "--state-file", path];
      const { sandbox: staging } = await sandboxWith(SMALL);
      const { sandbox: production } = await sandboxWith(SMALL);
      expect((await read(staging, ...to)).code).toBe(0);
      const before = await readFile(path, "utf8");
      const { code, stdout } = await read(production, ...to);
      expect(code).toBe(1);
      expect(stdout).toContain("it is from another base_url");
      expect(stdout).toMatch(/Reset the stream.*remove \\"service\\" from the state/);
      expect([stdout.includes('"RECORD"'), production.requests]).toEqual([false, []]);
      expect(await readFile(path, "utf8")).toBe(before);
      await writeFile(path, before.replace(/"service":"[0-9a-f]{16}"/g, '"service":null'));
      expect((await read(production, "--stream", "people", "--state-file", path)).code).toBe(0);
    },
  );

  it("does not write the rows of two services into one folder", async () => {
    const folder = await tempDir();
    const { sandbox: staging } = await sandboxWith(SMALL);
    const { sandbox: production } = await sandboxWith(SMALL);
    expect((await read(staging, "--output", folder)).code).toBe(0);
    expect((await read(production, "--output", folder)).code).toBe(2);
    expect(production.requests).toEqual([]);
  });

  it.each([
    ["refuses the state of another organization before the first record, and names the way out", 99, 1],
    ["continues with a new key of the same organization", undefined, 0],
  ])("%s", async (_what, seed, code) => {
    const to = ["--stream", "people", "--state-file", join(await tempDir(), "state.json")];
    const first = await startSandbox(SMALL);
    expect((await read(first, ...to)).code).toBe(0);
    await first.close();
    const key = "svc_99999999_00112233445566778899aabbccddeeff";
    const { sandbox } = await sandboxWith({ ...SMALL, key, port: first.port, ...(seed && { seed }) });
    const later = await read(sandbox, ...to);
    expect(later.code, later.stdout).toBe(code);
    if (code === 0) return;
    expect(later.stdout).toMatch(/numbers are those of another organization.*set \\"key\\" to null/);
    expect(later.stdout).not.toContain('"RECORD"');
  });

  it("reads the days again that lookback_window_days names, and those of an earlier start_date", async () => {
    const { sandbox } = await sandboxWith({ ...SMALL, undated: 0, days: 30 });
    const state = join(await tempDir(), "state.json");
    const day = (ago: number): string => dayOf(Date.now() - ago * 86_400_000);
    const since = (from: string): string[] =>
      sandbox.people().flatMap(({ id, discoveredAt }) => ((discoveredAt ?? "") >= from ? [id] : []));
    const got = new Set<string>();
    for (const [start_date, lookback_window_days, rows] of [
      [day(10), 1, since(day(10)).length],
      [day(10), 8, since(day(8)).length],
      [day(25), 1, since(day(25)).length - since(day(10)).length],
    ] as const) {
      const config = await configFor(sandbox, { start_date, lookback_window_days });
      const { code, stdout } = await run(CONNECTOR, [...JSONL, "--config", config, "--state-file", state]);
      expect([code, idsOf(stdout).length >= rows]).toEqual([0, true]);
      for (const id of idsOf(stdout)) got.add(id);
      expect([...got].sort()).toEqual(since(start_date).sort());
    }
  });

  it("delivers every day again within reread_days, into new files too, and counts the rows", async () => {
    const { sandbox } = await sandboxWith({ ...SMALL, people: 300, companies: 60, days: 60 });
    const config = await configFor(sandbox, { reread_days: 3 });
    const folder = await tempDir();
    const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
    const words = ["read", "--config", config, "--output", folder, "--summary", summary];
    expect((await run(CONNECTOR, [...words, "--stream", "people", "--stream", "companies"])).code).toBe(0);
    const linesIn = (stream: string): string[] =>
      readdirSync(join(folder, stream))
        .toSorted()
        .flatMap((name) => linesOf(readFileSync(join(folder, stream, name), "utf8")));
    const first = { people: linesIn("people"), companies: linesIn("companies") };
    const dayBefore = (_: string, key: string, day: Day): string => `"${key}":"${addDays(day, -1)}"`;
    for (let day = 0; day < 3; day++) {
      const saved = await readFile(state, "utf8");
      await writeFile(state, saved.replace(/"(checked|read)":\s*"([^"]+)"/g, dayBefore));
      const shown = await run(CONNECTOR, ["state", "show", state, "--config", config]);
      expect(shown.stdout).toContain("days whose turn it is to be read again: ");
      const { code, stderr } = await run(CONNECTOR, words);
      const { rows, streams } = JSON.parse(await readFile(summary, "utf8"));
      const each: number[] = streams.flatMap((one: { reread_rows: number }) => one.reread_rows || []);
      const reread = each.reduce((sum, one) => sum + one, 0);
      expect([code, reread > 60, reread <= rows]).toEqual([0, true, true]);
      for (const one of each) expect(stderr).toMatch(new RegExp(`, ${one} rows? read again in turn, `));
    }
    const newest = addDays(dayOf(Date.now()), -3);
    for (const stream of ["people", "companies"] as const) {
      const key = stream === "people" ? "id" : "domain";
      const again = linesIn(stream).slice(first[stream].length);
      const keys = new Set(again.map((line) => JSON.parse(line)[key]));
      // A folder has each row of the newest days once.
      const missed = first[stream]
        .map((line) => JSON.parse(line))
        .filter((row) => !keys.has(row[key]) && row.discoveredAt < newest);
      expect([stream, missed]).toEqual([stream, []]);
    }
  });

  it("ends within its budget, and the next run continues there", async () => {
    const settings = { max_window_rows: 1000, max_run_seconds: 10 };
    const { sandbox, config } = await sandboxWith({ ...SMALL, people: 2_500, latencyMs: 10 }, settings);
    const folder = await tempDir();
    const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
    const args = [...JSONL, "--config", config, "--state-file", state, "--summary", summary];
    const seen = new Set<string>();
    const limits: boolean[] = [];
    while (seen.size < sandbox.people().length && limits.length < 10) {
      const { code, stdout, stderr } = await run(CONNECTOR, args, { clock: hurriedClock(100) });
      const { outcome, time_limit_reached: isLimited } = JSON.parse(await readFile(summary, "utf8"));
      expect([code, outcome]).toEqual([0, isLimited ? "paused" : "complete"]);
      const pause = /paused after [\d,]+ of about [\d,]+ rows \(time limit\).*, saved up to (\S+)\n/;
      expect(pause.exec(stderr)?.[1]).toBe(isLimited ? cursorIn(state).slice(0, 10) : undefined);
      limits.push(isLimited);
      for (const id of idsOf(stdout)) seen.add(id);
    }
    expect([seen.size, limits[0]]).toEqual([sandbox.people().length, true]);
  });
});

describe("read --summary", () => {
  it("writes what the run did, also of one that failed, without any secret", async () => {
    const { sandbox, config } = await sandboxWith({ ...SMALL, people: 200 });
    const path = join(await tempDir(), "summary.json");
    const args = ["read", "--config", config, "--stream", "people", "--summary", path];
    const summaryOf = async (words: readonly string[]): Promise<Record<string, unknown>> => {
      await run(CONNECTOR, words);
      return JSON.parse(await readFile(path, "utf8"));
    };
    const state = join(await tempDir(), "state.json");
    const first = await summaryOf([...args, "--state-file", state]);
    expect(first).toMatchObject({ outcome: "complete", rows: sandbox.people().length, saved_to: state });
    expect(first["streams"]).toMatchObject([
      { stream: "people", requests: first["requests"], state_before: null, saved_up_to: expect.any(String) },
    ]);
    const filters = { discovered_from: "1970-01-02", discovered_to: null, source_slug: null, is_user: "all" };
    const counts = { counted: 203, shown: 203, suppressed: 0, passes: 1, seconds: expect.any(Number) };
    expect(first["streams"]).toMatchObject([
      { windows: [{ kind: "open", verdict: "proven", ...filters, ...counts }] },
    ]);
    const second = await summaryOf([...args, "--state-file", state]);
    const [{ state_after: after }] = first["streams"] as [{ state_after: unknown }];
    expect(second["streams"]).toMatchObject([{ state_before: after }]);
    sandbox.fault("status=401:times=always");
    expect(await summaryOf(args)).toMatchObject({
      outcome: "incomplete",
      streams: [{ error: expect.any(String) }],
    });
    expect(await readFile(path, "utf8")).not.toContain(sandbox.key);
    expect(await summaryOf([...args, "--catalog", "/nowhere.json"])).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("/nowhere.json"),
    });
  });

  it("refuses a place where it cannot write, before the first request", async () => {
    const { sandbox } = await sandboxWith(SMALL);
    const { code, stderr } = await read(sandbox, "--summary", "/nowhere/summary.json");
    expect([code, sandbox.requests.length]).toEqual([2, 0]);
    expect(stderr).toContain('the summary "/nowhere/summary.json"');
  });
});

describe("state show", () => {
  it("says from stdin how far each stream is, and what a run of today reads", async () => {
    const span = (from: string, to: string, status = "proven") => ({ from, to, status, rows: 5 });
    const open = { id: "r.1", at: Date.UTC(2026, 2), step: "open", sync: "s", job: "j1" };
    const jobs = {
      ...{ version: 4, created_at: null, salt: "s", generation: null, spent: [], prices: [], inputs: [] },
      ...{ items: [["A".repeat(16), { subs: [open] }]] },
      delivered: [["2026-03-01", "B".repeat(16)]],
    };
    const state = {
      "crm/people": {
        ...{ version: 4, discoveredAt: "2026-01-05T01:00:00.000Z", undated: { rows: 2 } },
        days: [span("1970-01-02", "2026-01-02"), span("2026-01-03", "2026-01-03", "missing")],
        filters: { source_slug: null, is_user: "true" },
        full_refresh: { generation_id: 1, sync_id: 2, done: false },
      },
      sources: { version: 4, full_refresh: null },
      company_lookups: jobs,
      elsewhere: { version: 9 },
    };
    const shown = async (value: object, ...words: string[]) =>
      (await run(CONNECTOR, ["state", "show", "-", ...words], { input: JSON.stringify(value) })).stdout;
    const stdout = await shown(state);
    for (const words of [
      "proven days: the beginning to 2026-01-02\n",
      "missing days: 2026-01-03\n",
      "rows without a date: 2\n",
      "is_user true",
      "full refresh: not complete",
      "reads, with default settings:\n",
      "    the counts of the proven days\n    missing days: 2026-01-03\n",
      "    rows without a date\n    2026-01-04 up to now\n",
      "items: 1 open, 1 finished\n",
      "this program does not know the stream",
    ])
      expect(stdout).toContain(words);
    expect(stdout).toMatch(/^sources\n.*\n {2}every run reads it from the start$/m);
    const config = await file("config.json", {
      base_url: "https://x.example",
      api_key: "k",
      end_date: "2026-01-03",
    });
    const planned = await shown(state, "--config", config);
    expect(planned).toMatch(/reads:\n {4}the counts of the proven days\n {4}missing days: 2026-01-03\n$/m);
    expect(await shown({ bookmarks: {} })).toBe("The state is empty: the next run reads everything.\n");
  });

  it("makes tables only of a folder that has rows", async () => {
    for (const path of [await tempDir(), await file("state.json", {})])
      expect(await run(CONNECTOR, ["state", "show", path, "--sql", "duckdb"])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining(path),
      });
  });

  const tooOld = async (state: object) =>
    await run(CONNECTOR, ["state", "show", "--max-age", "1m", await file("state.json", state)]);

  it("exits with 1 for streams that are older than --max-age: up to the first day that no span contains", async () => {
    const span = (from: string, to: string, status = "proven") => ({ from, to, status, rows: 1 });
    const [first, last] = [span("2026-01-01", "2026-01-05"), span("2026-01-11", "2026-02-27")];
    const of = (...days: unknown[]) => ({ version: 4, discoveredAt: "2026-03-01T00:00:00.000Z", days });
    const state = {
      people: { version: 4, discoveredAt: null, days: [] },
      "a/people": of(first, span("2026-01-06", "2026-01-10", "missing"), last),
      "b/people": of(first, last),
      "c/people": of(span("2026-01-01", "2026-02-26")),
      sources: { version: 4, full_refresh: null, replication_key: null, replication_key_value: null },
    };
    const { code, stderr } = await tooOld({ bookmarks: state });
    expect([code, stderr.trimEnd().split("\n")]).toEqual([
      1,
      [
        "Too old: people was never complete",
        "Too old: a/people is complete up to 2026-01-06T00:00:00.000Z",
        "Too old: b/people is complete up to 2026-01-06T00:00:00.000Z",
        "Too old: c/people is complete up to 2026-02-27T00:00:00.000Z",
      ],
    ]);
  });

  it("fails with --max-age for a state of no stream that has dates", async () => {
    for (const state of [{}, { bookmarks: { sources: { version: 4, full_refresh: null } } }])
      expect((await tooOld(state)).code).toBe(1);
  });
});
