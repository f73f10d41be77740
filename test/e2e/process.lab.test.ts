import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Sandbox, SandboxOptions } from "../../sandbox/server.ts";
import type { StreamState } from "../../src/sync/event.ts";
import { Pipeline } from "../lab/faultlab/invariants.ts";
import { type Checkpoint, type Delivered, type Outcome, toDelivered } from "../lab/faultlab/read-once.ts";
import type { AirbyteMessage } from "../support/airbyte-messages.ts";
import { CONNECTOR, type Ended, file, run, TAP } from "../support/cli.ts";
import { catalogFor, configFor, sandboxWith } from "../support/configs.ts";
import { run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

const SANDBOX = { people: 2_400, undated: 4, days: 100, now: "2026-03-20T10:00:00Z" };

/** After how many bytes of its output a run is killed. */
const PLACES = [10, 700, 2_000, 70_000, 250_000, 400_000, 600_000, 700_001];

type Given = {
  readonly sandbox: Sandbox;
  readonly state: StreamState | null;
  /** What else the config has. */
  readonly settings?: object;
  /** The ids under which all is read anew; incrementally if absent. */
  readonly fullRefresh?: { readonly generation_id: number; readonly sync_id: number };
};

/** What befalls a run after how many bytes of its output; default: SIGKILL. */
type Strike = { readonly afterBytes: number; readonly act?: (child: ChildProcess) => void };

/** Runs the built program as platforms do, and reads what it writes. */
async function readCommand(given: Given, strike?: Strike): Promise<Outcome & Ended> {
  const { sandbox, state, settings, fullRefresh } = given;
  const config = await configFor(sandbox, { max_window_rows: 1_000, num_workers: 2, ...settings });
  const people = fullRefresh ? { ...fullRefresh, sync_mode: "full_refresh" } : {};
  const words = ["read", "--config", config, "--catalog", await catalogFor({ people })];
  const saved = { stream_descriptor: { name: "people" }, stream_state: state };
  if (state !== null) words.push("--state", await file("state.json", [{ type: "STREAM", stream: saved }]));
  const started = (child: ChildProcess): void => {
    const { afterBytes = Number.POSITIVE_INFINITY, act = () => child.kill("SIGKILL") } = strike ?? {};
    let bytes = 0;
    child.stdout?.on("data", ({ length }: string) => {
      if (bytes < afterBytes && bytes + length >= afterBytes) act(child);
      bytes += length;
    });
  };
  const ended = await run(CONNECTOR, words, strike && { started });
  return { ...readOutput(ended.stdout), ...ended, complete: ended.code === 0 };
}

/** What whole lines say; the rest of a line that was cut off says nothing. */
function readOutput(stdout: string): Pick<Outcome, "records" | "checkpoints" | "error"> {
  const records: Delivered[] = [];
  const checkpoints: Checkpoint[] = [];
  let error: unknown;
  for (const line of stdout.split("\n").slice(0, -1)) {
    const { record, state, trace } = JSON.parse(line) as AirbyteMessage;
    if (record !== undefined) records.push(toDelivered(JSON.stringify(record.data)));
    const saved = state?.stream.stream_state as StreamState | undefined;
    if (saved !== undefined) checkpoints.push({ state: saved, after: records.length });
    error ??= trace?.error?.message;
  }
  return { records, checkpoints, error };
}

/** Runs, is struck, and runs again from the last whole STATE: all rows are in the union. Returns the first run. */
async function strikeAndResume(sandbox: Sandbox, strike: Strike, settings = {}): Promise<Outcome & Ended> {
  const base = { sandbox, settings };
  const pipeline = new Pipeline(sandbox, () => sandbox.people());
  const first = await pipeline.run((state) => readCommand({ ...base, state }, strike));
  const rest = await pipeline.run((state) => readCommand({ ...base, state }));
  expect(rest.code, rest.stderr).toBe(0);
  expect([pipeline.violations, pipeline.lacking()]).toEqual([[], []]);
  return first;
}

/** A sandbox that is there until the test ends. */
const opened = async (more: SandboxOptions = {}): Promise<Sandbox> =>
  (await sandboxWith({ ...SANDBOX, ...more })).sandbox;

describe("read, killed", () => {
  it("has all rows in the union after SIGKILL at any place of its output", async () => {
    const sandbox = await opened();
    const signals: unknown[] = [];
    for (const afterBytes of PLACES) signals.push((await strikeAndResume(sandbox, { afterBytes })).signal);
    expect(signals.filter((signal) => signal === "SIGKILL").length).toBeGreaterThan(PLACES.length / 3);
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends by %s in the middle with complete lines, and the next run continues there",
    async (signal) => {
      const sandbox = await opened({ bytesPerSecond: 600_000 });
      // One window after the other, so that the first is complete by then.
      const strike: Strike = { afterBytes: 450_000, act: (child) => void child.kill(signal) };
      const first = await strikeAndResume(sandbox, strike, { num_workers: 1 });
      expect([first.signal, first.stderr]).toEqual([signal, ""]);
      expect(first.records.length).toBeLessThan(sandbox.people().length);
      expect(first.stdout.endsWith("\n") || first.stdout === "").toBe(true);
      expect(first.checkpoints.length).toBeGreaterThan(0);
    },
  );

  it("continues a full refresh under the same ids after SIGKILL, and starts again under other ids", async () => {
    const sandbox = await opened();
    const pipeline = new Pipeline(sandbox, () => sandbox.people());
    const fullRefresh = { generation_id: 4, sync_id: 9 };
    // One window after the other, so that the first is complete by then.
    const base = { sandbox, fullRefresh, settings: { num_workers: 1 } };
    const first = await pipeline.run((state) => readCommand({ ...base, state }, { afterBytes: 550_000 }));
    expect(first.signal).toBe("SIGKILL");
    const { state } = pipeline;
    expect(state).not.toBeNull();
    const rest = await pipeline.run(() => readCommand({ ...base, state }));
    expect(rest.code, rest.stderr).toBe(0);
    expect(rest.records.length).toBeLessThan(sandbox.people().length);
    expect([pipeline.violations, pipeline.lacking()]).toEqual([[], []]);
    const other = await readCommand({ ...base, state, fullRefresh: { ...fullRefresh, sync_id: 10 } });
    expect([other.code, other.records.length]).toEqual([0, sandbox.people().length]);
  });

  it("ends as soon as its output has no reader, even if the service is silent", async () => {
    const sandbox = await opened({ faults: ["stall:after=20"] });
    const act = ({ stdout }: ChildProcess): void => void stdout?.destroy();
    const base = { sandbox, settings: { idle_timeout_seconds: 600 }, state: null };
    expect(await readCommand(base, { afterBytes: 20_000, act })).toMatchObject({ code: 1 });
  });
});

const SILENT: SandboxOptions = { people: 5, faults: ["stall-headers:times=always"] };

describe("a process that is to end", () => {
  it.each(["check", "discover", "--test", "--discover"])(
    "ends at SIGTERM while the service does not answer, and judges nothing: %s",
    async (word) => {
      const { sandbox, config } = await sandboxWith(SILENT);
      const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000 });
      const ended = await run(word.startsWith("--") ? TAP : CONNECTOR, [word, "--config", config], {
        started: (child) => void asked.toBeGreaterThan(0).then(() => child.kill("SIGTERM")),
      });
      expect(ended.signal).toBe("SIGTERM");
      expect(`${ended.stdout}${ended.stderr}`).not.toMatch(/FAILED|SUCCEEDED|CATALOG|"streams"|Cannot/);
    },
  );

  const canBePid1 = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;

  it.skipIf(!canBePid1)("ends at SIGTERM with 143 as the first process of a container", async () => {
    const { sandbox, config } = await sandboxWith(SILENT);
    const words = ["--pid", "--fork", process.execPath, CONNECTOR, "check", "--config", config];
    const outer = spawn("unshare", words, { stdio: "ignore" });
    const ended = once(outer, "exit");
    await expect.poll(() => sandbox.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const inner = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8");
    process.kill(Number(inner), "SIGTERM");
    expect(await ended).toEqual([143, null]);
  });
});

const SMALL_DISK = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];

