import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { CONNECTOR, type Ended, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

const MANY = { people: 6_000, undated: 5, days: 200, requestsPerMinute: 0, latencyMs: 20 };
const SMALL_WINDOWS = { max_window_rows: 1_000, num_workers: 1 };

/** What the disk says of people: the day up to which the state goes, and the rows of all published files. */
function onDisk(state: string): { readonly until: string | undefined; readonly rows: number } {
  const saved = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : {};
  const manifest = join(state, "../manifest.json");
  const files: { rows: number }[] = existsSync(manifest)
    ? JSON.parse(readFileSync(manifest, "utf8")).files
    : [];
  const until = saved.bookmarks?.people?.discoveredAt;
  return { until, rows: files.reduce((sum, { rows }) => sum + rows, 0) };
}

/** Sends a signal once the service has answered so many requests. */
async function signalled(
  sandbox: Sandbox,
  signal: NodeJS.Signals,
  requests: number,
  words: readonly string[],
  program = CONNECTOR,
): Promise<Ended> {
  const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000, interval: 5 });
  return await run(program, words, {
    started: (child) => void asked.toBeGreaterThan(requests).then(() => child.kill(signal)),
  });
}

const shown = (rows: number): string => rows.toLocaleString("en-US");

describe("the last words of a run", () => {
  it.each([
    ["SIGINT", 12],
    ["SIGTERM", 20],
  ] as const)("say after %s what the folder holds", async (signal, requests) => {
    const { sandbox, config } = await sandboxWith(MANY, SMALL_WINDOWS);
    const folder = join(await tempDir(), "out");
    const summary = join(folder, "../summary.json");
    const words = [
      "read",
      "--config",
      config,
      "--output",
      folder,
      "--stream",
      "people",
      "--summary",
      summary,
    ];
    const ended = await signalled(sandbox, signal, requests, words);
    const { until, rows } = onDisk(join(folder, "state.json"));
    expect(ended.signal).toBe(signal);
    expect([until?.length, rows > 0]).toEqual([24, true]);
    expect(ended.stderr).toContain(
      `Interrupted by ${signal}: saved people up to ${until} (${shown(rows)} rows in`,
    );
    const said = JSON.parse(readFileSync(summary, "utf8"));
    expect(said).toMatchObject({ rows, outcome: "interrupted", streams: [{ rows, saved_up_to: until }] });
  });

  it.each([
    ["Airbyte", CONNECTOR, ["read", "--stream", "people"]],
    ["JSON lines", CONNECTOR, ["read", "--stream", "people", "--format", "jsonl"]],
    ["Singer", TAP, []],
  ])("say in %s what the state file holds", async (_language, program, words) => {
    const { sandbox, config } = await sandboxWith(MANY, SMALL_WINDOWS);
    const state = join(await tempDir(), "state.json");
    const all = [...words, "--config", config, "--state-file", state];
    const { stdout, stderr } = await signalled(sandbox, "SIGINT", 12, all, program);
    const { until } = onDisk(state);
    expect(until).toHaveLength(24);
    expect(`${stdout}${stderr}`).toContain(`Interrupted by SIGINT: saved people up to ${until} in `);
  });

  it("say after an error, and at the time limit, what the folder holds", async () => {
    for (const [settings, words] of [
      [{ faults: ["status=403:skip=12:times=always"] }, /; saved people up to (\S+) \((\S+) rows in/],
      [{}, /Time limit reached: (?=.*up to (\S+)\.)(\S+) of about .* rows/],
    ] as const) {
      const limit = "faults" in settings ? {} : { max_run_seconds: 1 };
      const slow = "faults" in settings ? {} : { latencyMs: 200 };
      const { config } = await sandboxWith({ ...MANY, ...slow, ...settings }, { ...SMALL_WINDOWS, ...limit });
      const folder = join(await tempDir(), "out");
      const { stderr } = await run(CONNECTOR, [
        "read",
        "--config",
        config,
        "--output",
        folder,
        "--stream",
        "people",
      ]);
      const { until, rows } = onDisk(join(folder, "state.json"));
      const [, day, count] = words.exec(stderr) ?? [stderr];
      expect([until?.slice(0, day?.length), shown(rows)]).toEqual([day, count]);
    }
  });
});
