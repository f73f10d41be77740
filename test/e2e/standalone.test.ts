import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { parseStateText } from "../../src/state/envelopes.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { recordsOf, TAP, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

const QUICK = { requestsPerMinute: 0, companies: 4 } as const;

/** Reads people as JSON lines. */
const JSONL = ["read", "--format", "jsonl", "--stream", "people"];

const idsOf = (text: string): string[] => linesOf(text).map((line) => JSON.parse(line).id);

const cursorIn = async (path: string): Promise<unknown> => {
  const savedState = parseStateText(await readFile(path, "utf8")).streams.get("people");
  return (savedState as { discoveredAt?: unknown } | undefined)?.discoveredAt;
};

describe("--state-file", () => {
  it("goes on where the last run ended, in every language", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 60 });
    const state = join(await tempDir(), "state.json");
    const jsonl = [...JSONL, "--config", config, "--state-file", state];
    const first = await run(CONNECTOR, jsonl);
    expect(first.code).toBe(0);
    expect(new Set(idsOf(first.stdout))).toEqual(new Set(sandbox.people().map(({ id }) => id)));
    expect(await cursorIn(state)).toMatch(/Z$/);

    sandbox.arrive(2);
    const second = await connector(["read", "--config", config, "--stream", "people", "--state-file", state]);
    expect(second.messages.filter(({ type }) => type === "RECORD").length).toBeLessThan(20);
    sandbox.arrive(2);
    const third = await tap(["--config", config, "--state-file", state]);
    expect(recordsOf(third.messages, "people").length).toBeLessThan(20);
    sandbox.arrive(2);
    const fourth = await run(CONNECTOR, jsonl);
    expect(idsOf(fourth.stdout).length).toBeLessThan(20);
    expect(Object.keys(JSON.parse(await readFile(state, "utf8")).bookmarks)).toContain("sources");
    expect(existsSync(`${state}.previous`)).toBe(true);
  });

  it("is the only say on where to go on from", async () => {
    const both = ["--state", "a", "--state-file", "b"];
    expect(await run(CONNECTOR, ["read", ...both])).toMatchObject({ code: 2 });
    expect(await run(TAP, both)).toMatchObject({ code: 2 });
  });
});

describe("read --format jsonl", () => {
  it("says on stderr what it has to say, in JSON", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const args = [...JSONL, "--config", await configFor(sandbox)];
    const { stderr } = await run(CONNECTOR, args);
    expect(linesOf(stderr).map((line) => JSON.parse(line).message)).toContainEqual(
      expect.stringMatching(/^Stream "people": complete, 8 rows in 1 window, \d+ requests?, \d/),
    );
    expect(JSON.parse(linesOf(stderr).at(-1) ?? "").message).toMatch(/^Run complete: 8 rows of 1 stream, /);
    sandbox.fault("status=401:times=always");
    const failed = await run(CONNECTOR, args);
    expect(failed).toMatchObject({ code: 2, stdout: "" });
    expect(JSON.parse(linesOf(failed.stderr).at(-1) ?? "")).toMatchObject({ level: "critical" });
  });

  it("ends within its budget, and goes on from there", async () => {
    const { sandbox, config } = await sandboxWith(
      { ...QUICK, people: 2_500, latencyMs: 10 },
      { max_window_rows: 1000, max_run_seconds: 10 },
    );
    const folder = await tempDir();
    const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
    const args = [...JSONL, "--config", config, "--state-file", state, "--summary", summary];
    const seen = new Set<string>();
    const limits: boolean[] = [];
    let runs = 0;
    for (; seen.size < sandbox.people().length && runs < 10; runs++) {
      const { code, stdout, stderr } = await run(CONNECTOR, args, { clock: hurriedClock(100) });
      expect(code).toBe(0);
      const { streams, ...whole } = JSON.parse(await readFile(summary, "utf8"));
      const [{ time_limit_reached: isLimited, expected_rows: expected }] = streams;
      expect(whole).toMatchObject({ outcome: "complete", time_limit_reached: isLimited });
      const cursor = String(await cursorIn(state)).slice(0, 10);
      const [rows, all] = [idsOf(stdout).length, Number(expected)].map((count) =>
        count.toLocaleString("en-US"),
      );
      const said = `Time limit reached: ${rows} of about ${all} rows, saved up to ${cursor}. Run again to continue.`;
      expect(stderr.includes(said)).toBe(isLimited);
      limits.push(isLimited);
      for (const id of idsOf(stdout)) seen.add(id);
    }
    expect(seen.size).toBe(sandbox.people().length);
    expect(runs).toBeGreaterThan(1);
    expect(limits[0]).toBe(true);
  });
});

