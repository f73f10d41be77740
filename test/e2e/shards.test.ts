import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, type Ended, file, run } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

const ACCOUNT = {
  ...{ people: 120, undated: 2, companies: 4, sources: 2, seed: 7, days: 60 },
  now: "2026-03-20T12:00:00Z",
} satisfies SandboxOptions;

type Line = Readonly<Record<"from" | "to", unknown> & Record<"shard" | "rows" | "share", number>>;
type Row = { readonly id: string; readonly discoveredAt: string | null };

const linesIn = <T>(text: string): readonly T[] => linesOf(text).map((line) => JSON.parse(line));

/** An account, its plan, and what reads a shard of it into a folder. */
async function planned() {
  const { sandbox, config } = await sandboxWith(ACCOUNT);
  const words = ["plan", "--config", config, "--shards", "3"];
  const { code, stdout, stderr } = await run(CONNECTOR, words);
  expect(code, stderr).toBe(0);
  const [plan, folder] = [await file("plan.jsonl", stdout), await tempDir()];
  const read = (shard: number | "open", ...more: readonly string[]): Promise<Ended> =>
    run(CONNECTOR, [
      ...["read", "--config", config, "--plan", plan, "--shard", `${shard}`, "--output", folder],
      ...more,
    ]);
  const merge = (): Promise<Ended> => {
    const shards = readdirSync(folder).filter((name) => name.startsWith("shard-"));
    return run(CONNECTOR, ["state", "merge", ...shards.sort().map((name) => join(folder, name))]);
  };
  /** What a run without shards brings that goes on from all of them. */
  const rest = async (): Promise<readonly Row[]> => {
    const merged = await merge();
    expect(merged.code, merged.stderr).toBe(0);
    const state = await file("state.json", merged.stdout);
    const words = ["read", "--config", config, "--stream", "people", "--format", "jsonl", "--state", state];
    const { code, stdout } = await run(CONNECTOR, words);
    expect(code).toBe(0);
    return linesIn<Row>(stdout);
  };
  return { sandbox, config, folder, read, merge, rest, lines: linesIn<Line>(stdout) };
}

const isFileOfRows = (path: string): boolean => /^(?!\.|.*[\\/]\.).*\.jsonl$/.test(path);

