import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { OutputError } from "../../src/errors.ts";
import { systemProcesses } from "../../src/files/processes.ts";
import { StateFile, type StateFileRuntime } from "../../src/run/state-file.ts";
import { parseStateText } from "../../src/state/envelopes.ts";
import { tempDir } from "../support/temp-dir.ts";

let folder: string;
let path: string;
let opened: StateFile[];

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "state.json");
  opened = [];
});
afterEach(async () => {
  for (const file of opened) await file.release();
});

const runtime: StateFileRuntime = {
  clock: systemClock,
  signal: new AbortController().signal,
  pid: process.pid,
  processes: systemProcesses(process.pid),
};

async function openFile(name = path): Promise<StateFile> {
  const file = await StateFile.open(name, runtime);
  opened.push(file);
  return file;
}

/** Removes a lock and what is left of tries to replace its file; returns how many there were. */
function takeOver(file: string): number {
  rmSync(`${file}.lock`);
  const tries = readdirSync(folder).filter((name) => name.endsWith(".tmp"));
  for (const name of tries) rmSync(join(folder, name));
  return tries.length;
}

const stateIn = async (name: string): Promise<unknown> =>
  parseStateText(await readFile(name, "utf8")).streams.get("people");

const names = async (): Promise<string[]> => (await readdir(folder)).sort();

const at = (discoveredAt: string) => ["people", { discoveredAt }] as const;

describe("StateFile", () => {
  it("is empty before there is a file, and makes none before there is a state", async () => {
    const file = await openFile();
    expect(file.saved.streams.size).toBe(0);
    await file.release();
    expect(await names()).toEqual([]);
  });

  it("replaces the file and keeps the one before", async () => {
    const file = await openFile();
    await file.save(...at("1"));
    await file.save(...at("2"));
    await file.release();
    expect(await stateIn(path)).toEqual({ discoveredAt: "2" });
    expect(await stateIn(`${path}.previous`)).toEqual({ discoveredAt: "1" });
    expect(await names()).toEqual(["state.json", "state.json.previous"]);
  });

  it("keeps what it does not know, in whatever envelope it was", async () => {
    await writeFile(path, JSON.stringify({ bookmarks: { other: { x: 1 } }, currently_syncing: "other" }));
    await (await openFile()).save("people", {});
    const saved = JSON.parse(await readFile(path, "utf8"));
    expect(saved).toEqual({ currently_syncing: "other", bookmarks: { other: { x: 1 }, people: {} } });
  });

  it("refuses a link, a folder and a device before anything is asked of the service", async () => {
    await writeFile(join(folder, "real.json"), "{}");
    await symlink(join(folder, "real.json"), path);
    await expect(openFile()).rejects.toThrow("it is a link. Name the file that it points to");
    expect(lstatSync(path).isSymbolicLink()).toBe(true);
    await expect(openFile(folder)).rejects.toThrow("it is a folder");
    await expect(openFile("/dev/null")).rejects.toThrow("it is a device");
    expect(existsSync("/dev/null.lock")).toBe(false);
    expect(await names()).toEqual(["real.json", "state.json"]);
  });

  it("makes no folder for a path that is mistyped", async () => {
    await expect(openFile(join(folder, "typo", "state.json"))).rejects.toThrow(/there is no folder ".*typo"/);
    expect(await names()).toEqual([]);
  });

  it("takes an empty file for damage, not for a first run", async () => {
    await writeFile(path, " \n");
    await expect(openFile()).rejects.toThrow(
      `Cannot use the state file "${path}": it is empty, which no run leaves behind. Put "${path}.previous" in its place`,
    );
    expect(await names()).toEqual(["state.json"]);
  });

  it("names a damaged file and the one before it, and leaves no lock", async () => {
    await writeFile(path, '{"bookmarks": {');
    await expect(openFile()).rejects.toThrow(`${path}.previous`);
    await expect(openFile(join(path, "below"))).rejects.toThrow("a part of its path is no folder");
    expect(await names()).toEqual(["state.json"]);
  });

  it("belongs to one run: the second fails and leaves nothing", async () => {
    const file = await openFile();
    await expect(openFile()).rejects.toThrow(`Cannot use "${path}": another run is using it`);
    expect(await names()).toEqual(["state.json.lock"]);
    await file.save(...at("1"));
  });

  it("is left as it was by a run that lost its lock", async () => {
    const stopped = await openFile();
    await stopped.save(...at("1"));
    await rm(`${path}.lock`);
    const file = await openFile();
    await file.save(...at("2"));
    await expect(stopped.save(...at("old"))).rejects.toThrow(OutputError);
    expect(await stateIn(path)).toEqual({ discoveredAt: "2" });
    await stopped.release();
    await file.check();
  });

  it("cannot be replaced by a run that was stopped between its last look at the lock and the rename", async () => {
    const stopped = await openFile();
    await stopped.save(...at("1"));
    let taken: unknown;
    const saving = stopped.save(...at("old"), {}, () => {
      // What a run that takes over does first: it moves the lock away and removes the unfinished try.
      taken = takeOver(path);
    });
    await expect(saving).rejects.toThrow("Cannot replace the state file");
    expect(taken).toBe(1);
    expect(await stateIn(path)).toEqual({ discoveredAt: "1" });
  });

  it("leaves a usable file, and nothing else, wherever a write breaks off", async () => {
    const file = await openFile();
    await file.save(...at("1"));
    await mkdir(`${path}.previous`);
    await expect(file.save(...at("2"))).rejects.toThrow(
      `Cannot replace the state file "${path}": it is a folder`,
    );
    expect(await stateIn(path)).toEqual({ discoveredAt: "1" });
    await file.release();
    expect(await names()).toEqual(["state.json", "state.json.previous"]);
    expect((await openFile()).saved.streams.get("people")).toEqual({ discoveredAt: "1" });
  });
});
