import { existsSync, readdirSync, rmSync } from "node:fs";
import { rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { OutputError } from "../../../src/base/errors.ts";
import type { LockRuntime } from "../../../src/output/files/lock.ts";
import { systemProcesses } from "../../../src/output/files/processes.ts";
import { StateFile } from "../../../src/output/state-file.ts";
import { errorOf } from "../../support/session.ts";
import { tempDir, textsIn } from "../../support/temp-dir.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "state.json");
});

const runtime: LockRuntime = {
  clock: systemClock,
  signal: new AbortController().signal,
  pid: process.pid,
  processes: systemProcesses(process.pid),
};

async function openFile(name = path): Promise<StateFile> {
  const file = await StateFile.open(name, runtime);
  onTestFinished(() => file.lock.release());
  return file;
}

const at = (discoveredAt: string) => ["people", { discoveredAt }] as const;
const textAt = (discoveredAt: string): string =>
  `{"bookmarks":{"people":{"discoveredAt":"${discoveredAt}"}}}\n`;

/** A run that saved the first state. */
async function openSaved(): Promise<StateFile> {
  const file = await openFile();
  await file.save(...at("1"));
  return file;
}

describe("StateFile", () => {
  it("replaces the file and keeps the one before", async () => {
    const file = await openSaved();
    await file.save(...at("2"));
    await file.lock.release();
    expect(await textsIn(folder)).toEqual({ "state.json": textAt("2"), "state.json.previous": textAt("1") });
  });

  it("keeps what it does not know, in whatever envelope it was", async () => {
    await writeFile(path, JSON.stringify({ bookmarks: { other: { x: 1 }, people: {} }, mine: [2] }));
    await (await openFile()).save("people", { y: 3 });
    const { "state.json": saved } = await textsIn(folder);
    expect(saved).toBe('{"mine":[2],"bookmarks":{"other":{"x":1},"people":{"y":3}}}\n');
  });

  it("refuses a link, a folder, a device and a mistyped path before anything is asked of the service", async () => {
    await writeFile(join(folder, "real.json"), "{}");
    await symlink(join(folder, "real.json"), path);
    await expect(openFile()).rejects.toThrow("it is a link, a pipe or a device. Name a regular file");
    await expect(openFile(folder)).rejects.toThrow("Name a regular file");
    await expect(openFile("/dev/null")).rejects.toThrow("Name a regular file");
    expect(existsSync("/dev/null.lock")).toBe(false);
    await expect(openFile(join(folder, "typo", "state.json"))).rejects.toThrow(/there is no folder ".*typo"/);
    expect(await textsIn(folder)).toEqual({ "real.json": "{}", "state.json": "{}" });
  });

  it.each([
    [" \n", "it is empty. "],
    ['{"bookmarks": {', "it is not JSON, and has no line with a STATE message. "],
  ])(
    "refuses a file that contains %j as damaged, names the earlier file if there is one, and leaves no lock",
    async (text, why) => {
      await writeFile(path, text);
      expect((await errorOf(openFile())).message).not.toContain(".previous");
      await writeFile(`${path}.previous`, textAt("1"));
      const { message } = await errorOf(openFile());
      expect(message).toContain(`Cannot use the state file "${path}": ${why}`);
      expect(message).toContain(`"${path}.previous"`);
      expect(message).not.toContain("Error");
      await expect(openFile(join(path, "below"))).rejects.toThrow("a part of its path is a file");
      expect(await textsIn(folder)).toEqual({ "state.json": text, "state.json.previous": textAt("1") });
    },
  );

  it("is left as it was by a run that lost its lock", async () => {
    const stopped = await openSaved();
    await rm(`${path}.lock`);
    const file = await openFile();
    await file.save(...at("2"));
    await expect(stopped.save(...at("old"))).rejects.toThrow(OutputError);
    expect(await textsIn(folder)).toMatchObject({ "state.json": textAt("2") });
    await stopped.lock.release();
    await file.lock.check();
  });

  it("cannot be replaced by a run that was stopped between its last look at the lock and the rename", async () => {
    const stopped = await openSaved();
    let taken: readonly string[] = [];
    const saving = stopped.save(...at("old"), {}, () => {
      // What a run that takes over does first: it moves the lock away and removes the unfinished try.
      rmSync(`${path}.lock`);
      taken = readdirSync(folder).filter((name) => name.endsWith(".tmp"));
      for (const name of taken) rmSync(join(folder, name));
    });
    await expect(saving).rejects.toThrow("Cannot replace the state file");
    expect(taken).toHaveLength(1);
    expect(await textsIn(folder)).toMatchObject({ "state.json": textAt("1") });
  });
});