describe("read --summary", () => {
  it("writes what the run did, also of one that failed, without any secret", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 200 });
    const path = join(await tempDir(), "summary.json");
    const args = ["read", "--config", config, "--stream", "people", "--summary", path];
    const summaryOf = async (words: readonly string[]): Promise<Record<string, unknown>> => {
      await run(CONNECTOR, words);
      return JSON.parse(await readFile(path, "utf8"));
    };
    const state = join(await tempDir(), "state.json");
    const first = await summaryOf([...args, "--state-file", state]);
    expect(first).toMatchObject({ outcome: "complete", rows: sandbox.people().length, saved_to: state });
    expect(first["streams"]).toMatchObject([
      { stream: "people", requests: first["requests"], state_before: null, saved_up_to: expect.any(String) },
    ]);
    const second = await summaryOf([...args, "--state-file", state]);
    const [{ state_after: after }] = first["streams"] as [{ state_after: unknown }];
    expect(second["streams"]).toMatchObject([{ state_before: after }]);
    const stream = { name: "people", namespace: "crm", json_schema: {} };
    const configured = { stream, sync_mode: "incremental", destination_sync_mode: "append" };
    const named = [...args, "--catalog", await file("catalog.json", { streams: [configured] })];
    for (const where of [
      ["--state-file", state],
      ["--output", join(await tempDir(), "rows")],
    ]) {
      await summaryOf([...named, ...where]);
      const again = await summaryOf([...named, ...where]);
      const [{ state_before, state_after }] = again["streams"] as [Record<string, unknown>];
      expect(state_before, "a namespace hides no state").toMatchObject({ discoveredAt: expect.any(String) });
      expect(state_after).toMatchObject({ discoveredAt: expect.any(String) });
    }
    sandbox.fault("status=401:times=always");
    expect(await summaryOf(args)).toMatchObject({
      outcome: "incomplete",
      streams: [{ error: expect.any(String) }],
    });
    expect(await readFile(path, "utf8")).not.toContain(sandbox.key);
    expect(await summaryOf([...args, "--catalog", "/nowhere.json"])).toMatchObject({
      outcome: "failed",
      error: expect.stringContaining("/nowhere.json"),
    });
  });

  it("refuses a place where it cannot write, before the first request", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const args = ["read", "--config", await configFor(sandbox), "--summary", "/nowhere/summary.json"];
    const { code, stderr } = await run(CONNECTOR, args);
    expect([code, sandbox.requests.length]).toEqual([1, 0]);
    expect(stderr).toContain(
      'Cannot write the summary "/nowhere/summary.json": there is no folder "/nowhere"',
    );
  });
});

describe("a run that is interrupted", () => {
  it("says what is saved and where", async () => {
    const slow = { ...QUICK, people: 10_000, days: 300, bytesPerSecond: 1_000_000 };
    const { config } = await sandboxWith(slow, { max_window_rows: 1_000 });
    const folder = await tempDir();
    const [state, summary] = [join(folder, "state.json"), join(folder, "summary.json")];
    const interrupted = async (args: readonly string[]): Promise<string> => {
      const words = [...JSONL, "--config", config, ...args];
      let bytes = 0;
      const { signal, stderr } = await run(CONNECTOR, words, {
        started: (child) =>
          child.stdout?.on("data", (chunk: Buffer) => {
            bytes += chunk.length;
            if (bytes > 1_500_000) child.kill("SIGINT");
          }),
      });
      expect(signal).toBe("SIGINT");
      return stderr;
    };
    expect(await interrupted(["--state-file", state, "--summary", summary])).toContain(
      `Interrupted by SIGINT: saved people up to ${await cursorIn(state)} in \\"${state}\\". Run again to continue`,
    );
    expect(JSON.parse(await readFile(summary, "utf8"))).toMatchObject({
      outcome: "interrupted",
      saved_to: state,
    });
    expect(await interrupted([])).toContain("Interrupted by SIGINT: no state is saved");
  });
});
