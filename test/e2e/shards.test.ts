import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { runProgram } from "../../src/main.ts";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const ACCOUNT = {
  ...{ people: 120, undated: 2, companies: 4, sources: 2, seed: 7, days: 60, requestsPerMinute: 0 },
  now: "2026-03-20T12:00:00Z",
} satisfies SandboxOptions;

type Line = {
  readonly shard: number;
  readonly from: string | null;
  readonly to: string | null;
  rows: number;
};
type Row = { readonly id: string; readonly discoveredAt: string | null };

const linesIn = <T>(text: string): readonly T[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

/** An account, its plan, and what reads a shard of it into a folder. */
async function planned(account: SandboxOptions = ACCOUNT, settings: object = {}) {
  const { sandbox, config } = await sandboxWith(account, settings);
  const words = ["plan", "--config", config, "--shards", "3"];
  const { code, stdout, stderr } = await run(CONNECTOR, words);
  expect(code, stderr).toBe(0);
  const [plan, folder] = [await file("plan.jsonl", stdout), await tempDir()];
  const read = (shard: number | "open", ...more: readonly string[]): Promise<Ended> =>
    run(CONNECTOR, [
      ...["read", "--config", config, "--plan", plan, "--shard", `${shard}`, "--output", folder],
      ...more,
    ]);
  const shards = (): string[] =>
    readdirSync(folder)
      .filter((name) => name.startsWith("shard-"))
      .sort()
      .map((name) => join(folder, name));
  return { sandbox, config, words, plan, folder, read, shards, lines: linesIn<Line>(stdout) };
}

/** All rows that files below a folder hold. */
const rowsIn = (folder: string): readonly Row[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /^(?!\.|.*[\\/]\.).*\.jsonl$/.test(path))
    .flatMap((path) => linesIn<Row>(readFileSync(join(folder, path), "utf8")));

const idsOf = (rows: readonly object[]): string[] => rows.map((row) => (row as Row).id).sort();

describe("plan", () => {
  it("prints shards that follow each other and hold every row with a date", async () => {
    const { words, lines } = await planned();
    expect(lines.map(({ shard, from, to }) => [shard, from === null, to === null])).toEqual([
      [0, true, false],
      [1, false, false],
      [2, false, true],
    ]);
    expect(lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(120);
    const stdout = new Terminal();
    const parse = async () => (await import("../../src/cli.ts")).parseCommand;
    expect(await runProgram(parse, words, testProcess({ stdout }))).toBe(0);
    const [head, first] = stdout.text.split("\n");
    expect(head).toMatch(/^shard +from +to +rows$/);
    expect(first?.split(/ {2,}/)).toEqual(["0", "start", lines[0]?.to, `${lines[0]?.rows}`]);
    expect(stdout.text).toContain("120 rows with a date. To keep the plan, add: > plan.jsonl");
  });

  it("asks one by one at the pace of the config, with nothing in a burst", async () => {
    const { sandbox, config } = await sandboxWith(ACCOUNT, { requests_per_minute: 60 });
    let slept = 0;
    const now = (): number => Date.parse(ACCOUNT.now) + slept;
    const sleep = async (ms: number): Promise<void> => {
      slept += ms;
    };
    const words = ["plan", "--config", config, "--shards", "3"];
    expect((await run(CONNECTOR, words, { clock: { now, monotonic: now, sleep } })).code).toBe(0);
    const pauses = sandbox.requests.length - 1;
    expect([pauses > 1, slept >= pauses * 1_000]).toEqual([true, true]);
  });

  it("has no open shard where the dates end before yesterday", async () => {
    const { lines, read } = await planned(ACCOUNT, { end_date: "2026-02-20" });
    expect(lines.at(-1)?.to).toBe("2026-02-20");
    expect((await read("open")).stderr).toContain("there is nothing to read");
  });

  it.each(["sources", "company_lookups"])("refuses %s, whose records have no date", async (stream) => {
    const { config } = await sandboxWith(ACCOUNT);
    const { code, stdout, stderr } = await run(CONNECTOR, ["plan", "--config", config, "--stream", stream]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`Cannot plan \\"${stream}\\": only streams whose records have a date`);
  });
});

describe("shards that are read one by one", () => {
  it("bring everyone once, and the joined state goes on where they ended", async () => {
    const { sandbox, config, folder, read, shards } = await planned();
    for (const shard of ["open", 1, 0] as const) expect(await read(shard)).toMatchObject({ code: 0 });
    expect(idsOf(rowsIn(folder))).toEqual(idsOf(sandbox.people()));
    const merged = await run(CONNECTOR, ["state", "merge", ...shards()]);
    expect(merged.code, merged.stderr).toBe(0);
    sandbox.advance(3_600_000);
    sandbox.recheck(5);
    sandbox.arrive(3);
    const state = ["--state", await file("state.json", merged.stdout)];
    const rest = ["read", "--config", config, "--stream", "people", "--format", "jsonl", ...state];
    const { code, stdout } = await run(CONNECTOR, rest);
    const came = linesIn<Row>(stdout);
    const newest = new Map([...rowsIn(folder), ...came].map((row) => [row.id, row.discoveredAt]));
    expect([code, came.length < 60]).toEqual([0, true]);
    expect(newest).toEqual(new Map(sandbox.people().map(({ id, discoveredAt }) => [id, discoveredAt])));
  });

  it("bring those who move to another shard meanwhile", async () => {
    const { sandbox, config, folder, read, shards } = await planned();
    for (const shard of ["open", 0, 1] as const) {
      sandbox.fault("drain=2:every=5");
      expect((await read(shard)).code).toBe(0);
    }
    sandbox.fault();
    const merged = await run(CONNECTOR, ["state", "merge", ...shards()]);
    const state = ["--state", await file("state.json", merged.stdout)];
    const rest = ["read", "--config", config, "--stream", "people", "--format", "jsonl", ...state];
    const came = linesIn<Row>((await run(CONNECTOR, rest)).stdout);
    const seen = new Set(idsOf([...rowsIn(folder), ...came]));
    expect(idsOf(sandbox.people()).filter((id) => !seen.has(id))).toEqual([]);
  });

  it("ask nothing again once they are complete, nor for an index that the plan does not have", async () => {
    const { sandbox, read } = await planned();
    expect((await read(0)).code).toBe(0);
    const before = sandbox.requests.length;
    expect((await read(0)).stderr).toContain('Shard 0 of \\"people\\" is complete already');
    expect((await read(3)).stderr).toContain("has no shard 3: there is nothing to read");
    expect(sandbox.requests).toHaveLength(before);
  });

  it("refuse what a shard cannot obey, before they ask for rows", async () => {
    const { sandbox, read } = await planned();
    const full = await catalogFor({ people: { sync_mode: "full_refresh" } });
    const strange = await file("state.json", {
      bookmarks: { people: { version: 2, discoveredAt: null, days: [], undated: null, plan: "another" } },
    });
    const before = sandbox.requests.length;
    for (const [why, settings, ...words] of [
      ["the config differs from the one that made it", { source_slug: "acme-crm" }],
      ["max_run_seconds", { max_run_seconds: 60 }],
      ["Cannot share 6000 requests a minute among 6001 shards", {}, "--shards-at-once", "6001"],
      ['its sync_mode must be \\"incremental\\"', {}, "--catalog", full],
      ["the state is of another plan", {}, "--state", strange],
      ["--shard must be", {}, "--shard", "first"],
    ] as const) {
      const { code, stdout, stderr } = await read(
        0,
        "--config",
        await configFor(sandbox, settings),
        ...words,
      );
      expect([why, code === 0, `${stdout}${stderr}`]).toEqual([why, false, expect.stringContaining(why)]);
    }
    expect(sandbox.requests).toHaveLength(before);
  });
});

describe("state merge", () => {
  it("refuses a folder of which rows were lost, and names the file", async () => {
    const { read, shards } = await planned();
    for (const shard of [0, 1, "open"] as const) expect((await read(shard)).code).toBe(0);
    const [first = ""] = shards();
    const rows = join("people", readdirSync(join(first, "people"))[0] ?? "");
    const whole = readFileSync(join(first, rows));
    const merge = () => run(CONNECTOR, ["state", "merge", ...shards()]);
    for (const [damage, why] of [
      [undefined, "is not there"],
      [whole.subarray(0, whole.length >> 1), `bytes instead of ${whole.length}`],
      [Buffer.from(whole).fill("x", 20, 21), "has other content than the run wrote"],
    ] as const) {
      if (damage === undefined) rmSync(join(first, rows));
      else writeFileSync(join(first, rows), damage);
      const { code, stderr, stdout } = await merge();
      expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(`${rows} `)]);
      expect(stderr).toContain(why);
    }
    writeFileSync(join(first, rows), whole);
    expect((await merge()).code).toBe(0);
  });

  const stateOf = (from: string, to: string, more: object = {}): object => ({
    ...{ version: 2, discoveredAt: "2026-03-17T01:00:00.000Z", asked: "2026-03-18T01:00:00.000Z" },
    ...{ undated: null, plan: "abc", days: [[from, to, 5]], ...more },
  });
  const [people, others] = [stateOf("2026-01-01", "2026-01-31"), stateOf("2026-02-01", "2026-02-28")];
  const late = stateOf("2026-02-03", "2026-02-04");
  const singer = (bookmarks: object): object => ({ bookmarks });
  const airbyte = (state: object): object => [
    { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: state } },
  ];
  const merge = async (states: readonly object[], ...words: readonly string[]): Promise<Ended> => {
    const files = await Promise.all(states.map((state, nth) => file(`${"ab"[nth]}.json`, state)));
    return await run(CONNECTOR, ["state", "merge", ...words, ...files]);
  };

  it("speaks the language of the first state", async () => {
    const days = [...Object(people).days, ...Object(others).days];
    const inSinger = await merge([singer({ people }), airbyte(others)]);
    expect(JSON.parse(inSinger.stdout)).toMatchObject({ bookmarks: { people: { days } } });
    const inAirbyte = await merge([airbyte(people), singer({ people: others })]);
    expect(JSON.parse(inAirbyte.stdout)).toMatchObject([
      { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: { days } } },
    ]);
  });

  it.each([
    [
      "a stream that one of them lacks",
      { people, companies: people },
      { people: others },
      /b?a\.json", and not/,
    ],
    ["a state without dates", { people }, { people: null }, /b\.json": it holds no state of/],
    ["days that none holds", { people }, { people: late }, /none of them holds 2026-02-01 to 2026-02-02\. /],
  ])("refuses %s", async (_what, a, b, why) => {
    const ended = await merge([singer(a), singer(b)]);
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(why) });
  });

  it("leaves days that none holds to the next run with --partial", async () => {
    const { stdout } = await merge([singer({ people }), singer({ people: late })], "--partial");
    expect(JSON.parse(stdout).bookmarks.people.days).toHaveLength(2);
  });
});
