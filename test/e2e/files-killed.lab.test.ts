import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { runs } from "../support/runs.ts";
import { configFor } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

/** How often a run is killed; OUTPUT_KILLS asks for more, as for the figure in the docs. */
const KILLS = Number(process.env["OUTPUT_KILLS"] ?? runs(4, 12));

type Saved = {
  readonly bookmarks: Record<string, { readonly discoveredAt?: string; readonly undated?: object | null }>;
  readonly output: { readonly pending: readonly { readonly stream: string; readonly part: string }[] };
};

type Person = { readonly id: string; readonly discoveredAt?: string | null };

const isFile = (name: string): boolean => /^\d{8}T\d{6}Z-\d{9}\.jsonl(\.gz)?$/.test(name);

function savedIn(folder: string): Saved | undefined {
  const path = join(folder, "state.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

/** The records of each file that a reader sees, or will see when the next run has published what is pending. */
function filesOf(folder: string, saved: Saved | undefined): readonly Person[][] {
  const people = join(folder, "people");
  if (!existsSync(people)) return [];
  const pending = saved?.output.pending.map(({ part }) => part) ?? [];
  return readdirSync(people)
    .filter((name) => isFile(name) || pending.includes(name))
    .map((name) => {
      const bytes = readFileSync(join(people, name));
      const text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString("utf8");
      expect(text.endsWith("\n"), `${name} ends with a whole line`).toBe(true);
      return text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    });
}

/** What the files hold is what the state covers: nothing is lost, and nothing is there before its time. */
function expectExact(folder: string, sandbox: Sandbox): void {
  const saved = savedIn(folder);
  const state = saved?.bookmarks["people"];
  const files = filesOf(folder, saved);
  for (const file of files) expect(new Set(file.map(({ id }) => id)).size).toBe(file.length);
  const rows = files.flat();
  const cursor = state?.discoveredAt ?? "";
  const isCovered = ({ discoveredAt }: Person): boolean =>
    discoveredAt ? discoveredAt <= cursor : (state?.undated ?? null) !== null;
  const served = new Map(sandbox.people().map((person) => [person.id, person as unknown as Person]));
  for (const row of rows) expect(row).toEqual(served.get(row.id));
  // A row of the open window may be newer than the cursor; before that window, state covers whole days.
  const isAtEnd = [...served.values()].every((person) => isCovered(person));
  if (!isAtEnd) expect(rows.filter((row) => !isCovered(row))).toEqual([]);
  const seen = new Set(rows.map(({ id }) => id));
  expect([...served.values()].filter((person) => isCovered(person) && !seen.has(person.id))).toEqual([]);
}

/** Runs the built program and kills it so many ms after its first request, unless it has ended. */
async function runKilled(
  args: readonly string[],
  sandbox: Sandbox,
  killAfterMs: number,
): Promise<number | null> {
  const before = sandbox.requests.length;
  const child = spawn(process.execPath, [CONNECTOR, ...args], { stdio: "ignore" });
  const ended = once(child, "close");
  const begun = async (): Promise<void> => {
    while (sandbox.requests.length === before && child.exitCode === null) await delay(5);
    await delay(killAfterMs);
    child.kill("SIGKILL");
  };
  await Promise.race([begun(), ended]);
  const [code] = (await ended) as [number | null];
  return code;
}

const ROUNDS = Array.from({ length: Math.ceil(KILLS / 2) }, (_, index) => ({
  seed: index + 1,
  // Enough for several files: gzip makes little of the rows.
  words: index % 2 === 0 ? ["--file-bytes", "300000"] : ["--file-bytes", "60000", "--compress", "gzip"],
}));

describe("read --output, killed", () => {
  it.each(ROUNDS)(
    "holds exactly what its state covers, after two SIGKILLs at any moment (seed $seed, $words)",
    async ({ seed, words }) => {
      const settings = {
        people: 6_000,
        undated: 5,
        days: 200,
        requestsPerMinute: 0,
        latencyMs: 5,
        companies: 3,
      };
      await using sandbox = await startSandbox({ ...settings, seed, now: "2026-03-20T10:00:00Z" });
      const folder = join(await tempDir(), "out");
      const config = await configFor(sandbox, { max_window_rows: 1_000, requests_per_minute: 6_000 });
      const args = ["read", "--config", config, "--output", folder, ...words];
      for (let kills = 0; kills < 2; kills += 1) {
        const code = await runKilled(args, sandbox, Math.random() * 600);
        expectExact(folder, sandbox);
        if (code !== null) expect(code).toBe(0);
      }
      expect((await run(CONNECTOR, args)).code).toBe(0);
      expectExact(folder, sandbox);
      const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
      expect(names.filter((name) => /\.part|\.tmp|\.lock/.test(name))).toEqual([]);
      expect(filesOf(folder, undefined).length).toBeGreaterThan(2);
    },
  );
});
