import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Sandbox, SandboxOptions } from "../../../sandbox/server.ts";
import { type ShardLine, shardFolder } from "../../../src/shards/plan.ts";
import { type DayRange, uncovered, withStatus } from "../../../src/streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../../../src/streams/dated-state.ts";
import { BEGINNING, type Day, dayOf } from "../../../src/time.ts";
import { CONNECTOR, type Ended, file, type RunOptions, run } from "../../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../../support/configs.ts";
import { tempDir } from "../../support/temp-dir.ts";

type Row = { readonly id: string; readonly discoveredAt: string | null };

const ACCOUNT: SandboxOptions = { people: 6_000, undated: 5, days: 400, requestsPerMinute: 0 };

/** The lines of a plan. */
const linesIn = (text: string): readonly ShardLine[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** A plan of an account, and the commands that a user gives for it. */
async function loadOf(account: SandboxOptions, settings: object = {}, more: readonly string[] = []) {
  const { sandbox, config } = await sandboxWith(account, { max_window_rows: 1000, ...settings });
  const makePlan = (words: readonly string[]): Promise<Ended> =>
    run(CONNECTOR, ["plan", "--config", config, "--shards", "4", ...words]);
  const { code, stdout, stderr } = await makePlan(more);
  expect(code, stderr + stdout).toBe(0);
  const lines = linesIn(stdout);
  const [plan, folder] = [await file("plan.jsonl", stdout), await tempDir()];
  /** Reads a shard into the folder, unless the words say otherwise. */
  const read = (
    shard: number | "open",
    words?: readonly string[],
    options: RunOptions = {},
  ): Promise<Ended> => {
    const args = ["read", "--config", config, "--plan", plan, "--shard", `${shard}`];
    return run(CONNECTOR, [...args, ...(words ?? ["--output", folder])], options);
  };
  /** Reads a shard, and ends that with SIGKILL once something is so. */
  const killed = async (shard: number, words: readonly string[] | undefined, isSo: () => boolean) => {
    const children: ChildProcess[] = [];
    const ended = read(shard, words, { started: (child) => void children.push(child) });
    await until(isSo);
    for (const child of children) child.kill("SIGKILL");
    expect((await ended).signal).toBe("SIGKILL");
  };
  /** Everyone in the files that a reader sees, and the newest row of each. */
  const people = (): Map<string, Row> => {
    const seen = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) =>
      /^(?!\.|.*[\\/]\.).*\.jsonl$/.test(path),
    );
    const rows = seen.flatMap((path) => {
      const texts = readFileSync(join(folder, path), "utf8").trimEnd().split("\n");
      return texts.map((line): Row => JSON.parse(line));
    });
    const inTime = rows.sort((a, b) => ((a.discoveredAt ?? "") < (b.discoveredAt ?? "") ? -1 : 1));
    return new Map(inTime.map((row) => [row.id, row]));
  };
  const nameOf = (shard: number): string => shardFolder(lines[shard] as ShardLine);
  return { sandbox, config, plan, folder, text: stdout, lines, makePlan, read, killed, people, nameOf };
}

const served = (sandbox: Sandbox): Map<string, Row> =>
  new Map(sandbox.people().map((person) => [person.id, person as unknown as Row]));

const daysOf = (line: ShardLine | undefined): DayRange => [line?.from as Day, line?.to as Day];

/** The keys of those who were checked on some days. */
const checkedOn = (sandbox: Sandbox, ranges: readonly DayRange[]): readonly string[] =>
  [...served(sandbox).values()]
    .filter(({ discoveredAt }) =>
      ranges.some(([from, to]) => `${discoveredAt}` >= from && `${discoveredAt}`.slice(0, 10) <= to),
    )
    .map(({ id }) => id);

/** The keys of the records among what a run wrote to stdout. */
const keysIn = (stdout: string): readonly string[] =>
  stdout
    .split("\n")
    .filter((line) => line.includes('"RECORD"'))
    .map((line) => JSON.parse(line).record.data.id);

/** The state of people in a text of bookmarks. */
const bookmarkIn = (text: string): DatedState => JSON.parse(text).bookmarks.people;

const shardsIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => !name.startsWith("."));

const exportsOf = (sandbox: Sandbox): number =>
  sandbox.requests.filter(({ path }) => path.includes("/people/stream")).length;

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(2);
}

/** People move once another export has begun. */
async function moving(sandbox: Sandbox): Promise<void> {
  const begun = exportsOf(sandbox);
  await until(() => exportsOf(sandbox) > begun);
  move(sandbox);
}

