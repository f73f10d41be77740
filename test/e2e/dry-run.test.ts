import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { runProgram } from "../../src/main.ts";
import { addDays, type Day } from "../../src/time.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { atTerminal } from "../support/pty.ts";
import { tempDir, textsIn } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const QUICK = { people: 300, undated: 3, companies: 4, sources: 2, requestsPerMinute: 0 };

const exportsOf = ({ requests }: { requests: readonly { path: string; query?: unknown }[] }): number =>
  requests.filter(({ path }) => path.endsWith("/stream")).length;

describe("read --dry-run", () => {
  it("says what would be read, before a first run and after one, and leaves no trace", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const folder = await tempDir();
    const out = join(folder, "out");
    const words = ["read", "--config", config, "--output", out];
    const dry = async () => JSON.parse((await run(CONNECTOR, [...words, "--dry-run"])).stdout);
    const first = await dry();
    expect(first.streams).toMatchObject([
      { stream: "people", days: ["all rows up to now"], rows: sandbox.people().length },
      { stream: "companies", rows: 4 },
      { stream: "sources", rows: 2 },
    ]);
    const [, companies] = first.streams;
    const alone = await run(CONNECTOR, [...words, "--dry-run", "--stream", "companies"]);
    expect(JSON.parse(alone.stdout).streams).toEqual([companies]);
    expect([exportsOf(sandbox), readdirSync(folder)]).toEqual([0, []]);

    expect((await run(CONNECTOR, words)).code).toBe(0);
    const [before, exported] = [await textsIn(out), exportsOf(sandbox)];
    sandbox.arrive(2);
    const [people] = (await dry()).streams;
    expect(people.days).toEqual([expect.stringMatching(/^\d{4}-\d\d-\d\d up to now$/)]);
    expect([people.rows >= 2, people.rows < 20]).toEqual([true, true]);
    expect([await textsIn(out), exportsOf(sandbox)]).toEqual([before, exported]);
    const full = await run(CONNECTOR, [...words, "--dry-run", "--full-refresh"]);
    expect(JSON.parse(full.stdout).streams[0].rows).toBe(sandbox.people().length);
  });

  it("counts holes, and says as many requests as the run then takes", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 3000 }, { max_window_rows: 1000 });
    const words = ["read", "--config", config, "--stream", "people"];
    const [people] = JSON.parse((await run(CONNECTOR, [...words, "--dry-run"])).stdout).streams;
    const before = sandbox.requests.length;
    await run(CONNECTOR, words);
    const taken = sandbox.requests.length - before;
    expect(people.requests).toBeGreaterThan(taken / 3);
    expect(people.requests).toBeLessThan(taken * 3);
    const days = [["1970-01-01", "2019-12-31", null]];
    const discoveredAt = sandbox.people()[0]?.discoveredAt;
    const state = join(await tempDir(), "state.json");
    writeFileSync(state, JSON.stringify({ bookmarks: { people: { version: 2, discoveredAt, days } } }));
    const again = await run(CONNECTOR, [...words, "--dry-run", "--state-file", state]);
    expect(JSON.parse(again.stdout).streams[0].days[0]).toMatch(/^2020-01-01 to /);
    expect(readdirSync(join(state, ".."))).toEqual(["state.json"]);
  });

  it.each([
    [1, 60_000, 1_000],
    [4, 60_000, 1_000],
    [8, 60, 6],
  ])(
    "says the minutes of %i workers, as docs/standalone.md counts them",
    async (workers, people, perMinute) => {
      const settings = { num_workers: workers, requests_per_minute: perMinute };
      const { config } = await sandboxWith({ ...QUICK, people, undated: 0 }, settings);
      const words = ["read", "--config", config, "--stream", "people", "--dry-run"];
      const [said] = JSON.parse((await run(CONNECTOR, words)).stdout).streams;
      const minutes = Math.max(said.requests / perMinute, people / (2_500 * workers) / 60);
      expect(said.minutes).toBeCloseTo(minutes, 6);
    },
  );

  it("buys nothing, and shows a table at a terminal", async () => {
    const company_lookup = { domains: ["a.example", "b.example"] };
    const sandbox = await startSandbox(QUICK);
    onTestFinished(() => sandbox.close());
    const external_api = { api_url: sandbox.url, api_key: sandbox.key };
    const config = await configFor(sandbox, { company_lookup, external_api });
    const { code, shown } = await atTerminal([CONNECTOR, "read", "--config", config, "--dry-run"]);
    expect(shown).toMatch(/^people +303 +\d+ +<1 +all rows up to now$/m);
    expect(shown).toContain("company_lookup: the next run would submit 2 of 2 waiting items");
    expect(shown).toContain("Nothing was read, written or bought");
    expect(code).toBe(0);
    expect(sandbox.requests.filter(({ path }) => path.includes("/people/stream"))).toEqual([]);
  });
});

