import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Sandbox, SandboxOptions } from "../../sandbox/server.ts";
import { type ShardLine, shardFolder } from "../../src/shards/plan.ts";
import { type DayRange, uncovered, withStatus } from "../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../src/streams/dated-state.ts";
import { BEGINNING, type Day, dayOf } from "../../src/time.ts";
import { CONNECTOR, type Ended, file, type RunOptions, run } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

type Row = { readonly id: string; readonly discoveredAt: string | null };

const ACCOUNT: SandboxOptions = { people: 6_000, undated: 5, days: 400, requestsPerMinute: 0 };

/** A plan of an account, and the commands that a user gives for it. */
class Load {
  readonly sandbox: Sandbox;
  readonly config: string;
  readonly plan: string;
  readonly folder: string;

  private constructor(sandbox: Sandbox, config: string, plan: string, folder: string) {
    this.sandbox = sandbox;
    this.config = config;
    this.plan = plan;
    this.folder = folder;
  }

  static async of(
    account: SandboxOptions,
    settings: object = {},
    more: readonly string[] = [],
  ): Promise<Load> {
    const { sandbox, config } = await sandboxWith(account, { max_window_rows: 1000, ...settings });
    const words = ["plan", "--config", config, "--shards", "4", ...more];
    const { code, stdout, stderr } = await run(CONNECTOR, words);
    expect(code, stderr + stdout).toBe(0);
    return new Load(sandbox, config, await file("plan.jsonl", stdout), await tempDir());
  }

  get lines(): readonly ShardLine[] {
    const text = readFileSync(this.plan, "utf8").trimEnd();
    return text.split("\n").map((line): ShardLine => JSON.parse(line));
  }

  /** Reads a shard into the folder, unless the words say otherwise. */
  async read(shard: number | "open", words?: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const args = ["read", "--config", this.config, "--plan", this.plan, "--shard", `${shard}`];
    return await run(CONNECTOR, [...args, ...(words ?? ["--output", this.folder])], options);
  }

  /** Reads a shard, and ends that with SIGKILL once something is so. */
  async killed(shard: number, words: readonly string[], isSo: () => boolean): Promise<void> {
    const children: ChildProcess[] = [];
    const ended = this.read(shard, words, { started: (child) => void children.push(child) });
    await until(isSo);
    for (const child of children) child.kill("SIGKILL");
    expect((await ended).signal).toBe("SIGKILL");
  }

  nameOf(shard: number): string {
    return shardFolder(this.lines[shard] as ShardLine);
  }

