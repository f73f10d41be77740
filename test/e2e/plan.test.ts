import { readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { runProgram } from "../../src/main.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const ACCOUNT = {
  ...{ people: 40, undated: 2, companies: 4, sources: 2, seed: 7, days: 60, requestsPerMinute: 0 },
  now: "2026-03-20T12:00:00Z",
} satisfies SandboxOptions;

const linesOf = (text: string): readonly Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

async function shownAt(words: readonly string[]): Promise<readonly string[]> {
  const stdout = new Terminal();
  const parse = async () => (await import("../../src/cli.ts")).parseCommand;
  expect(await runProgram(parse, words, testProcess({ stdout }))).toBe(0);
  return stdout.text.split("\n");
}

describe("plan", () => {
  it("prints a line for each shard, which join without a hole and hold every row with a date", async () => {
    const { config } = await sandboxWith(ACCOUNT);
    const words = ["plan", "--config", config, "--shards", "2"];
    const ended = await run(CONNECTOR, words);
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const plan = expect.any(String);
    const cuts = { version: 2, plan, stream: "people", rows: 20 };
    const [first, second, ...more] = linesOf(ended.stdout);
    expect([first, second, more]).toEqual([
      { ...cuts, shard: 0, from: null, to: "2026-02-18" },
      { ...cuts, shard: 1, from: "2026-02-19", to: null },
      [],
    ]);
    expect(await shownAt(words)).toEqual([
      "shard       from        to          rows",
      "0           start       2026-02-18  20",
      "1           2026-02-19  open        20",
      "40 rows with a date. To keep the plan, add: > plan.jsonl",
      "",
    ]);
    const printed = await shownAt([...words, "--json"]);
    expect(printed.slice(0, -1).map((line) => JSON.parse(line))).toEqual([
      { ...first, plan },
      { ...second, plan },
    ]);
  });

  it("is one shard for a small account, and counts one row as one", async () => {
    const { config } = await sandboxWith({ ...ACCOUNT, people: 1, undated: 0 });
    const [, row, all] = await shownAt(["plan", "--config", config]);
    expect(row).toMatch(/^0 {11}start {7}open {8}1$/);
    expect(all).toBe("1 row with a date. To keep the plan, add: > plan.jsonl");
  });

  it("goes on where a plan was cut off, with the same plan, and asks nothing for a complete one", async () => {
    const { sandbox, config } = await sandboxWith(ACCOUNT);
    const words = ["plan", "--config", config, "--shards", "4"];
    const { stdout } = await run(CONNECTOR, words);
    const lines = stdout.split("\n");
    expect(lines).toHaveLength(5);
    for (const kept of [1, 3]) {
      const path = join(await tempDir(), "plan.jsonl");
      await writeFile(path, `${lines.slice(0, kept).join("\n")}\n${lines[kept]?.slice(0, 9)}`);
      const resumed = await run(CONNECTOR, [...words, "--resume", path]);
      expect([kept, resumed.code, resumed.stdout]).toEqual([kept, 0, stdout]);
    }
    const whole = await file("plan.jsonl", stdout);
    const before = sandbox.requests.length;
    expect(await run(CONNECTOR, [...words, "--resume", whole])).toMatchObject({ code: 0, stdout });
    expect(sandbox.requests.length).toBe(before);
  });

  it.each(["sources", "company_lookups", "nobody"])(
    "refuses %s, whose records have no date",
    async (stream) => {
      const { config } = await sandboxWith(ACCOUNT);
      const { code, stdout, stderr } = await run(CONNECTOR, ["plan", "--config", config, "--stream", stream]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain(
        `Cannot plan \\"${stream}\\": only streams whose records have a date can be cut into shards, such as \\"people\\"`,
      );
    },
  );
});

it("plan sends its requests one by one at the pace of the config, with none in a burst", async () => {
  const { sandbox, config } = await sandboxWith(ACCOUNT, { requests_per_minute: 60 });
  let [now, slept] = [Date.parse(ACCOUNT.now), 0];
  const sleep = async (ms: number): Promise<void> => {
    slept += ms;
    now += ms;
  };
  const clock = { now: () => now, monotonic: () => now, sleep };
  expect(await run(CONNECTOR, ["plan", "--config", config, "--shards", "3"], { clock })).toMatchObject({
    code: 0,
  });
  expect(sandbox.requests.length).toBeGreaterThan(2);
  // A minute is taken for 61 seconds.
  expect(Math.round(slept / 100)).toBe(Math.round((sandbox.requests.length - 1) * (61_000 / 60 / 100)));
});

describe("read --plan", () => {
  it("shares the key's requests in the folder of all shards, unless their number is given or nothing is read", async () => {
    const { config } = await sandboxWith(ACCOUNT);
    const { stdout } = await run(CONNECTOR, ["plan", "--config", config, "--shards", "2"]);
    const plan = await file("plan.jsonl", stdout);
    const shared: [words: string, isShared: boolean][] = [
      ["", true],
      ["--shards-at-once 2", false],
      ["--dry-run", false],
    ];
    for (const [words, isShared] of shared) {
      const rows = await tempDir();
      const all = ["read", "--config", config, "--plan", plan, "--shard", "0", "--output", rows];
      const ended = await run(CONNECTOR, [...all, ...words.split(" ").filter((word) => word !== "")]);
      const names = readdirSync(rows).map((name) => name.replace(/-.*/, ""));
      expect([words, ended.code, names.sort()]).toEqual([
        ...[words, 0, [...(isShared ? [".requests"] : []), ...(words === "--dry-run" ? [] : ["shard"])]],
      ]);
    }
  });

  it("reads each shard once, into a folder of its own, and says what there is not to read", async () => {
    const { sandbox, config } = await sandboxWith(ACCOUNT);
    const plan = join(await tempDir(), "plan.jsonl");
    const { stdout } = await run(CONNECTOR, ["plan", "--config", config, "--shards", "2"]);
    await writeFile(plan, stdout);
    const rows = join(await tempDir(), "rows");
    const read = (shard: string, ...more: readonly string[]) =>
      run(CONNECTOR, [
        "read",
        "--config",
        config,
        "--plan",
        plan,
        "--shard",
        shard,
        "--output",
        rows,
        ...more,
      ]);
    const dry = await read("0", "--dry-run");
    expect(JSON.parse(dry.stdout).streams).toMatchObject([{ stream: "people", rows: 20 }]);
    for (const [shard, count] of [
      ["0", 20],
      ["open", 22],
    ] as const) {
      const ended = await read(shard);
      expect([shard, ended.code, ended.stderr]).toEqual([
        shard,
        0,
        expect.stringContaining(`Run complete: ${count} rows of 1 stream`),
      ]);
    }
    const before = sandbox.requests.length;
    expect((await read("0")).stderr).toContain('Shard 0 of \\"people\\" is complete already');
    expect((await read("2")).stderr).toContain(
      'The plan of \\"people\\" has no shard 2: there is nothing to read',
    );
    expect(sandbox.requests.length).toBe(before);
    await writeFile(plan, `${(await readFile(plan, "utf8")).split("\n")[0]}\n`);
    for (const shard of ["1", "open"]) {
      const cut = await read(shard);
      expect(cut.code).toBe(2);
      expect(cut.stderr).toContain(
        `it was cut off before shard ${shard}. Finish it with: plan --resume ${plan}`,
      );
    }
  });
});
