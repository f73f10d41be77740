import type { ChildProcess } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

type State = { readonly discoveredAt?: string; readonly undated?: object | null };
type Commit = {
  readonly key: string;
  readonly state: State;
  readonly files: readonly { readonly part: string }[];
};
type Saved = {
  readonly bookmarks: Record<string, State>;
  readonly output: { readonly pending: Commit | null };
};

type Person = { readonly id: string; readonly discoveredAt?: string | null };

/** The records of each file that a reader sees, or will see when the next run has published what is pending. */
function filesOf(folder: string, saved: Saved | undefined): readonly Person[][] {
  const people = join(folder, "people");
  if (!existsSync(people)) return [];
  const pending = saved?.output.pending?.files.map(({ part }) => part) ?? [];
  return readdirSync(people)
    .filter((name) => /^\d{8}T\d{6}Z-\d{9}-people-[-\w]+\.jsonl(\.gz)?$/.test(name) || pending.includes(name))
    .map((name) => {
      const bytes = readFileSync(join(people, name));
      const text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString("utf8");
      return linesOf(text).map((line) => JSON.parse(line));
    });
}

/** What the files hold is what the state covers: nothing is lost, and nothing is there before its time. */
function expectExact(folder: string, sandbox: Sandbox): void {
  const path = join(folder, "state.json");
  const saved: Saved | undefined = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
  const pending = saved?.output.pending;
  const state = pending?.key === "people" ? pending.state : saved?.bookmarks["people"];
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

/** A run in another folder that goes on from a copy of the state completes the files that a reader sees. */
async function expectHandedOn(folder: string, sandbox: Sandbox, config: string): Promise<void> {
  const elsewhere = join(await tempDir(), "out");
  const words = ["--stream", "people", "--output", elsewhere, "--state", join(folder, "state.json")];
  expect((await run(CONNECTOR, ["read", "--config", config, ...words])).code).toBe(0);
  const rows = [...filesOf(folder, undefined), ...filesOf(elsewhere, undefined)].flat();
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(sandbox.people().map(({ id }) => id)));
}

/** Runs the built program and kills it so many ms after its first request, unless it has ended. Returns its exit code. */
async function runKilled(args: readonly string[], sandbox: Sandbox, afterMs: number): Promise<number | null> {
  const before = sandbox.requests.length;
  const killSoon = async (child: ChildProcess): Promise<void> => {
    while (sandbox.requests.length === before && child.exitCode === null) await delay(5);
    await delay(afterMs);
    child.kill("SIGKILL");
  };
  return (await run(CONNECTOR, args, { started: (child) => void killSoon(child) })).code;
}

it.each([1, 2, 3, 4, 5, 6])(
  "read --output, killed, holds exactly what its state covers, after two SIGKILLs at any moment (seed %i)",
  async (seed) => {
    // Enough for several files: gzip makes little of the rows.
    const isZipped = seed % 2 === 0;
    const words = isZipped ? ["--file-bytes", "60000", "--compress", "gzip"] : ["--file-bytes", "300000"];
    const account = { people: 6_000, undated: 5, days: 200, companies: 3, now: "2026-03-20T10:00:00Z" };
    const pace = { requestsPerMinute: 0, latencyMs: 5, seed };
    const { sandbox, config } = await sandboxWith({ ...account, ...pace }, { max_window_rows: 1_000 });
    const folder = join(await tempDir(), "out");
    const args = ["read", "--config", config, "--output", folder, ...words];
    for (let kills = 0; kills < 2; kills += 1) {
      const code = await runKilled(args, sandbox, Math.random() * 600);
      expectExact(folder, sandbox);
      if (code !== null) expect(code).toBe(0);
      if (existsSync(join(folder, "state.json"))) await expectHandedOn(folder, sandbox, config);
    }
    expect((await run(CONNECTOR, args)).code).toBe(0);
    expectExact(folder, sandbox);
    const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(names.filter((name) => /\.part|\.tmp|\.lock/.test(name))).toEqual([]);
    expect(filesOf(folder, undefined).length).toBeGreaterThan(2);
  },
);
