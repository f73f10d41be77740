import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { type AirbyteMessage, idsOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

const SETTINGS = { max_window_rows: 1_000, num_workers: 1, idle_timeout_seconds: 600 };

/** Does something to a process after this many bytes of its output. */
const after = (most: number, act: (child: ChildProcess) => void) => (child: ChildProcess) => {
  let bytes = 0;
  child.stdout?.on("data", ({ length }: string) => {
    if (bytes < most && bytes + length >= most) act(child);
    bytes += length;
  });
};

it.each([
  ["SIGKILL", 10],
  ["SIGKILL", 70_000],
  ["SIGKILL", 500_000],
  ["SIGTERM", 450_000],
] as const)(
  "a run that %s ends after %i bytes loses no row: the next run continues",
  async (...[signal, most]) => {
    const account = { people: 2_400, undated: 4, days: 100, bytesPerSecond: 600_000 };
    const { sandbox, config } = await sandboxWith(account, SETTINGS);
    const args = ["read", "--config", config, "--stream", "people"];
    const first = await run(CONNECTOR, args, { started: after(most, (child) => void child.kill(signal)) });
    expect([first.signal, first.stderr]).toEqual([signal, ""]);
    if (signal !== "SIGKILL") expect(first.stdout).toMatch(/\n$/);
    const lines = first.stdout.split("\n").slice(0, -1);
    const messages = lines.map((line): AirbyteMessage => JSON.parse(line));
    const states = messages.flatMap(({ state }) => state ?? []);
    expect(states.length > 0).toBe(most > 10);
    const rest = await connector([...args, "--state", await file("state.json", states.slice(-1))]);
    expect(rest.code, rest.stdout).toBe(0);
    const ids = [...idsOf(messages), ...idsOf(rest.messages)];
    expect(new Set(ids)).toEqual(new Set(sandbox.people().map(({ id }) => id)));
  },
);

it("a run whose output loses its reader ends at once, even if the service is silent", async () => {
  const { config } = await sandboxWith(
    { people: 2_400, faults: ["stall:after=20"] },
    { ...SETTINGS, num_workers: 2 },
  );
  const started = after(20_000, ({ stdout }) => void stdout?.destroy());
  const args = ["read", "--config", config, "--stream", "people"];
  expect(await run(CONNECTOR, args, { started })).toMatchObject({ code: 1 });
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