function move(sandbox: Sandbox): void {
  sandbox.recheck(8);
  sandbox.arrive(2);
  sandbox.arrive(1, { undated: true });
}

describe("a first load in shards", () => {
  it("gives the union of one run, the open shard first, with people moving, and continues from it", async () => {
    const { sandbox, config, folder, lines, people, read } = await loadOf(ACCOUNT);
    const ends = lines.map(({ version, shard, to }) => [version, shard, to === null]);
    expect(ends).toEqual([0, 1, 2, 3].map((shard) => [2, shard, shard === 3]));
    for (const shard of ["open", 2, 0, 1] as const) {
      const [{ code, stderr }] = await Promise.all([read(shard), moving(sandbox)]);
      expect(code, stderr).toBe(0);
    }
    const folders = shardsIn(folder).map((name) => join(folder, name));
    const merged = await run(CONNECTOR, ["state", "merge", ...folders]);
    expect(merged.code, merged.stderr).toBe(0);
    const state = bookmarkIn(merged.stdout);
    const undated = { rows: expect.any(Number) };
    expect(state).toMatchObject({ version: 2, plan: lines[0]?.plan, undated, full_refresh: null });
    expect(uncovered(state.days, [BEGINNING, lines[2]?.to as Day])).toEqual([]);
    expect(withStatus(state.days, "missing")).toEqual([]);

    sandbox.recheck(25);
    sandbox.arrive(6);
    const before = exportsOf(sandbox);
    const seed = ["--state", await file("state.json", merged.stdout)];
    const daily = ["read", "--config", config, "--stream", "people", ...seed, "--output", folder];
    expect((await run(CONNECTOR, daily)).code).toBe(0);
    expect(people()).toEqual(served(sandbox));
    expect(exportsOf(sandbox) - before).toBeLessThan(before);
  });

  it("goes on in its folder where it was killed, and lets no other run into it", async () => {
    const { sandbox, folder, lines, killed, people, read, nameOf } = await loadOf({
      ...ACCOUNT,
      bytesPerSecond: 300_000,
    });
    await killed(1, undefined, () => exportsOf(sandbox) > 1);
    expect(shardsIn(folder)).toEqual([nameOf(1)]);
    move(sandbox);
    const [first, second] = await Promise.all([read(1), moving(sandbox).then(() => read(1))]);
    expect([first.code, second.code]).toEqual([0, 1]);
    expect(second.stderr).toContain("another run");
    expect(shardsIn(folder)).toEqual([nameOf(1)]);
    const held = people();
    expect(checkedOn(sandbox, [daysOf(lines[1])]).filter((id) => !held.has(id))).toEqual([]);
  });

  it("brings the rest of a shard from the state file of a killed run, which does not hold all its days", async () => {
    const account = { ...ACCOUNT, bytesPerSecond: 300_000 };
    const { sandbox, lines, killed, read } = await loadOf(account, { num_workers: 1 });
    const state = join(await tempDir(), "state.json");
    await killed(1, ["--state-file", state], () => existsSync(state));
    const left = () => uncovered(bookmarkIn(readFileSync(state, "utf8")).days, daysOf(lines[1]));
    const rest = left();
    expect(rest).not.toEqual([]);
    const again = await read(1, ["--state-file", state]);
    expect([again.code, left()]).toEqual([0, []]);
    const came = new Set(keysIn(again.stdout));
    expect(checkedOn(sandbox, rest).filter((id) => !came.has(id))).toEqual([]);
  });

  it("makes the folders above its own", async () => {
    const { read, folder, nameOf } = await loadOf({ people: 3_000, days: 30, undated: 0 });
    const [output, other] = [join(folder, "not", "there"), join(folder, "dry")];
    expect((await read(0, ["--output", output])).code).toBe(0);
    expect(readdirSync(output)).toContain(nameOf(0));
    await read(0, ["--output", other, "--dry-run"]);
    expect(readdirSync(folder)).toEqual(["not"]);
  });

  it("says which folder it cannot make, and why", async () => {
    const { read } = await loadOf(ACCOUNT);
    const taken = await file("taken", {});
    for (const output of [taken, join(taken, "below")]) {
      const { code, stderr } = await read(0, ["--output", output]);
      expect(code, stderr).toBe(2);
      expect(stderr).toMatch(/Cannot make the folder \\"[^"]*taken[^"]*\\": a part of its path is no folder/);
      expect(stderr).not.toContain("bug");
    }
  });

  it("takes a turn of the key for each request where shards share a folder, and none where they divide it", async () => {
    const { sandbox, folder, read } = await loadOf(ACCOUNT);
    const planned = sandbox.requests.length;
    await Promise.all([read(0), read(1)]);
    const turns = () => {
      const [shared = ""] = readdirSync(folder).filter((name) => /^\.requests-[0-9a-f]{16}-6000$/.test(name));
      return readdirSync(join(folder, shared)).length;
    };
    const asked = sandbox.requests.length - planned;
    expect(turns()).toBe(asked);
    expect((await read(2, ["--output", folder, "--shards-at-once", "2"])).code).toBe(0);
    expect(turns()).toBe(asked);
  });

  it("asks nothing for a shard whose days the state holds, and for an index without a line", async () => {
    const { sandbox, folder, lines, read, nameOf } = await loadOf(ACCOUNT);
    const state = ["--state-file", join(await tempDir(), "state.json")];
    expect((await read(0)).stderr).toMatch(/Run complete: [\d,]+ rows of 1 stream, [1-9]\d* requests/);
    expect((await read(0, state)).code).toBe(0);
    const before = sandbox.requests.length;
    expect([(await read(0)).code, (await read(0, state)).code]).toEqual([0, 0]);
    const absent = await read(4);
    expect(absent.code).toBe(0);
    expect(absent.stderr).toContain("has no shard 4: there is nothing to read");
    expect(sandbox.requests).toHaveLength(before);
    expect(shardsIn(folder)).toEqual([nameOf(0)]);
    const other = await read(1, state);
    expect(keysIn(other.stdout), "from the state of another shard").toHaveLength(lines[1]?.rows ?? 0);
  });
});

