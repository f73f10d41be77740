import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { run as runAny } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

let folder: string;

const SMALL_DISK = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];

/** Whether this machine lets a test mount a small disk in a folder of its own. */
const canMount = spawnSync("unshare", ["--mount", "mount", ...SMALL_DISK, "/mnt"]).status === 0;

beforeEach(async () => {
  folder = join(await tempDir(), "disk");
  mkdirSync(folder);
  if (canMount) execFileSync("mount", [...SMALL_DISK, folder]);
});
afterEach(() => {
  if (canMount) execFileSync("umount", ["-l", folder]);
});

describe("a full disk", () => {
  it.runIf(canMount)(
    "ends a run into a folder with its place and the reason, and leaves no part",
    async () => {
      const { config } = await sandboxWith({ people: 6_000, requestsPerMinute: 0 });
      const output = join(folder, "out");
      const { code, stderr } = await run(CONNECTOR, ["read", "--config", config, "--output", output]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/Cannot write to \\?".*people.*": no space left on device/);
      expect(stderr).not.toContain("bug");
      expect(readdirSync(join(output, "people"))).toEqual([]);
      expect(readdirSync(output)).toEqual(["people"]);
    },
  );

  it.runIf(canMount)("ends a comparison with its place and the reason, and leaves no list", async () => {
    const { sandbox, config } = await sandboxWith({ people: 6_000, requestsPerMinute: 0 });
    const [one] = sandbox.people();
    const table = await file("keys.csv", `id,discoveredAt\n${one?.id},${one?.["discoveredAt"]}\n`);
    const output = join(folder, "found");
    const args = ["reconcile", "--config", config, "--table", table, "--full", "--output", output];
    const { code, stderr } = await run(CONNECTOR, args);
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/Cannot write to \\?".*found.*": no space left on device/);
    expect(stderr).not.toContain("bug");
    expect(readdirSync(output)).toEqual([]);
  });

  it.runIf(canMount)("ends a run that cannot save its state, and leaves the old one whole", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20, requestsPerMinute: 0 });
    const state = join(folder, "state.json");
    const args = ["read", "--config", config, "--stream", "people", "--state-file", state];
    expect(await run(CONNECTOR, args)).toMatchObject({ code: 0 });
    sandbox.arrive(1);
    writeFileSync(join(folder, "filler"), Buffer.alloc(1_036_000));
    spawnSync("dd", ["if=/dev/zero", `of=${join(folder, "filler2")}`, "bs=4096"]);
    const { code, stdout } = await run(CONNECTOR, args);
    expect(code).toBe(1);
    expect(stdout).toMatch(/Cannot (replace the state file|lock) .*no space left on device/);
    const left = readdirSync(folder).filter((name) => !name.startsWith("filler"));
    expect(left.filter((name) => !name.startsWith("state.json"))).toEqual([]);
    expect(left.filter((name) => /\.tmp|\.lock/.test(name))).toEqual([]);
    spawnSync("rm", ["-f", join(folder, "filler"), join(folder, "filler2")]);
    expect(await run(CONNECTOR, args)).toMatchObject({ code: 0 });
  });

  it.runIf(process.platform === "linux").each([">", ">>"])(
    "ends a run whose stdout is a file on it, takes no short write for a whole one, and tears no line: %s",
    async (redirect) => {
      const { config } = await sandboxWith({ people: 500, undated: 0, requestsPerMinute: 0 });
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

  it("is named when stdout is on it", async () => {
    const { config } = await sandboxWith({ people: 500, requestsPerMinute: 0 });
    const script = `"$0" "$1" read --config "$2" --format jsonl --stream people > /dev/full`;
    const { code, stderr } = await runAny("sh", ["-c", script, process.execPath, CONNECTOR, config]);
    expect(code).toBe(1);
    expect(stderr).toContain("Cannot write the output: no space left on device");
  });
});