  /** Everyone in the files that a reader sees: the newest row of each. */
  people(): Map<string, Row> {
    const newest = new Map<string, Row>();
    const files = readdirSync(this.folder, { recursive: true, encoding: "utf8" }).filter(isRows);
    for (const path of files) {
      for (const line of readFileSync(join(this.folder, path), "utf8").trimEnd().split("\n")) {
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

const daysOf = (line: ShardLine | undefined): DayRange => [line?.from as Day, line?.to as Day];

/** Everyone who was checked on some days. */
const checkedOn = (sandbox: Sandbox, ranges: readonly DayRange[]): readonly Row[] =>
  [...served(sandbox).values()].filter(({ discoveredAt }) =>
    ranges.some(([from, to]) => `${discoveredAt}` >= from && `${discoveredAt}`.slice(0, 10) <= to),
  );

/** The records among what a run wrote to stdout. */
const rowsOf = (stdout: string): readonly Row[] =>
  stdout
    .split("\n")
    .filter((line) => line.includes('"RECORD"'))
    .map((line) => JSON.parse(line).record.data);

/** The state of people in a text of bookmarks. */
const bookmarkIn = (text: string): DatedState => JSON.parse(text).bookmarks.people;

const exportsOf = (sandbox: Sandbox): number =>
  sandbox.requests.filter(({ path }) => path.includes("/people/stream")).length;

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(2);
}

describe("a first load in shards", () => {
  it("gives the union of one run, the open shard first, with people moving, and continues from it", async () => {
    const load = await Load.of(ACCOUNT);
    const { sandbox } = load;
    const ends = load.lines.map(({ version, shard, to }) => [version, shard, to === null]);
    expect(ends).toEqual([0, 1, 2, 3].map((shard) => [2, shard, shard === 3]));
    for (const shard of ["open", 2, 0, 1] as const) {
      const [{ code, stderr }] = await Promise.all([load.read(shard), moving(sandbox)]);
      expect(code, stderr).toBe(0);
    }
    const folders = readdirSync(load.folder).map((name) => join(load.folder, name));
    const merged = await run(CONNECTOR, ["state", "merge", ...folders]);
    expect(merged.code, merged.stderr).toBe(0);
    const state = bookmarkIn(merged.stdout);
    const plan = load.lines[0]?.plan;
    expect(state).toMatchObject({
      version: 2,
      plan,
      undated: { rows: expect.any(Number) },
      full_refresh: null,
    });
    expect(uncovered(state.days, [BEGINNING, load.lines[2]?.to as Day])).toEqual([]);
    expect(withStatus(state.days, "missing")).toEqual([]);

    sandbox.recheck(25);
    sandbox.arrive(6);
    const before = exportsOf(sandbox);
    const seed = ["--state", await file("state.json", merged.stdout)];
    const daily = ["read", "--config", load.config, "--stream", "people", ...seed, "--output", load.folder];
    expect((await run(CONNECTOR, daily)).code).toBe(0);
    expect(load.people()).toEqual(served(sandbox));
    expect(exportsOf(sandbox) - before).toBeLessThan(before);
  });

  it("goes on in its folder where it was killed, and lets no other run into it", async () => {
    const load = await Load.of({ ...ACCOUNT, bytesPerSecond: 300_000 });
    await load.killed(1, ["--output", load.folder], () => exportsOf(load.sandbox) > 1);
    expect(readdirSync(load.folder)).toEqual([load.nameOf(1)]);
    moved(load.sandbox);
    const [begun, first] = [exportsOf(load.sandbox), load.read(1)];
    await until(() => exportsOf(load.sandbox) > begun);
    const second = await load.read(1);
    expect([second.code, (await first).code]).toEqual([1, 0]);
    expect(second.stderr).toContain("another run");
    expect(readdirSync(load.folder)).toEqual([load.nameOf(1)]);
    const held = load.people();
    const missing = checkedOn(load.sandbox, [daysOf(load.lines[1])]).filter(({ id }) => !held.has(id));
    expect(missing).toEqual([]);
  });

  it("brings the rest of a shard from the state file of a killed run, which does not hold all its days", async () => {
    const load = await Load.of({ ...ACCOUNT, bytesPerSecond: 300_000 }, { num_workers: 1 });
    const state = join(await tempDir(), "state.json");
    await load.killed(1, ["--state-file", state], () => existsSync(state));
    const left = (): readonly DayRange[] =>
      uncovered(bookmarkIn(readFileSync(state, "utf8")).days, daysOf(load.lines[1]));
    const rest = left();
    expect(rest).not.toEqual([]);
    const again = await load.read(1, ["--state-file", state]);
    expect([again.code, left()]).toEqual([0, []]);
    const came = new Set(rowsOf(again.stdout).map(({ id }) => id));
    expect(checkedOn(load.sandbox, rest).filter(({ id }) => !came.has(id))).toEqual([]);
  });

  it("asks nothing for a shard whose days the state holds, and for an index without a line", async () => {
    const load = await Load.of(ACCOUNT);
    const state = ["--state-file", join(await tempDir(), "state.json")];
    expect((await load.read(0)).stderr).toMatch(/Run complete: [\d,]+ rows of 1 stream, [1-9]\d* requests/);
    expect((await load.read(0, state)).code).toBe(0);
    const before = load.sandbox.requests.length;
    expect([(await load.read(0)).code, (await load.read(0, state)).code]).toEqual([0, 0]);
    const absent = await load.read(4);
    expect(absent.code).toBe(0);
    expect(absent.stderr).toContain("has no shard 4: there is nothing to read");
    expect(load.sandbox.requests).toHaveLength(before);
    expect(readdirSync(load.folder)).toEqual([load.nameOf(0)]);
    const other = await load.read(1, state);
    expect(rowsOf(other.stdout), "from the state of another shard").toHaveLength(load.lines[1]?.rows ?? 0);
  });
});

describe("plan", () => {
  it("has no open line where the dates end before yesterday", async () => {
    const end = dayOf(Date.now() - 30 * 86_400_000);
    const load = await Load.of(ACCOUNT, { end_date: end });
    expect(load.lines.at(-1)?.to).toBe(end);
    const open = await load.read("open");
    expect(open.code).toBe(0);
    expect(open.stderr).toContain("there is nothing to read");
  });

  it("cuts companies where they are dated, and refuses to elsewhere", async () => {
    const load = await Load.of({ ...ACCOUNT, companies: 400 }, {}, ["--stream", "companies"]);
    expect(load.lines.map(({ stream }) => stream)).toEqual(load.lines.map(() => "companies"));
    expect(load.lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(400);
    const { config } = await sandboxWith({ ...ACCOUNT, companiesDated: false });
    const { code, stderr } = await run(CONNECTOR, ["plan", "--config", config, "--stream", "companies"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('Cannot plan \\"companies\\": only streams whose records have a date');
  });

  it("goes on from the lines of one that was cut off, which no shard is read from", async () => {
    const load = await Load.of(ACCOUNT);
    const text = readFileSync(load.plan, "utf8");
    const resumed = async (known: string): Promise<string> => {
      writeFileSync(load.plan, known);
      const words = ["plan", "--config", load.config, "--shards", "4", "--resume", load.plan];
      return (await run(CONNECTOR, words)).stdout;
    };
    const [one = "", two = ""] = text.split(/(?<=\n)/);
    expect(await resumed(text)).toBe(text);
    expect((await resumed(`${one}${two}{"version":2,"pl`)).startsWith(one + two)).toBe(true);
    const whole = await resumed(one + two);
    writeFileSync(load.plan, whole);
    expect(load.lines.map(({ plan, shard }) => [plan, shard])).toEqual(
      [0, 1, 2, 3].map((shard) => [JSON.parse(one).plan, shard]),
    );
    expect(load.lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(6_000);
    writeFileSync(load.plan, one + two);
    const cut = await load.read(0);
    expect(cut.code).toBe(1);
    expect(cut.stderr).toContain("it was cut off. Finish it with: plan --resume");
  });
});

describe("read --plan --shard refuses", () => {
  it("what a shard cannot obey, by name, before it asks for rows", async () => {
    const load = await Load.of(ACCOUNT);
    const { sandbox } = load;
    const asked = exportsOf(sandbox);
    const full = await catalogFor({ people: { sync_mode: "full_refresh" } });
    const strange = await file("state.json", { bookmarks: { people: { ...NEW_STATE, plan: "another" } } });
    const cases: readonly (readonly [why: string, settings: object, words?: readonly string[]])[] = [
      ["the config differs from the one that made it", { source_slug: "acme-crm" }],
      ["max_run_seconds", { max_run_seconds: 60 }],
      ['its sync_mode must be \\"incremental\\"', {}, ["--catalog", full]],
      ["Cannot share 6000 requests a minute among 6001 shards", {}, ["--shards-at-once", "6001"]],
      ["the state is of another plan", {}, ["--state", strange]],
    ];
    for (const [why, settings, words = []] of cases) {
      const config = await configFor(sandbox, settings);
      const { code, stdout } = await load.read(0, ["--config", config, ...words]);
      expect(code, why).not.toBe(0);
      expect(stdout).toContain(why);
    }
    const wrong = await load.read(0, ["--shard", "first"]);
    expect([wrong.code, wrong.stderr + wrong.stdout]).toEqual([
      2,
      expect.stringContaining("--shard must be"),
    ]);
    expect(exportsOf(sandbox)).toBe(asked);
  });
});

describe("state merge", () => {
  const MOMENTS = { discoveredAt: "2026-02-03T00:00:00Z", asked: "2026-02-09T00:00:00Z" };
  const stateOf = (from: string, to: string): object => ({
    ...{ ...NEW_STATE, ...MOMENTS, plan: "0a" },
    days: [[from, to, 1]],
  });
  const airbyte = (stream_state: object): object => [
    { type: "STREAM", stream: { stream_descriptor: { name: "people" }, stream_state } },
  ];
  const key = { replication_key: "discoveredAt", replication_key_value: MOMENTS.discoveredAt };
  const singer = (people: object, others: object = {}): object => ({
    bookmarks: { people: { ...people, ...key }, ...others },
  });
  const merge = async (states: readonly object[], words: readonly string[] = []): Promise<Ended> => {
    const files = await Promise.all(states.map((state) => file("state.json", state)));
    return await run(CONNECTOR, ["state", "merge", ...words, ...files]);
  };
  const [one, two] = [stateOf("2026-01-01", "2026-01-31"), stateOf("2026-02-02", "2026-02-03")];

  it("speaks the language of the first state", async () => {
    for (const wrap of [airbyte, singer]) {
      const { stdout } = await merge([wrap(one), singer(stateOf("2026-02-01", "2026-02-03"))]);
      const days = [
        ["2026-01-01", "2026-01-31", 1],
        ["2026-02-01", "2026-02-03", 1],
      ];
      expect(JSON.parse(stdout)).toEqual(wrap({ ...one, days }));
    }
  });

  it("names days that no state holds, and leaves them to the next run with --partial", async () => {
    const { code, stderr } = await merge([singer(one), singer(two)]);
    expect(code).toBe(1);
    expect(stderr).toContain("none of them holds 2026-02-01. Read the shards of these days to their end");
    const { stdout } = await merge([singer(one), singer(two)], ["--partial"]);
    expect(bookmarkIn(stdout).days).toHaveLength(2);
  });

  it("takes the states of shards that the version before has finished", async () => {
    const shard = { plan: "0a", index: 0, done: true, asked: MOMENTS.asked, ended: null };
    const old = (from: string, to: string): object => ({
      ...{
        version: 1,
        discoveredAt: `${to}T23:59:59.999Z`,
        missing_days: [],
        filters: null,
        from,
        gap: null,
      },
      ...{
        undated: "pending",
        undated_checked: null,
        undated_rows: 0,
        recheck: [],
        full_refresh: null,
        shard,
      },
    });
    const states = [old("2026-01-01", "2026-01-31"), old("2026-02-01", "2026-02-02")];
    const { stdout, stderr } = await merge(states.map((people) => ({ bookmarks: { people } })));
    expect(stderr).toBe("");
    const { days, plan } = bookmarkIn(stdout);
    expect([uncovered(days, ["2026-01-01" as Day, "2026-02-02" as Day]), plan]).toEqual([[], "0a"]);
  });

  it("refuses states of different streams, and one without a dated stream", async () => {
    const both = await merge([singer(one, { companies: one }), singer(one)]);
    expect(both.stderr).toMatch(/"companies" is in ".*", and not in every state/);
    expect((await merge([{ bookmarks: {} }])).stderr).toContain("it holds no state of a stream with dates");
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