describe("plan", () => {
  it("has no open line where the dates end before yesterday", async () => {
    const end = dayOf(Date.now() - 30 * 86_400_000);
    const { lines, read } = await loadOf(ACCOUNT, { end_date: end });
    expect(lines.at(-1)?.to).toBe(end);
    expect(await read("open")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("there is nothing to read"),
    });
  });

  it("cuts companies where they are dated, and refuses to elsewhere", async () => {
    const words = ["--stream", "companies"];
    const { lines } = await loadOf({ ...ACCOUNT, companies: 400 }, {}, words);
    expect(new Set(lines.map(({ stream }) => stream))).toEqual(new Set(["companies"]));
    expect(lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(400);
    const { config } = await sandboxWith({ ...ACCOUNT, companiesDated: false });
    const { code, stderr } = await run(CONNECTOR, ["plan", "--config", config, ...words]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('Cannot plan \\"companies\\": only streams whose records have a date');
  });

  it("goes on from the lines of one that was cut off, whose shards can be read before", async () => {
    const { plan, text, makePlan, read } = await loadOf(ACCOUNT);
    const resumed = async (known: string): Promise<string> => {
      writeFileSync(plan, known);
      return (await makePlan(["--resume", plan])).stdout;
    };
    const two = text
      .split(/(?<=\n)/)
      .slice(0, 2)
      .join("");
    expect(await resumed(text)).toBe(text);
    expect((await resumed(`${two}{"version":2,"pl`)).startsWith(two)).toBe(true);
    const lines = linesIn(await resumed(two));
    expect(lines.map((line) => [line.plan, line.shard])).toEqual(
      [0, 1, 2, 3].map((shard) => [linesIn(text)[0]?.plan, shard]),
    );
    expect(lines.reduce((sum, { rows }) => sum + rows, 0)).toBe(6_000);
    writeFileSync(plan, `${two}{"version":2,"pl`);
    expect((await read(0)).code).toBe(0);
    for (const shard of [2, 3, "open"] as const) {
      const { code, stderr } = await read(shard);
      expect(code).toBe(2);
      expect(stderr).toContain(`it was cut off before shard ${shard}. Finish it with: plan --resume`);
    }
  });
});

describe("read --plan --shard refuses", () => {
  it("what a shard cannot obey, by name, before it asks for rows", async () => {
    const { sandbox, read } = await loadOf(ACCOUNT);
    const asked = exportsOf(sandbox);
    const full = await catalogFor({ people: { sync_mode: "full_refresh" } });
    const strange = await file("state.json", { bookmarks: { people: { ...NEW_STATE, plan: "another" } } });
    const cases: readonly (readonly [why: string, settings: object, ...words: string[]])[] = [
      ["the config differs from the one that made it", { source_slug: "acme-crm" }],
      ["max_run_seconds", { max_run_seconds: 60 }],
      ['its sync_mode must be \\"incremental\\"', {}, "--catalog", full],
      ["Cannot share 6000 requests a minute among 6001 shards", {}, "--shards-at-once", "6001"],
      ["the state is of another plan", {}, "--state", strange],
    ];
    for (const [why, settings, ...words] of cases) {
      const { code, stdout } = await read(0, ["--config", await configFor(sandbox, settings), ...words]);
      expect(code, why).not.toBe(0);
      expect(stdout).toContain(why);
    }
    const { code, stdout, stderr } = await read(0, ["--shard", "first"]);
    expect(code).toBe(2);
    expect(stderr + stdout).toContain("--shard must be");
    expect(exportsOf(sandbox)).toBe(asked);
  });
});

describe("state merge", () => {
  const MOMENTS = { discoveredAt: "2026-02-03T00:00:00Z", asked: "2026-02-09T00:00:00Z" };
  const stateOf = (...spans: (readonly [from: string, to: string])[]): object => ({
    ...{ ...NEW_STATE, ...MOMENTS, plan: "0a" },
    days: spans.map(([from, to]) => [from, to, 1]),
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
  const [january, february, late] = [
    ["2026-01-01", "2026-01-31"] as const,
    ["2026-02-01", "2026-02-03"] as const,
    ["2026-02-02", "2026-02-03"] as const,
  ];

  it.each([airbyte, singer])("speaks the language of the first state: %o", async (wrap) => {
    const { stdout } = await merge([wrap(stateOf(january)), singer(stateOf(february))]);
    expect(JSON.parse(stdout)).toEqual(wrap(stateOf(january, february)));
  });

  it("names days that no state holds, and leaves them to the next run with --partial", async () => {
    const parts = [singer(stateOf(january)), singer(stateOf(late))];
    const { code, stderr } = await merge(parts);
    expect(code).toBe(1);
    expect(stderr).toContain("none of them holds 2026-02-01. Read the shards of these days to their end");
    expect(bookmarkIn((await merge(parts, ["--partial"])).stdout).days).toHaveLength(2);
  });

  it("takes the states of shards that the version before has finished", async () => {
    const old = ([from, to]: readonly [string, string]): object => ({
      ...{
        version: 1,
        discoveredAt: `${to}T23:59:59.999Z`,
        missing_days: [],
        filters: null,
        from,
        gap: null,
      },
      ...{ undated: "pending", undated_checked: null, undated_rows: 0, recheck: [], full_refresh: null },
      shard: { plan: "0a", index: 0, done: true, asked: MOMENTS.asked, ended: null },
    });
    const states = [january, february].map((days) => ({ bookmarks: { people: old(days) } }));
    const { stdout, stderr } = await merge(states);
    expect(stderr).toBe("");
    const { days, plan } = bookmarkIn(stdout);
    expect([uncovered(days, ["2026-01-01" as Day, "2026-02-03" as Day]), plan]).toEqual([[], "0a"]);
  });

  it("refuses a folder of which rows were lost, and names the file", async () => {
    const { folder, lines, read, nameOf } = await loadOf(ACCOUNT);
    for (const shard of lines.keys()) expect((await read(shard)).code).toBe(0);
    const folders = [...lines.keys()].map((shard) => join(folder, nameOf(shard)));
    const merged = async () => await run(CONNECTOR, ["state", "merge", ...folders]);
    expect((await merged()).code).toBe(0);
    const [first = ""] = folders;
    const rows = join("people", readdirSync(join(first, "people"))[0] ?? "");
    const whole = readFileSync(join(first, rows));
    const swapped = Buffer.from(whole).fill("x", 20, 21);
    for (const [path, damage, why] of [
      [rows, undefined, `${rows} is not there`],
      [
        rows,
        whole.subarray(0, whole.length >> 1),
        `has ${whole.length >> 1} bytes instead of ${whole.length}`,
      ],
      [rows, swapped, `${rows} has other content than the run wrote`],
      ["manifest.json", undefined, "manifest.json names 0 of 1 file that the state knows"],
      ["manifest.json", Buffer.from("{}"), "is not one that this program wrote"],
    ] as const) {
      const kept = readFileSync(join(first, path));
      if (damage === undefined) rmSync(join(first, path));
      else writeFileSync(join(first, path), damage);
      const { code, stderr, stdout } = await merged();
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(why);
      writeFileSync(join(first, path), kept);
    }
    rmSync(join(first, rows));
    const states = folders.map((one) => join(one, "state.json"));
    expect((await run(CONNECTOR, ["state", "merge", ...states])).code, "states alone").toBe(0);
  });

  it("refuses states of different streams, and one without a dated stream", async () => {
    const one = stateOf(january);
    const both = await merge([singer(one, { companies: one }), singer(one)]);
    expect(both.stderr).toMatch(/"companies" is in ".*", and not in every state/);
    expect((await merge([{ bookmarks: {} }])).stderr).toContain("it holds no state of a stream with dates");
  });
});
