import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { catalogFor, sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

const SMALL: SandboxOptions = { people: 40, undated: 0, companies: 3, sources: 2 };
const LOST = "status=403:code=ENDPOINT_NOT_ON_PLAN:path=public/people:times=always";
const NO_LONGER = /may no longer read people \(403 ENDPOINT_NOT_ON_PLAN\).*right plan.*--stream.*catalog/;

type RunSummary = {
  readonly outcome: string;
  readonly error: string | null;
  readonly streams: readonly {
    readonly stream: string;
    readonly outcome: string;
    readonly error: string | null;
    readonly rows: number;
  }[];
};

const summaryIn = async (path: string): Promise<RunSummary> => JSON.parse(await readFile(path, "utf8"));
const outcomesOf = ({ streams }: RunSummary) =>
  Object.fromEntries(streams.map(({ stream, outcome }) => [stream, outcome]));

describe("a key that lost its plan", () => {
  it.each<[what: string, words: (folder: string) => readonly string[], code: number]>([
    ["a folder", (folder) => ["--output", join(folder, "contacts")], 2],
    ["a state file", (folder) => ["--state-file", join(folder, "state.json")], 1],
  ])(
    "fails people that an earlier run read into %s, reads the other streams, and continues later",
    async (...row) => {
      const [, words, failing] = row;
      const { sandbox, config } = await sandboxWith(SMALL);
      const folder = await tempDir();
      const summary = join(folder, "summary.json");
      const args = ["read", "--config", config, ...words(folder), "--summary", summary];
      expect((await run(CONNECTOR, args)).code).toBe(0);
      sandbox.fault(LOST);
      for (const _ of [1, 2]) {
        const { code, stdout, stderr } = await run(CONNECTOR, args);
        const { outcome, streams, ...lost } = await summaryIn(summary);
        expect([code, outcome, lost.error]).toEqual([failing, "incomplete", null]);
        expect(outcomesOf({ ...lost, outcome, streams })).toEqual({
          people: "incomplete",
          companies: "complete",
          sources: "complete",
        });
        expect(streams[0]?.error).toMatch(NO_LONGER);
        expect(stdout + stderr).toMatch(NO_LONGER);
      }
      sandbox.fault();
      sandbox.arrive(2);
      expect((await run(CONNECTOR, args)).code).toBe(0);
      const { streams } = await summaryIn(summary);
      expect(streams[0]).toMatchObject({ stream: "people", outcome: "complete" });
      expect(streams[0]?.rows).toBeLessThan(20);
      expect(streams[0]?.rows).toBeGreaterThanOrEqual(2);
    },
  );

  it.each<[what: string, program: string, words: readonly string[]]>([
    ["Airbyte", CONNECTOR, ["read"]],
    ["Singer, whose state keeps people", TAP, []],
  ])("exits with 1 for %s, with the state of an earlier run", async (_, program, words) => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const first = await run(program, [...words, "--config", config]);
    expect(first.code).toBe(0);
    sandbox.fault(LOST);
    const state = await file("state.txt", first.stdout);
    const { code, stdout, stderr } = await run(program, [...words, "--config", config, "--state", state]);
    expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(NO_LONGER)]);
    if (program === TAP) expect(stdout.trimEnd().split("\n").at(-1)).toContain('"people":{"version"');
  });

  it.each<[what: string, words: () => Promise<readonly string[]>]>([
    ["--stream", async () => ["--stream", "people", "--stream", "companies"]],
    ["a catalog", async () => ["--catalog", await catalogFor({ people: {}, companies: {} })]],
  ])("fails a stream that %s names, although no run has read it", async (_, words) => {
    const { sandbox, config } = await sandboxWith(SMALL);
    sandbox.fault(LOST);
    const [output, summary] = [join(await tempDir(), "contacts"), join(await tempDir(), "summary.json")];
    const args = ["read", "--config", config, "--output", output, "--summary", summary, ...(await words())];
    expect((await run(CONNECTOR, args)).code).toBe(2);
    const { outcome, streams } = await summaryIn(summary);
    const refused = streams.filter((stream) => stream.error !== null);
    expect([outcome, refused.length, refused[0]?.error]).toEqual([
      "incomplete",
      1,
      expect.stringContaining("ENDPOINT_NOT_ON_PLAN"),
    ]);
  });

  it("leaves streams out that no run has read, with a warning, until the plan has them", async () => {
    const { sandbox, config } = await sandboxWith(SMALL);
    sandbox.fault(LOST);
    const [folder, summary] = [await tempDir(), join(await tempDir(), "summary.json")];
    const args = ["read", "--config", config, "--output", join(folder, "contacts"), "--summary", summary];
    const outcomes: unknown[] = [];
    const attempt = async (fault: readonly string[]) => {
      sandbox.fault(...fault);
      const { code, stderr } = await run(CONNECTOR, args);
      outcomes.push([code, ...Object.values(outcomesOf(await summaryIn(summary)))]);
      return stderr.split("\n").filter((line) => line.includes("ENDPOINT_NOT_ON_PLAN"));
    };
    const [said = "", more] = await attempt([LOST]);
    expect(more).toBe(undefined);
    expect(said).toContain('WARNING "people" is left out: the plan of this key does not include it (403');
    expect(await attempt([])).toEqual([]);
    await attempt([LOST]);
    expect(outcomes).toEqual([
      [0, "complete", "complete"],
      [0, "complete", "complete", "complete"],
      [2, "incomplete", "complete", "complete"],
    ]);
  });
});
