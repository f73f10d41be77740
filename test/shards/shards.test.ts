import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import type { ShardLine } from "../../src/shards/plan-file.ts";
import type { DatedState } from "../../src/streams/dated-state.ts";
import { dayOf } from "../../src/time.ts";
import { CONNECTOR, type Ended, file, type RunOptions, run } from "../support/cli.ts";
import { catalogFor } from "../support/configs.ts";
import { configFor } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

type Row = { readonly id: string; readonly discoveredAt: string | null };

const ACCOUNT: SandboxOptions = { people: 6_000, undated: 5, days: 400, requestsPerMinute: 0 };

/** A plan of an account, and the commands that a user gives for it. */
class Load {
  readonly config: string;
  readonly plan: string;
  readonly folder: string;

  private constructor(config: string, plan: string, folder: string) {
    this.config = config;
    this.plan = plan;
    this.folder = folder;
  }

  static async of(sandbox: Sandbox, settings: object = {}, words: readonly string[] = []): Promise<Load> {
    const config = await configFor(sandbox, { max_window_rows: 1000, ...settings });
    const { code, stdout, stderr } = await run(CONNECTOR, [
      "plan",
      "--config",
      config,
      "--shards",
      "4",
      ...words,
    ]);
    expect(code, stderr + stdout).toBe(0);
    return new Load(config, await file("plan.jsonl", stdout), await tempDir());
  }

  get lines(): readonly ShardLine[] {
    return readFileSync(this.plan, "utf8")
      .trimEnd()
      .split("\n")
      .map((line): ShardLine => JSON.parse(line));
  }

  /** Reads a shard into the folder, unless the words say otherwise. */
  async read(shard: number | "open", words?: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const args = ["read", "--config", this.config, "--plan", this.plan, "--shard", `${shard}`];
    return await run(CONNECTOR, [...args, ...(words ?? ["--output", this.folder])], options);
  }

  stateOf(shard: number): string {
    return join(this.folder, `shard-${shard}`, "state.json");
  }

  async merge(states = this.lines.map(({ shard }) => this.stateOf(shard))): Promise<Ended> {
    return await run(CONNECTOR, ["state", "merge", "--plan", this.plan, ...states]);
  }

  /** Everyone in the files that a reader sees: the newest row of each. */
  people(folder = this.folder): Map<string, Row> {
    const newest = new Map<string, Row>();
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isRows);
    for (const path of files) {
      for (const line of readFileSync(join(folder, path), "utf8").trimEnd().split("\n")) {
        const row: Row = JSON.parse(line);
        if ((newest.get(row.id)?.discoveredAt ?? "") <= (row.discoveredAt ?? "")) newest.set(row.id, row);
      }
    }
    return newest;
  }
}

const isRows = (path: string): boolean =>
  path.endsWith(".jsonl") && path.split(/[\\/]/).every((name) => !name.startsWith("."));

const served = (sandbox: Sandbox): Map<string, Row> =>
  new Map(sandbox.people().map((person) => [person.id, person as unknown as Row]));

/** Whether a person was checked on one of the days of a shard. */
function isWithin({ discoveredAt }: Row, line: ShardLine | undefined): boolean {
  const day = discoveredAt?.slice(0, 10) ?? "";
  return day >= `${line?.from}` && day <= `${line?.to}`;
}

/** The records among what a run wrote to stdout. */
const rowsOf = (stdout: string): readonly Row[] =>
  stdout
    .split("\n")
    .filter((line) => line.includes('"RECORD"'))
    .map((line) => JSON.parse(line).record.data);

/** The state of people in a file or a text of bookmarks. */
const bookmarkIn = (text: string): DatedState => JSON.parse(text).bookmarks.people;

const exportsOf = (sandbox: Sandbox): number =>
  sandbox.requests.filter(({ path }) => path.includes("/people/stream")).length;

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(2);
}

/** Ends a run with SIGKILL once something is so. */
async function killedOnce(
  isSo: () => boolean,
  start: (options: RunOptions) => Promise<Ended>,
): Promise<void> {
  let child: ChildProcess | undefined;
  const ended = start({
    started: (started) => {
      child = started;
    },
  });
  await until(isSo);
  child?.kill("SIGKILL");
  expect((await ended).signal).toBe("SIGKILL");
}