it("says what would be bought only of streams of jobs that are asked for", async () => {
  const { config } = await sandboxWith(QUICK, { email_check: { emails: ["a@x.example"] } });
  const words = ["read", "--config", config, "--dry-run", "--stream"];
  const jobsOf = async (stream: string): Promise<unknown> =>
    JSON.parse((await run(CONNECTOR, [...words, stream])).stdout).jobs;
  expect(await jobsOf("people")).toEqual([]);
  expect(await jobsOf("email_checks")).toMatchObject([{ setting: "email_check", would_submit: 1 }]);
});

it("shows a terminal five ranges of a stream at most, and how many there are besides", async () => {
  const { sandbox, config } = await sandboxWith(QUICK);
  const days = sandbox.people().flatMap(({ discoveredAt }) => discoveredAt?.slice(0, 10) ?? []);
  const held = [...new Set(days)].sort() as Day[];
  const holes = held.slice(0, 14).filter((_day, nth) => nth % 2 === 1);
  const ends = [...holes.map((hole) => addDays(hole, -1)), held.at(-1)];
  const spans = ends.map((end, nth) => [addDays(holes[nth - 1] ?? ("1969-12-31" as Day), 1), end, null]);
  const state = join(await tempDir(), "state.json");
  const discoveredAt = `${held.at(-1)}T00:00:00Z`;
  const people = { version: 2, discoveredAt, days: spans };
  writeFileSync(state, JSON.stringify({ bookmarks: { people } }));
  const words = ["read", "--config", config, "--stream", "people", "--state-file", state, "--dry-run"];
  const told = JSON.parse((await run(CONNECTOR, words)).stdout).streams[0];
  expect(told.days.slice(0, 7)).toEqual(holes);
  const stdout = new Terminal();
  const parse = async () => (await import("../../src/cli.ts")).parseCommand;
  expect(await runProgram(parse, words, testProcess({ stdout }))).toBe(0);
  const [heads, head, ...rest] = stdout.text.split("\n");
  expect(heads).toMatch(/^stream +rows +requests +minutes +days$/);
  expect(head).toMatch(new RegExp(`^people +${told.rows} +${told.requests} +<1 +${told.days[0]}$`));
  expect(rest.map((line) => line.trim())).toEqual([
    ...[...told.days.slice(1, 5), `and ${told.days.length - 5} other ranges`],
    ...["About <1 min in all", "Nothing was read, written or bought", ""],
  ]);
});

describe("read --limit", () => {
  it("is a sample in every language, and touches no state", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const folder = await tempDir();
    const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
    const words = ["read", "--config", config, "--limit", "5"];
    const airbyte = await run(CONNECTOR, [...words, "--summary", summary]);
    const of = (type: string) => linesOf(airbyte.stdout).filter((line) => line.includes(`"type":"${type}"`));
    expect([airbyte.code, of("RECORD").length, of("STATE")]).toEqual([0, 5 + 4 + 2, []]);
    expect(JSON.parse(readFileSync(summary, "utf8"))).toMatchObject({ sample: 5, rows: 11, saved_to: null });

    const jsonl = [...words, "--format", "jsonl", "--stream", "people", "--state-file", state];
    const bare = await run(CONNECTOR, jsonl);
    expect([linesOf(bare.stdout).length, existsSync(state)]).toEqual([5, false]);
    expect(bare.stderr).toContain("a sample of at most 5 rows a stream");

    await run(CONNECTOR, [...jsonl.filter((word) => word !== "--limit" && word !== "5")]);
    const before = await textsIn(folder);
    sandbox.arrive(8);
    const next = await run(CONNECTOR, jsonl);
    expect([linesOf(next.stdout).length, await textsIn(folder)]).toEqual([5, before]);
  });

  it("marks its folder, which no run mixes with others", async () => {
    const { config } = await sandboxWith(QUICK);
    const folder = await tempDir();
    const words = ["read", "--config", config, "--output"];
    const [sample, rows] = [join(folder, "sample"), join(folder, "rows")];
    expect((await run(CONNECTOR, [...words, sample, "--limit", "5"])).code).toBe(0);
    expect(readdirSync(sample).sort()).toEqual(["companies", "manifest.json", "people", "sources"]);
    const manifest = JSON.parse(readFileSync(join(sample, "manifest.json"), "utf8"));
    expect(manifest).toMatchObject({ sample: 5, files: [{ rows: 5 }, { rows: 4 }, { rows: 2 }] });
    for (const { file } of manifest.files) expect(existsSync(join(sample, file))).toBe(true);
    expect((await run(CONNECTOR, [...words, rows])).code).toBe(0);
    const before = await textsIn(rows);
    for (const [dir, ...more] of [[sample], [sample, "--limit", "5"], [rows, "--limit", "5"]]) {
      const refused = await run(CONNECTOR, [...words, dir ?? "", ...more]);
      expect([dir, more, refused.code]).toEqual([dir, more, 2]);
      expect(refused.stderr).toMatch(/holds a sample|is of an earlier run/);
    }
    expect(await textsIn(rows)).toEqual(before);
  });

  it("buys nothing", async () => {
    const words = ["read", "--limit", "5", "--stream", "company_lookups", "--state-file", "x"];
    expect(await run(CONNECTOR, words)).toMatchObject({ code: 2 });
  });
});
