import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { Lock, type LockRuntime, RENEW_MS, STALE_MS } from "../../../src/output/files/lock.ts";
import { systemProcesses } from "../../../src/output/files/processes.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { SimulatedClock } from "./simulated-clock.ts";

/** `wrote`: the texts of locks; with `isFull` none of them can be written. */
const disk = vi.hoisted(() => ({ wrote: [] as string[], isFull: false }));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open = async (...args: Parameters<typeof real.open>) => {
    const handle = await real.open(...args);
    const write = handle.write.bind(handle);
    handle.write = (async (text: string, at: number, encoding: BufferEncoding) => {
      if (disk.isFull) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      disk.wrote.push(text);
      return write(text, at, encoding);
    }) as typeof handle.write;
    return handle;
  };
  return { ...real, open };
});

let folder: string;
let file: string;
let clock: SimulatedClock;

beforeEach(async () => {
  Object.assign(disk, { wrote: [], isFull: false });
  folder = await tempDir();
  file = join(folder, "state.json");
  clock = new SimulatedClock();
});
afterEach(() => clock.stop());

const runtime = (process = { frozen: false }): LockRuntime => ({
  clock: clock.of(process),
  signal: new AbortController().signal,
  pid: 12,
});

/** Releases the lock after the test: Node 26 ends a program that leaves open files to the garbage collector. */
async function acquire(...args: Parameters<typeof Lock.acquire>): Promise<Lock> {
  const lock = await Lock.acquire(...args);
  onTestFinished(() => lock.release());
  return lock;
}

/** A run that holds the lock and is then killed, or stopped. `end` does what it does when it is ended by force. */
async function killedRun(): Promise<{ lock: Lock; process: { frozen: boolean }; end: () => void }> {
  const process = { frozen: false };
  const acts: (() => void)[] = [];
  const lock = await acquire(file, { ...runtime(process), atEnd: (act) => void acts.push(act) });
  process.frozen = true;
  const end = (): void => {
    for (const act of acts) act();
  };
  return { lock, process, end };
}

