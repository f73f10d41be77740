import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { environmentOf, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL: SandboxOptions = { people: 40, companies: 3, sources: 2, requestsPerMinute: 0 };

const read = (sandbox: Sandbox, ...words: readonly string[]) =>
  run(CONNECTOR, ["read", ...words], { env: environmentOf(sandbox), clock: hurriedClock() });

const showState = async (state: unknown, ...words: readonly string[]) =>
  await run(CONNECTOR, ["state", "show", ...words, await file("state.json", state)]);

describe("read with a saved state", () => {
  it("brings only who is new, and asks for no older day", async () => {
    const { sandbox } = await sandboxWith({ ...SMALL, undated: 0, days: 30 });
    const to = ["--stream", "people", "--format", "jsonl", "--state-file", join(await tempDir(), "s.json")];
    expect((await read(sandbox, ...to)).stdout.trimEnd().split("\n")).toHaveLength(40);
    sandbox.advance(86_400_000);
    sandbox.arrive(2);
    const asked = sandbox.requests.length;
    const { code, stdout } = await read(sandbox, ...to);
    const { length } = stdout.trimEnd().split("\n");
    expect([code, length >= 2 && length < 10]).toEqual([0, true]);
    const exports = sandbox.requests.slice(asked).filter(({ path }) => path.endsWith("/people/stream"));
    expect(exports.every(({ query }) => query["discovered_from"] !== undefined)).toBe(true);
  });

  it.each([
    ["what is no state", { a: 1 }],
    ["a state of a newer version", { bookmarks: { people: { version: 99 } } }],
    ["a cursor that is no date", { bookmarks: { people: { version: 1, discoveredAt: "soon" } } }],
  ])("refuses %s, and asks for no row", async (_what, state) => {
    const { sandbox } = await sandboxWith(SMALL);
    const given = await file("state.json", state);
    const { code, stdout } = await read(sandbox, "--stream", "people", "--state", given);
    expect([code === 0, stdout.includes('"RECORD"')]).toEqual([false, false]);
    expect(stdout).toContain('"failure_type":"config_error"');
    expect(sandbox.requests.filter(({ path }) => path.includes("/people"))).toEqual([]);
  });

  it("reads everything again where the state was made under other filters", async () => {
    const { sandbox } = await sandboxWith({ ...SMALL, now: "2026-01-07T00:00:00Z" });
    const given = await file("state.json", { bookmarks: { people: ofFilters("true") } });
    const words = ["--stream", "people", "--format", "jsonl", "--state", given];
    const { code, stdout } = await read(sandbox, ...words);
    const came = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).id);
    expect([code, came.sort()]).toEqual([
      0,
      sandbox
        .people()
        .map(({ id }) => id)
        .sort(),
    ]);
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
      expect(stdout).toContain("was made with another base_url");
      expect(stdout).toMatch(/Reset the stream.*remove \\"service\\" from the state/);
      expect([stdout.includes('"RECORD"'), production.requests]).toEqual([false, []]);
      expect(await readFile(path, "utf8")).toBe(before);
      await writeFile(path, before.replace(/"service":"[0-9a-f]{16}"/g, '"service":null'));
      expect((await read(production, "--stream", "people", "--state-file", path)).code).toBe(0);
    },
  );

  it("lets the rows of two services into no common folder", async () => {
    const folder = await tempDir();
    const { sandbox: staging } = await sandboxWith(SMALL);
    const { sandbox: production } = await sandboxWith(SMALL);
    expect((await read(staging, "--output", folder)).code).toBe(0);
    expect((await read(production, "--output", folder)).code).toBe(2);
    expect(production.requests).toEqual([]);
  });

  it.each([
    ["refuses the state of another organization before the first record, and names the way out", 99, 1],
    ["goes on with a new key of the same organization", undefined, 0],
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
    expect(later.stdout).toMatch(/shows none of the newest rows.*remove \\"witness\\" from the state/);
    expect(later.stdout).not.toContain('"RECORD"');
  });
});

function ofFilters(is_user: string): object {
  const days = [["0001-01-01", "2026-01-05", 5]];
  const filters = { source_slug: null, is_user };
  return { version: 2, discoveredAt: "2026-01-05T01:00:00.000Z", days, undated: null, filters };
}

describe("state show", () => {
  it("counts jobs by step from stdin, and says what is read from the start", async () => {
    const job = { item: "A".repeat(16), step: "submitted", at: "2026-03-01T00:00:00.000Z", job_id: "j1" };
    const jobs = [job, { ...job, item: "B".repeat(16), step: "done" }];
    const state = {
      company_lookups: { version: 1, created_at: null, jobs },
      sources: { version: 1, full_refresh: null },
    };
    const { stdout } = await run(CONNECTOR, ["state", "show", "-"], { input: JSON.stringify(state) });
    expect(stdout).toContain("items: 1 open, 1 finished\n");
    expect(stdout).toMatch(/^sources\n.*\n {2}is read from the start in every run$/m);
  });

  it("says under what a stream was read, and what this program does not know", async () => {
    const full_refresh = { generation_id: 1, sync_id: 2, done: false };
    const people = { ...ofFilters("true"), full_refresh, plan: "abc" };
    const { stdout } = await showState({ people, elsewhere: { version: 9 } });
    const said = [
      "days that are covered: the beginning to 2026-01-05",
      "no missing days",
      "rows without a date: not read yet",
      "is_user true",
      "full refresh: not complete",
      "part of the plan abc",
      "this program has no such stream",
    ];
    for (const words of said) expect(stdout).toContain(words);
    expect((await showState({ bookmarks: {} })).stdout).toBe(
      "The state is empty: the next run reads everything.\n",
    );
  });

  it("exits with 1 for streams that are older than --max-age: up to the first day that no window covers", async () => {
    const [first, last] = [
      ["2026-01-01", "2026-01-05", 1],
      ["2026-01-11", "2026-02-27", 1],
    ];
    const of = (...days: unknown[]) => ({ version: 2, discoveredAt: "2026-03-01T00:00:00.000Z", days });
    const state = {
      people: { version: 2, discoveredAt: null, days: [] },
      "a/people": of(first, ["2026-01-06", "2026-01-10", null, "missing"], last),
      "b/people": of(first, last),
      "c/people": of(["2026-01-01", "2026-02-26", 3]),
    };
    const { code, stderr } = await showState({ bookmarks: state }, "--max-age", "1m");
    expect([code, stderr.trimEnd().split("\n")]).toEqual([
      1,
      [
        "Too old: people was never read whole",
        "Too old: a/people is complete up to 2026-01-06T00:00:00.000Z",
        "Too old: b/people is complete up to 2026-01-06T00:00:00.000Z",
        "Too old: c/people is complete up to 2026-02-27T00:00:00.000Z",
      ],
    ]);
  });
});
