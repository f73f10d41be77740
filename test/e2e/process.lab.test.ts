import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Sandbox } from "../../sandbox/server.ts";
import { aheadOfDelivery, Destination } from "../lab/faultlab/invariants.ts";
import {
  type ProcessOutcome,
  type ProcessSettings,
  readInProcess,
  readProcess,
} from "../lab/faultlab/process.ts";
import { withSandbox } from "../lab/faultlab/read-once.ts";
import { CONNECTOR, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

const CONFIG = { maxWindowRows: 1_000, numWorkers: 2, lookbackWindowDays: 1, isUser: "all" } as const;
const SANDBOX = { people: 2_400, undated: 4, days: 100, requestsPerMinute: 0, now: "2026-03-20T10:00:00Z" };

/** At which places in its output a run is killed. */
const LINES = [1_201, 2, 2_000, 50, 800, 4, 1, 2_408];
const BYTES = [700_001, 70_000, 10];

let directory = "";
beforeAll(async () => {
  directory = await tempDir();
});

type How = Partial<Pick<ProcessSettings, "killAfterLines" | "killAfterBytes" | "signal" | "closeInstead">>;

/** Runs, is killed, and runs again from the last whole STATE; returns the first run. */
async function killAndResume(sandbox: Sandbox, how: How): Promise<ProcessOutcome> {
  const base = { sandbox, config: CONFIG, directory };
  const served = sandbox.people();
  const destination = new Destination();
  const first = await readProcess({ ...base, state: null, ...how });
  expect(aheadOfDelivery(first, destination, served, true)).toEqual([]);
  destination.take(first.records);
  const rest = await readInProcess({ ...base, state: first.checkpoints.at(-1)?.state ?? null });
  expect(rest.code, rest.stderr).toBe(0);
  destination.take(rest.records);
  expect(destination.lacks(served)).toEqual([]);
  return first;
}

describe("read, killed", () => {
  it("has all rows in the union after SIGKILL at any line, and in the middle of one", async () => {
    await withSandbox(SANDBOX, async (sandbox) => {
      let struck = 0;
      for (const line of LINES) {
        const { endedBy } = await killAndResume(sandbox, { killAfterLines: line });
        if (endedBy === "SIGKILL") struck += 1;
      }
      expect(struck).toBeGreaterThan(LINES.length / 3);
      for (const bytes of BYTES) await killAndResume(sandbox, { killAfterBytes: bytes });
    });
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "ends by %s before everything is read, with whole lines, and goes on from there",
    async (signal) => {
      await withSandbox({ ...SANDBOX, bytesPerSecond: 600_000 }, async (sandbox) => {
        // One window after the other, so that the first is complete by then.
        const base = { sandbox, config: { ...CONFIG, numWorkers: 1 }, directory };
        const first = await readProcess({ ...base, state: null, killAfterLines: 1_300, signal });
        expect(first.endedBy).toBe(signal);
        expect(first.records.length).toBeLessThan(sandbox.people().length);
        expect(first.stdout.endsWith("\n") || first.stdout === "").toBe(true);
        expect(first.stderr).toBe("");
        expect(first.checkpoints.length).toBeGreaterThan(0);
        const rest = await readInProcess({ ...base, state: first.checkpoints.at(-1)?.state ?? null });
        const destination = new Destination();
        destination.take([...first.records, ...rest.records]);
        expect(destination.lacks(sandbox.people())).toEqual([]);
      });
    },
  );

  it("goes on with a full refresh under the same ids after SIGKILL, and starts over under others", async () => {
    await withSandbox(SANDBOX, async (sandbox) => {
      const base = { sandbox, config: CONFIG, directory };
      const served = sandbox.people();
      const ids = { generation_id: 4, sync_id: 9 };
      const first = await readProcess({ ...base, state: null, fullRefresh: ids, killAfterLines: 1_600 });
      expect(first.endedBy).toBe("SIGKILL");
      const state = first.checkpoints.at(-1)?.state ?? null;
      expect(state).not.toBeNull();

      const rest = await readInProcess({ ...base, state, fullRefresh: ids });
      expect(rest.code, rest.stderr).toBe(0);
      expect(rest.records.length).toBeLessThan(served.length);
      const destination = new Destination();
      destination.take([...first.records, ...rest.records]);
      expect(destination.lacks(served)).toEqual([]);

      const other = await readInProcess({ ...base, state, fullRefresh: { ...ids, sync_id: 10 } });
      expect(other.code, other.stderr).toBe(0);
      expect(other.records).toHaveLength(served.length);
    });
  });

  it("ends in silence and not with 0 when nobody reads its output any more", async () => {
    await withSandbox({ ...SANDBOX, bytesPerSecond: 600_000 }, async (sandbox) => {
      const first = await killAndResume(sandbox, { killAfterLines: 600, closeInstead: true });
      expect(first.code).toBe(1);
      expect(first.stderr).toBe("");
    });
  });

  it("ends when nobody reads its output and the service has fallen silent, before that is a failure", async () => {
    await withSandbox({ ...SANDBOX, faults: ["stall:after=20"] }, async (sandbox) => {
      const base = { sandbox, config: CONFIG, directory, idleSeconds: 600, mostMs: 60_000 };
      const first = await readProcess({ ...base, state: null, killAfterLines: 100, closeInstead: true });
      expect(first.code).toBe(1);
    });
  });
});

describe("a process that is to end", () => {
  it("gives its locks back when it is ended by force, because nobody reads what it writes", async () => {
    const { config } = await sandboxWith({ people: 20_000, requestsPerMinute: 0 });
    const state = join(await tempDir(), "state.json");
    const args = ["read", "--config", config, "--stream", "people", "--state-file", state];
    const child = spawn(process.execPath, [CONNECTOR, ...args], { stdio: ["ignore", "pipe", "ignore"] });
    const ended = once(child, "exit");
    child.stdout.on("readable", () => {});
    await expect.poll(() => child.stdout.readableLength, { timeout: 30_000 }).toBeGreaterThan(16_000);
    // The pipe fills, and the program waits for a reader.
    await delay(1_000);
    expect(existsSync(`${state}.lock`)).toBe(true);
    child.kill("SIGTERM");
    expect((await ended)[1]).toBe("SIGTERM");
    expect(existsSync(`${state}.lock`)).toBe(false);
    child.stdout.destroy();
  });

  it.each([
    [CONNECTOR, ["check"]],
    [CONNECTOR, ["discover"]],
    [TAP, ["--test"]],
    [TAP, ["--discover"]],
  ] as const)(
    "ends at SIGTERM while the service does not answer, and judges nothing: %s %j",
    async (program, words) => {
      const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
      const asked = expect.poll(() => sandbox.requests.length, { timeout: 20_000 });
      const ended = await run(program, [...words, "--config", config], {
        started: (child) => void asked.toBeGreaterThan(0).then(() => child.kill("SIGTERM")),
      });
      expect(ended.signal).toBe("SIGTERM");
      expect(`${ended.stdout}${ended.stderr}`).not.toMatch(/FAILED|SUCCEEDED|CATALOG|"streams"|Cannot/);
    },
  );

  const canBePid1 = spawnSync("unshare", ["--pid", "--fork", "true"]).status === 0;

  it.skipIf(!canBePid1)("ends at SIGTERM with 143 as the first process of a container", async () => {
    const { sandbox, config } = await sandboxWith({ people: 5, faults: ["stall-headers:times=always"] });
    const words = ["--pid", "--fork", process.execPath, CONNECTOR, "check", "--config", config];
    const outer = spawn("unshare", words, { stdio: "ignore" });
    const ended = once(outer, "exit");
    await expect.poll(() => sandbox.requests.length, { timeout: 20_000 }).toBeGreaterThan(0);
    const inner = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8");
    process.kill(Number(inner), "SIGTERM");
    expect(await ended).toEqual([143, null]);
  });

  it("saves no state before its records have left", async () => {
    const { sandbox, config } = await sandboxWith({ people: 3_000, requestsPerMinute: 0 });
    const state = join(await tempDir(), "state.json");
    const words = ["--format", "jsonl", "--stream", "people", "--config", config, "--state-file", state];
    const child = spawn(process.execPath, [CONNECTOR, "read", ...words], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const opened = (): boolean => sandbox.requests.some(({ path }) => path.endsWith("/stream"));
    await expect.poll(opened, { timeout: 20_000 }).toBe(true);
    await delay(500);
    expect(existsSync(state), "nobody has read a byte").toBe(false);
    child.stdout.resume();
    await once(child, "close");
    expect(readFileSync(state, "utf8")).toContain("discoveredAt");
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
  it("ends a run into a folder with its place and the reason, and leaves no part", async () => {
    const { config } = await sandboxWith({ people: 6_000, requestsPerMinute: 0 });
    const output = join(await smallDisk(), "out");
    const { code, stderr } = await run(CONNECTOR, ["read", "--config", config, "--output", output]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/people.*": no space left on device/);
    expect(readdirSync(join(output, "people"))).toEqual([]);
    expect(readdirSync(output)).toEqual(["people"]);
  });

  it("ends a run that cannot save its state, and leaves the old one complete", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20, requestsPerMinute: 0 });
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
  "a run whose stdout is a file on a full disk takes no short write for a complete one, and tears no line: %s",
  async (redirect) => {
    const { config } = await sandboxWith({ people: 500, undated: 0, requestsPerMinute: 0 });
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
    expect(lines.length - ids.length).toBe(redirect === ">" ? 1 : 0);
  },
);
