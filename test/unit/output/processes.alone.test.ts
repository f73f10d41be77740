import { beforeEach, describe, expect, it, vi } from "vitest";
import { systemProcesses } from "../../../src/output/files/processes.ts";

/** The machine's /proc, as each test has it. */
const proc = vi.hoisted(() => new Map<string, string>());
vi.mock("node:fs", async (original) => {
  const read = (path: string): string => {
    const text = proc.get(path);
    if (text === undefined) throw Object.assign(new Error(path), { code: "ENOENT" });
    return text;
  };
  return { ...(await original<object>()), readFileSync: read, readlinkSync: read };
});

const BOOT = "0a1b2c3d-0000-4000-8000-00000000000f";

/** A line of /proc/<pid>/stat: the name of the program may hold anything. */
function start(pid: number, ticks: number, state = "S"): void {
  const fields = [state, ...Array.from({ length: 18 }, () => "7"), ticks, "9"].join(" ");
  proc.set(`/proc/${pid}/stat`, `${pid} (a) Z (b) ${fields}`);
}

describe("systemProcesses()", () => {
  beforeEach(() => {
    proc.clear();
    proc.set("/proc/self", "12");
    proc.set("/proc/sys/kernel/random/boot_id", `${BOOT}\n`);
    proc.set("/proc/self/ns/pid", "pid:[4026531836]");
    start(1, 3);
    start(12, 500);
    start(13, 600);
  });

  const nameOf = (pid: number, ticks: number, boot = BOOT): string =>
    `${boot} pid:[4026531836] ${pid} ${ticks}`;

  it("gives each process a name that is never used again", () => {
    expect(systemProcesses(12).ownName).toBe(nameOf(12, 500));
  });

  it.each([
    ["runs", nameOf(13, 600), "running", () => {}],
    ["has ended, and its id is used again", nameOf(13, 599), "ended", () => {}],
    ["has ended", nameOf(14, 600), "ended", () => {}],
    ["is a zombie, which nobody reaps", nameOf(13, 600), "ended", () => start(13, 600, "Z")],
    ["is dead", nameOf(13, 600), "ended", () => start(13, 600, "X")],
    ["is of another boot", nameOf(13, 600, BOOT.replace("f", "e")), "unknown", () => {}],
    [
      "cannot be seen, because other users' processes are hidden",
      nameOf(14, 600),
      "unknown",
      () => proc.delete("/proc/1/stat"),
    ],
    ["has no such name", "13", "unknown", () => {}],
  ] as const)("knows a process that %s", (_what, name, state, change) => {
    const processes = systemProcesses(12);
    change();
    expect(processes.stateOf(name)).toBe(state);
  });

  it.each(["/proc/self", "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid", "/proc/12/stat"])(
    "knows nothing without %s",
    (path) => {
      proc.delete(path);
      const processes = systemProcesses(12);
      expect([processes.ownName, processes.stateOf(nameOf(13, 600))]).toEqual([undefined, "unknown"]);
    },
  );

  it("reports every process as unknown if /proc shows another namespace", () => {
    proc.set("/proc/self", "99");
    expect(systemProcesses(12).ownName).toBeUndefined();
  });
});