/** Whether this machine lets a test mount a small disk in a folder of its own. */
const canMount = spawnSync("unshare", ["--mount", "mount", ...SMALL_DISK, "/mnt"]).status === 0;

/** A folder on a small disk, until the test ends. */
async function smallDisk(): Promise<string> {
  const folder = join(await tempDir(), "disk");
  mkdirSync(folder);
  execFileSync("mount", [...SMALL_DISK, folder]);
  onTestFinished(() => void execFileSync("umount", ["-l", folder]));
  return folder;
}

describe.runIf(canMount)("a full disk", () => {
  it("ends a run into a folder, names the folder and the reason, and removes temporary files", async () => {
    const { config } = await sandboxWith({ people: 6_000 });
    const output = join(await smallDisk(), "out");
    const { code, stderr } = await run(CONNECTOR, ["read", "--config", config, "--output", output]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/people.*": no space left on device/);
    expect(readdirSync(join(output, "people"))).toEqual([]);
    expect(readdirSync(output)).toEqual(["people"]);
  });

  it("ends a run that cannot save its state, and leaves the old one complete", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20 });
    const folder = await smallDisk();
    const state = join(folder, "state.json");
    const args = ["read", "--config", config, "--stream", "people", "--state-file", state];
    expect(await run(CONNECTOR, args)).toMatchObject({ code: 0 });
    sandbox.arrive(1);
    writeFileSync(join(folder, "filler"), Buffer.alloc(1_036_000));
    spawnSync("dd", ["if=/dev/zero", `of=${join(folder, "filler2")}`, "bs=4096"]);
    const { code, stdout } = await run(CONNECTOR, args);
    expect([code, stdout]).toEqual([1, expect.stringContaining("no space left on device")]);
    const left = readdirSync(folder).filter((name) => !name.startsWith("filler"));
    expect(left.filter((name) => !name.startsWith("state.json") || /\.tmp|\.lock/.test(name))).toEqual([]);
    spawnSync("rm", ["-f", join(folder, "filler"), join(folder, "filler2")]);
    expect(await run(CONNECTOR, args)).toMatchObject({ code: 0 });
  });
});