/** All rows that files below a folder hold. */
const rowsIn = (folder: string): readonly Row[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter(isFileOfRows)
    .flatMap((path) => linesIn<Row>(readFileSync(join(folder, path), "utf8")));

const idsOf = (rows: readonly object[]): string[] => rows.map((row) => (row as Row).id).sort();

describe("plan", () => {
  it("prints shards that follow each other and contain every row with a date", async () => {
    const { lines } = await planned();
    expect(lines.map(({ shard, from, to }) => [shard, from === null, to === null])).toEqual([
      [0, true, false],
      [1, false, false],
      [2, false, true],
    ]);
    expect(lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(120);
  });

  it("divides the key's requests among all shards, or among those that run in parallel", async () => {
    const { lines, config } = await planned();
    const words = ["plan", "--config", config, "--shards", "4", "--shards-at-once", "2"];
    const parallel = linesIn<Line>((await run(CONNECTOR, words)).stdout);
    const sharesOf = (shards: readonly Line[]) => shards.map(({ share }) => share);
    expect([sharesOf(lines), sharesOf(parallel)]).toEqual([
      [1, 1, 1].map((one) => one / 3),
      [0.5, 0.5, 0.5, 0.5],
    ]);
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

  it.each(["sources", "company_lookups"])("refuses %s, whose records have no date", async (stream) => {
    const { config } = await sandboxWith(ACCOUNT);
    const { code, stdout, stderr } = await run(CONNECTOR, ["plan", "--config", config, "--stream", stream]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`Cannot plan "${stream}": shards need a stream with dates`);
  });
});

describe("shards that are read one by one", () => {
  it("read everyone once, and the merged state continues where they ended", async () => {
    const { sandbox, folder, read, rest } = await planned();
    for (const shard of ["open", 1, 0] as const) expect(await read(shard)).toMatchObject({ code: 0 });
    expect(idsOf(rowsIn(folder))).toEqual(idsOf(sandbox.people()));
    sandbox.advance(3_600_000);
    sandbox.recheck(5);
    sandbox.arrive(3);
    const came = await rest();
    const newest = new Map([...rowsIn(folder), ...came].map((row) => [row.id, row.discoveredAt]));
    expect(came.length).toBeLessThan(60);
    expect(newest).toEqual(new Map(sandbox.people().map(({ id, discoveredAt }) => [id, discoveredAt])));
  });

  it("deliver those who move to another shard while it is read", async () => {
    const { sandbox, folder, read, rest } = await planned();
    for (const shard of ["open", 0, 1] as const) {
      sandbox.fault("drain=2:every=5");
      expect((await read(shard)).code).toBe(0);
    }
    sandbox.fault();
    const seen = new Set(idsOf([...rowsIn(folder), ...(await rest())]));
    expect(idsOf(sandbox.people()).filter((id) => !seen.has(id))).toEqual([]);
  });

  it("send no request once they are complete, or for an index that is not in the plan", async () => {
    const { sandbox, read } = await planned();
    expect((await read(0)).code).toBe(0);
    const before = sandbox.requests.length;
    expect((await read(0)).stderr).toContain('Shard 0 of "people" is complete already');
    expect((await read(3)).stderr).toContain("The plan has no shard 3, only 0, 1, 2 (open). Nothing is read");
    expect(sandbox.requests).toHaveLength(before);
  });

  it("refuse what a shard cannot obey, before they ask for rows", async () => {
    const { sandbox, read } = await planned();
    const full = await catalogFor({ people: { sync_mode: "full_refresh" } });
    const before = sandbox.requests.length;
    for (const [why, settings, ...words] of [
      ["max_run_seconds", { max_run_seconds: 60 }],
      ["reread_days", { reread_days: 30 }],
      ["less than one request per minute", { requests_per_minute: 2 }],
      ['its sync_mode must be "incremental"', {}, "--catalog", full],
      ["--shard must be", {}, "--shard", "first"],
      ['the plan is for "people"', {}, "--stream", "companies"],
    ] as const) {
      const config = await configFor(sandbox, settings);
      const { code, stdout, stderr } = await read(0, "--config", config, ...words);
      expect([why, code === 0, `${stdout}${stderr}`.replaceAll('\\"', '"')]).toEqual([
        why,
        false,
        expect.stringContaining(why),
      ]);
    }
    expect(sandbox.requests).toHaveLength(before);
  });
});

describe("state merge", () => {
  const stateOf = (from: string, to: string, more: object = {}): object => ({
    ...{ version: 4, discoveredAt: "2026-03-17T01:00:00.000Z", asked: "2026-03-18T01:00:00.000Z" },
    ...{ undated: null, days: [{ from, to, status: "proven", rows: 5 }], ...more },
  });
  const [people, others] = [stateOf("2026-01-01", "2026-01-31"), stateOf("2026-02-01", "2026-02-28")];
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

  it("refuses a stream that one of them lacks, a state without dates, and days that none contains", async () => {
    const late = singer({ people: stateOf("2026-02-03", "2026-02-04") });
    for (const [a, b, why] of [
      [singer({ people, companies: people }), singer({ people: others }), /b?a\.json", and not/],
      [singer({ people }), singer({ people: null }), /b\.json": it has no stream with dates/],
      [singer({ people }), late, /no state contains 2026-02-01 to 2026-02-02\. /],
    ] as const) {
      const ended = await merge([a, b]);
      expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(why) });
    }
    const partial = await merge([singer({ people }), late], "--partial");
    expect(JSON.parse(partial.stdout).bookmarks.people.days).toHaveLength(2);
  });
});
