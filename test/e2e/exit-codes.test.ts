import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { check } from "../../src/commands/check.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { hurriedClock, runtimeWith } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { Terminal, testProcess } from "../support/terminal.ts";

const QUICK = { people: 20, undated: 2, companies: 3, sources: 2, requestsPerMinute: 0 };

describe("exit codes", () => {
  it.each([
    ["a wrong key", "status=401:times=always", {}, 2],
    ["a setting that is wrong", undefined, { num_workers: 99 }, 2],
    ["a service that is down", "status=500:times=always", {}, 1],
  ])("tell %s from what time mends, but for platforms", async (_what, fault, settings, code) => {
    const faults = fault === undefined ? [] : [fault];
    const { config } = await sandboxWith({ ...QUICK, faults }, settings);
    const out = join(await tempDir(), "out");
    for (const [program, words, expected] of [
      [CONNECTOR, ["read", "--stream", "people", "--output", out], code],
      [CONNECTOR, ["read", "--stream", "people", "--format", "jsonl"], code],
      [CONNECTOR, ["plan"], code],
      [CONNECTOR, ["read", "--stream", "people"], 1],
      [CONNECTOR, ["check"], 0],
      [CONNECTOR, ["check", "--exit-code"], 1],
      [TAP, [], 1],
    ] as const) {
      const ended = await run(program, [...words, "--config", config], { clock: hurriedClock() });
      expect([words, ended.code]).toEqual([words, expected]);
    }
  });

  it("are 2 for a --stream that nothing has, of which the service is asked nothing", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const before = sandbox.requests.length;
    const words = ["--stream", "peple", "--format", "jsonl", "--config", config];
    const { code, stdout, stderr } = await run(CONNECTOR, ["read", ...words]);
    expect([code, stdout, sandbox.requests.length]).toEqual([2, "", before]);
    expect(stderr).toContain("there is no such stream, only people, companies, sources. Correct --stream");
  });

  it("are 1 for a check that fails at a terminal", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { num_workers: 99 });
    expect(await check({ config }, testProcess({ stdout: new Terminal() }))).toBe(1);
    expect(
      await check(
        { config },
        runtimeWith(sandbox, () => undefined),
      ),
    ).toBe(0);
  });
});

describe("the files of a run", () => {
  it("are only for their owner, whatever the umask", async () => {
    const { config } = await sandboxWith(QUICK);
    const folder = await tempDir();
    const words = ["--output", join(folder, "out"), "--summary", join(folder, "summary.json")];
    const before = process.umask(0);
    try {
      expect((await run(CONNECTOR, ["read", "-c", config, ...words], { asProcess: true })).code).toBe(0);
    } finally {
      process.umask(before);
    }
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(names.length).toBeGreaterThan(8);
    for (const name of names) {
      const stats = statSync(join(folder, name));
      const mode = (stats.mode & 0o777).toString(8);
      expect([name, mode]).toEqual([name, stats.isDirectory() ? "700" : "600"]);
    }
  });
});

describe("read --full-refresh", () => {
  it("reads everyone again, into a new folder or to stdout", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const out = join(await tempDir(), "out");
    const words = ["read", "--config", config, "--stream", "people", "--output", out];
    expect((await run(CONNECTOR, words)).code).toBe(0);
    expect((await run(CONNECTOR, [...words, "--full-refresh"])).code).toBe(0);
    const [full = "", ...others] = readdirSync(join(out, "people")).filter((name) =>
      name.startsWith("full-"),
    );
    const rows = readdirSync(join(out, "people", full)).flatMap((name) =>
      readFileSync(join(out, "people", full, name), "utf8")
        .trimEnd()
        .split("\n"),
    );
    expect([others, rows.length]).toEqual([[], sandbox.people().length]);
    const state = join(out, "../state.json");
    const jsonl = [
      "read",
      "--config",
      config,
      "--stream",
      "people",
      "--format",
      "jsonl",
      "--state-file",
      state,
    ];
    for (const more of [[], ["--full-refresh"]])
      expect((await run(CONNECTOR, [...jsonl, ...more])).stdout.trimEnd().split("\n")).toHaveLength(
        rows.length,
      );
  });

  it("is what an edited catalog of discover can ask for, and no other word", async () => {
    const { config } = await sandboxWith(QUICK);
    const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
    const [people] = JSON.parse(stdout).catalog.streams;
    for (const stream of [{ stream: people }, people]) {
      const path = await file("catalog.json", { streams: [{ ...stream, sync_mode: "full-refresh" }] });
      const ended = await run(CONNECTOR, ["read", "--config", config, "--catalog", path]);
      expect(ended.code).toBe(1);
      expect(ended.stdout).toContain(
        'sync_mode is \\"full-refresh\\", it must be \\"full_refresh\\" or \\"incremental\\"',
      );
    }
  });
});