it.runIf(process.platform === "linux").each([">", ">>"])(
  "a run whose stdout is a file on a full disk takes no short write for a complete one: %s",
  async (redirect) => {
    const { config } = await sandboxWith({ people: 500, undated: 0 });
    const folder = await tempDir();
    const [out, state] = [join(folder, "rows.jsonl"), join(folder, "state.json")];
    const script = `"$0" "$1" read --config "$2" --format jsonl --stream people --state-file "$3"`;
    const args = [process.execPath, CONNECTOR, config, state];
    // 100 KiB are less than the 500 rows, and no multiple of what is written at once.
    const small = await runAny("bash", ["-c", `ulimit -f 100; ${script} ${redirect} "$4"`, ...args, out]);
    expect(small).toMatchObject({ code: 1, stderr: expect.stringContaining("Cannot write the output") });
    expect(statSync(out).size).toBeGreaterThan(90_000);
    expect(await runAny("bash", ["-c", `${script} >> "$4"`, ...args, out])).toMatchObject({ code: 0 });
    const lines = readFileSync(out, "utf8").trim().split("\n");
    const ids = lines.flatMap((line) => (line.endsWith("}") ? [JSON.parse(line).id] : []));
    expect(new Set(ids).size).toBe(500);
    // The line that the full disk has torn.
    expect(lines.length - ids.length).toBe(1);
  },
);