describe("a first load in shards", () => {
  it("gives the union of one run, in any order, with people moving, and continues from the merged state", async () => {
    await using sandbox = await startSandbox(ACCOUNT);
    const load = await Load.of(sandbox);
    expect(load.lines.map(({ shard, shards, to }) => [shard, shards, to === null])).toEqual([
      [0, 4, false],
      [1, 4, false],
      [2, 4, false],
      [3, 4, true],
    ]);
    for (const shard of [2, 0, 1]) {
      const [{ code, stderr }] = await Promise.all([load.read(shard), moving(sandbox)]);
      expect(code, stderr).toBe(0);
    }
    expect((await load.read("open")).code).toBe(0);
    expect(load.people()).toEqual(served(sandbox));

    const merged = await load.merge();
    expect(merged.code, merged.stderr).toBe(0);
    const state = bookmarkIn(merged.stdout);
    expect(state).toMatchObject({
      plan: null,
      full_refresh: null,
    });

    sandbox.recheck(25);
    sandbox.arrive(6);
    const before = exportsOf(sandbox);
    const seed = await file("state.json", merged.stdout);
    const daily = [
      "read",
      "--config",
      load.config,
      "--stream",
      "people",
      "--state",
      seed,
      "--output",
      load.folder,
    ];
    expect((await run(CONNECTOR, daily)).code).toBe(0);
    expect(load.people()).toEqual(served(sandbox));
    expect(exportsOf(sandbox) - before).toBeLessThan(before);
  });

  it("goes on where a shard was killed, and leaves nothing hidden", async () => {
    await using sandbox = await startSandbox({ ...ACCOUNT, bytesPerSecond: 1_000_000 });
    const load = await Load.of(sandbox);
    await killedOnce(
      () => exportsOf(sandbox) > 1,
      async (options) => await load.read(1, undefined, options),
    );
    expect(readdirSync(load.folder)).toEqual([expect.stringMatching(/^\.shard-1-[0-9a-f]{16}$/)]);
    moved(sandbox);
    expect((await load.read(1)).code).toBe(0);
    expect(readdirSync(load.folder)).toEqual(["shard-1"]);
    const held = load.people();
    expect(
      [...served(sandbox).values()].filter((row) => isWithin(row, load.lines[1]) && !held.has(row.id)),
    ).toEqual([]);
  });

  it("goes on from the state file of a shard that was killed: done is what has ended only", async () => {
    await using sandbox = await startSandbox({ ...ACCOUNT, bytesPerSecond: 1_000_000 });
    const load = await Load.of(sandbox);
    const state = join(await tempDir(), "state.json");
    const saved = (): DatedState | undefined =>
      existsSync(state) ? bookmarkIn(readFileSync(state, "utf8")) : undefined;
    await killedOnce(
      () => (saved()?.discoveredAt ?? null) !== null,
      async (options) => await load.read(1, ["--state-file", state], options),
    );
    const covered = saved()?.discoveredAt ?? "";
    const again = await load.read(1, ["--state-file", state]);
    expect(again.code).toBe(0);
    const came = new Set(rowsOf(again.stdout).map(({ id }) => id));
    const left = [...served(sandbox).values()].filter(
      (row) => isWithin(row, load.lines[1]) && `${row.discoveredAt}` > covered,
    );
    expect(left.filter(({ id }) => !came.has(id))).toEqual([]);
  });

  it("leaves one result of a shard that runs twice at the same time, and both are content", async () => {
    await using sandbox = await startSandbox({ ...ACCOUNT, bytesPerSecond: 1_000_000 });
    const load = await Load.of(sandbox);
    const both = await Promise.all([load.read(1), load.read(1)]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(exportsOf(sandbox)).toBeGreaterThan(1);
    expect(readdirSync(load.folder)).toEqual(["shard-1"]);
    expect(load.people().size).toBe(load.lines[1]?.rows);
  });

  it("asks nothing for a shard that is done, and for an index without a line", async () => {
    await using sandbox = await startSandbox(ACCOUNT);
    const load = await Load.of(sandbox);
    const state = join(await tempDir(), "state.json");
    const first = await load.read(0);
    expect(first.code).toBe(0);
    expect(first.stderr).toMatch(/Run complete: [\d,]+ rows of 1 stream, [1-9]\d* requests/);
    expect((await load.read(0, ["--state-file", state])).code).toBe(0);
    const before = sandbox.requests.length;
    expect((await load.read(0)).code).toBe(0);
    expect((await load.read(0, ["--state-file", state])).code).toBe(0);
    const absent = await load.read(4);
    expect(absent.code).toBe(0);
    expect(absent.stderr).toContain("has no shard 4: there is nothing to read");
    expect(sandbox.requests).toHaveLength(before);
    expect(readdirSync(load.folder)).toEqual(["shard-0"]);
  });
});

describe("plan", () => {
  it("has no open line where the dates end before yesterday", async () => {
    await using sandbox = await startSandbox(ACCOUNT);
    const end = dayOf(Date.now() - 30 * 86_400_000);
    const load = await Load.of(sandbox, { end_date: end });
    expect(load.lines.at(-1)?.to).toBe(end);
    expect(load.lines.every(({ end_date }) => end_date === end)).toBe(true);
    const open = await load.read("open");
    expect(open.code).toBe(0);
    expect(open.stderr).toContain("there is nothing to read");
  });

  it("cuts companies where they are dated, and refuses to elsewhere", async () => {
    await using dated = await startSandbox({ ...ACCOUNT, companies: 400 });
    const load = await Load.of(dated, {}, ["--stream", "companies"]);
    expect(load.lines.map(({ stream }) => stream)).toEqual(load.lines.map(() => "companies"));
    expect(load.lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(400);

    await using undated = await startSandbox({ ...ACCOUNT, companiesDated: false });
    const config = await configFor(undated);
    const { code, stderr } = await run(CONNECTOR, ["plan", "--config", config, "--stream", "companies"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('Cannot plan \\"companies\\": only streams whose records have a date');
  });
});

describe("read --plan --shard refuses", () => {
  it("what a shard cannot obey, by name, before it asks for rows", async () => {
    await using sandbox = await startSandbox(ACCOUNT);
    const load = await Load.of(sandbox);
    const asked = exportsOf(sandbox);
    const two = await catalogFor({ people: {}, companies: {} });
    const full = await catalogFor({ people: { sync_mode: "full_refresh" } });
    const cases: readonly (readonly [why: string, settings: object, words?: readonly string[]])[] = [
      ["source_slug was not set and is acme-crm", { source_slug: "acme-crm" }],
      ["start_date was not set and is 2026-01-01", { start_date: "2026-01-01" }],
      ["base_url is another one", { base_url: `${sandbox.url}/other` }],
      ["max_run_seconds", { max_run_seconds: 60 }],
      ["it must hold that stream alone", {}, ["--catalog", two]],
      ["it must hold that stream alone", {}, ["--catalog", full]],
      ["Cannot share 6000 requests a minute among 6001 shards", {}, ["--shards-at-once", "6001"]],
    ];
    for (const [why, settings, words = []] of cases) {
      const config = await configFor(sandbox, settings);
      const { code, stdout } = await load.read(0, ["--config", config, ...words]);
      expect(code, why).not.toBe(0);
      expect(stdout).toContain(why);
    }
    const wrong = await load.read(0, ["--shard", "first"]);
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr + wrong.stdout).toContain("--shard must be");
    expect(exportsOf(sandbox)).toBe(asked);
  });
});

describe("state merge refuses", () => {
  it("states of two languages, and of an unfinished load", async () => {
    await using sandbox = await startSandbox({ ...ACCOUNT, people: 400 });
    const load = await Load.of(sandbox);
    for (const shard of [...load.lines.keys()].reverse()) {
      expect((await load.read(shard)).code).toBe(0);
    }
    const states = load.lines.map(({ shard }) => load.stateOf(shard));
    const singer = bookmarkIn(await readFile(load.stateOf(0), "utf8"));
    const airbyte = await file("airbyte.json", [
      { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state: singer } },
    ]);
    expect((await load.merge([airbyte, ...states.slice(1)])).stderr).toContain(
      "Merge states of one language",
    );
    expect((await load.merge(states.slice(1))).stderr).toContain("no state holds");
  });
});

function moved(sandbox: Sandbox): void {
  sandbox.recheck(8);
  sandbox.arrive(2);
  sandbox.arrive(1, { undated: true });
}

/** People move while a shard is read. */
async function moving(sandbox: Sandbox): Promise<void> {
  const begun = exportsOf(sandbox);
  await until(() => exportsOf(sandbox) > begun);
  moved(sandbox);
}