describe("Lock", () => {
  it.runIf(existsSync("/proc/self/fd"))("leaves no open file", async () => {
    // A file that is closed meanwhile, such as the folder's own, has no link.
    const isOurs = (fd: string): boolean => {
      const link = `/proc/self/fd/${fd}`;
      return existsSync(link) && readlinkSync(link).startsWith(file);
    };
    const lock = await acquire(file, runtime());
    expect(readdirSync("/proc/self/fd").filter(isOurs)).toHaveLength(1);
    await lock.release();
    expect(readdirSync("/proc/self/fd").filter(isOurs)).toEqual([]);
  });

  it("is next to the file, for its owner only, and is gone after the release", async () => {
    const lock = await acquire(file, runtime());
    expect(await readdir(folder)).toEqual(["state.json.lock"]);
    expect(statSync(`${file}.lock`).mode & 0o777).toBe(0o600);
    await lock.check();
    await lock.release();
    await lock.release();
    expect(await readdir(folder)).toEqual([]);
  });

  it("refuses a second run as soon as the lock is renewed, and names its owner", async () => {
    const lock = await acquire(file, runtime());
    const notices: string[] = [];
    const second = acquire(file, { ...runtime(), notify: (text) => notices.push(text) });
    await expect(second).rejects.toThrow(
      /^Cannot use ".*state\.json": another run is using it \(started 2026-03-20T00:00:00\.000Z on .+, process 12\), and keeps its lock ".*state\.json\.lock" alive\. Wait/,
    );
    expect(clock.now).toBeLessThan(2 * RENEW_MS);
    expect(notices).toEqual([expect.stringContaining("If it does not change within 60 s")]);
    await lock.check();
  });

  it("is taken over from a run that was killed, after 60 seconds without a change and no sooner", async () => {
    await killedRun();
    const lock = await acquire(file, runtime());
    expect(clock.now).toBeGreaterThanOrEqual(STALE_MS);
    expect(clock.now).toBeLessThan(STALE_MS + 12_000);
    await lock.check();
  });

  it("is taken as soon as the run that had it ends", async () => {
    const first = await acquire(file, runtime());
    const second = acquire(file, runtime());
    await first.release();
    await (await second).release();
    expect(clock.now).toBeLessThan(STALE_MS);
  });

  it("belongs to one of many runs that take over at the same moment", async () => {
    for (let round = 0; round < 2; round += 1) {
      await killedRun();
      const tries = await Promise.allSettled([1, 2, 3, 4, 5, 6].map(() => acquire(file, runtime())));
      const locks = tries.flatMap((attempt) => (attempt.status === "fulfilled" ? [attempt.value] : []));
      const checks = await Promise.allSettled(locks.map((lock) => lock.check()));
      expect(checks.filter(({ status }) => status === "fulfilled").length).toBe(1);
      for (const lock of locks) await lock.release();
      expect(await readdir(folder)).toEqual([]);
    }
  });

  it("ends the run that lost it while it was stopped, and leaves the new one alone", async () => {
    const { lock: stopped, process, end } = await killedRun();
    const lock = await acquire(file, runtime());
    process.frozen = false;
    await expect(stopped.check()).rejects.toThrow("is gone. Another run took it over");
    end();
    await stopped.release();
    await lock.check();
    expect(existsSync(`${file}.lock`)).toBe(true);
  });

  it("is never renewed in the name of another run", async () => {
    const { process } = await killedRun();
    const lock = await acquire(file, runtime());
    process.frozen = false;
    await clock.of().sleep(30_000);
    expect(JSON.parse(await readFile(`${file}.lock`, "utf8")).renewals).toMatch(/^0+[2345]$/);
    await lock.check();
  });

  it("does not count the time in which the observer itself was asleep", async () => {
    await acquire(file, runtime());
    const asleep = { ...clock.of(), monotonic: () => clock.now * 1_000 };
    await expect(acquire(file, { ...runtime(), clock: asleep })).rejects.toThrow("another run is using it");
  });

  it.each([
    ["a pipe", (path: string) => execFileSync("mkfifo", [path])],
    ["a link that leads nowhere", (path: string) => symlink("nowhere", path)],
  ])("waits for no lock that is %s", async (_, make) => {
    await make(`${file}.lock`);
    await expect(acquire(file, runtime())).rejects.toThrow(/^Cannot read the lock ".*": it is not a regular/);
  });

  it("shows nothing of a lock that another program wrote", async () => {
    const fields = { started: "\u001b[31m", host: "a\nb", pid: "1", token: "x" };
    await writeFile(`${file}.lock`, JSON.stringify(fields));
    const notices: string[] = [];
    await (await acquire(file, { ...runtime(), notify: (text) => notices.push(text) })).release();
    expect(notices.join()).toMatch(/^Found the lock "[^"]*"\. If/);
  });

  it("names its owner, and changes every 10 seconds at a constant length", async () => {
    await acquire(file, { ...runtime(), processes: { ownName: "its name", stateOf: () => "unknown" } });
    await clock.of().sleep(3.5 * RENEW_MS);
    expect(disk.wrote.map((text) => JSON.parse(text))).toEqual(
      [0, 1, 2, 3].map((renewals) => ({
        ...{ token: expect.stringMatching(/^[0-9a-f]{32}$/), started: "2026-03-20T00:00:00.000Z" },
        ...{ host: hostname(), pid: 12, process: "its name", renewals: `00000000000${renewals}` },
      })),
    );
    expect(new Set(disk.wrote.map(({ length }) => length)).size).toBe(1);
    expect(await readFile(`${file}.lock`, "utf8")).toBe(disk.wrote.at(-1));
  });

  it("is not taken where the disk is full, and leaves nothing there", async () => {
    disk.isFull = true;
    await expect(acquire(file, runtime())).rejects.toThrow(`Cannot lock "${file}": no space left on device`);
    expect(await readdir(folder)).toEqual([]);
  });

  it("continues after a renewal that failed", async () => {
    const lock = await acquire(file, runtime());
    disk.isFull = true;
    await clock.of().sleep(2.5 * RENEW_MS);
    disk.isFull = false;
    await clock.of().sleep(RENEW_MS);
    expect(disk.wrote.map((text) => JSON.parse(text).renewals)).toEqual(["000000000000", "000000000003"]);
    await lock.check();
  });

  it("is looked for twice, because who has moved it away by mistake puts it back at once", async () => {
    const slept: number[] = [];
    const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
      if (signal !== undefined) return clock.of().sleep(ms, signal);
      slept.push(ms);
      for (let nth = 0; nth < 3; nth++) await readdir(folder);
      if (slept.length === 1) await rename(`${file}.away`, `${file}.lock`);
    };
    const lock = await acquire(file, { ...runtime(), clock: { ...clock.of(), sleep } });
    await rename(`${file}.lock`, `${file}.away`);
    await lock.check();
    expect(slept).toEqual([100]);
    await rename(`${file}.lock`, `${file}.away`);
    await expect(lock.check()).rejects.toThrow(
      `Cannot continue with "${file}": its lock "${file}.lock" is gone. Another run took it over, or a person removed it. ` +
        "All that was saved is kept. Run again when no other run uses it",
    );
  });

  describe("on the machine of its holder", () => {
    const watched = (): never => expect.fail("the lock was watched");
    const local = (): LockRuntime => ({ ...runtime(), processes: systemProcesses(process.pid) });

    it("refuses a second run without watching while the holder runs", async () => {
      await acquire(file, local());
      const second = acquire(file, { ...local(), notify: watched });
      await expect(second).rejects.toThrow("another run is using it");
    });

    it.runIf(existsSync("/proc/self/ns/pid"))(
      "is taken over without watching from a process that was killed",
      async () => {
        const holder = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
        await once(holder, "spawn");
        const name = systemProcesses(process.pid).ownName?.split(" ").slice(0, 2).join(" ");
        const stat = readFileSync(`/proc/${holder.pid}/stat`, "utf8");
        const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
        const left = { token: "other", process: `${name} ${holder.pid} ${start}` };
        await writeFile(`${file}.lock`, JSON.stringify(left));
        await expect(acquire(file, local())).rejects.toThrow("another run is using it");
        holder.kill("SIGKILL");
        await once(holder, "exit");
        await acquire(file, { ...local(), notify: watched });
      },
    );

    it("is put back if it is another run's that took over in the meantime", async () => {
      const [ended, living] = ["ended", "living"].map((token) => JSON.stringify({ token, process: "p" }));
      await writeFile(`${file}.lock`, ended ?? "");
      const stateOf = (): "ended" => {
        writeFileSync(`${file}.lock`, living ?? "");
        return "ended";
      };
      const processes = { ownName: undefined, stateOf };
      await expect(acquire(file, { ...runtime(), processes })).rejects.toThrow("another run is using it");
      expect(await readFile(`${file}.lock`, "utf8")).toBe(living);
      expect(await readdir(folder)).toEqual(["state.json.lock"]);
    });

    it("is watched when its holder belongs to another boot or container", async () => {
      const other = "00000000-0000-4000-8000-000000000000 pid:[4026531836] 1 1";
      await writeFile(`${file}.lock`, JSON.stringify({ token: "other", process: other }));
      const before = clock.now;
      await acquire(file, local());
      expect(clock.now - before).toBeGreaterThanOrEqual(STALE_MS);
    });
  });
});
