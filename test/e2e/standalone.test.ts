import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { recordsOf, TAP, tap } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

const QUICK = { requestsPerMinute: 0, companies: 4 } as const;

/** Reads people as JSON lines. */
const JSONL = ["read", "--format", "jsonl", "--stream", "people"];

const idsOf = (text: string): string[] => linesOf(text).map((line) => JSON.parse(line).id);

/** The cursor of people in a state file, whichever language wrote it last. */
const cursorIn = async (path: string): Promise<string> =>
  /"discoveredAt":\s*"([^"]+)"/.exec(await readFile(path, "utf8"))?.[1] ?? "none";

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
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 5 });
    const lastLine = ({ stderr }: { readonly stderr: string }) => JSON.parse(linesOf(stderr).at(-1) ?? "");
    const complete = await run(CONNECTOR, [...JSONL, "--config", config]);
    expect(lastLine(complete).message).toContain("8 rows of 1 stream");
    sandbox.fault("status=401:times=always");
    const failed = await run(CONNECTOR, [...JSONL, "--config", config]);
    expect(failed).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(failed)).toMatchObject({ level: "critical" });
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
    while (seen.size < sandbox.people().length && limits.length < 10) {
      const { code, stdout, stderr } = await run(CONNECTOR, args, { clock: hurriedClock(100) });
      const { outcome, time_limit_reached: isLimited } = JSON.parse(await readFile(summary, "utf8"));
      expect([code, outcome]).toEqual([0, "complete"]);
      const saved = `saved up to ${(await cursorIn(state)).slice(0, 10)}. Run again`;
      expect([stderr.includes("Time limit reached"), stderr.includes(saved)]).toEqual([isLimited, isLimited]);
      limits.push(isLimited);
      for (const id of idsOf(stdout)) seen.add(id);
    }
    expect([seen.size, limits[0]]).toEqual([sandbox.people().length, true]);
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
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 5 });
    const args = ["read", "--config", config, "--summary", "/nowhere/summary.json"];
    const { code, stderr } = await run(CONNECTOR, args);
    expect([code, sandbox.requests.length]).toEqual([1, 0]);
    expect(stderr).toContain('the summary "/nowhere/summary.json"');
  });
});

describe("a run that is interrupted", () => {
  it("says what is saved and where", async () => {
    const slow = { ...QUICK, people: 4_000, days: 300, bytesPerSecond: 1_000_000 };
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
            if (bytes > 900_000) child.kill("SIGINT");
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
