import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, statSync } from "node:fs";
import { chmod, chown, link, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { publish, removeLeftovers, replaceFile, statReplaceable } from "../../src/files/replace.ts";
import { tempDir, textsIn } from "../support/temp-dir.ts";

const system = vi.hoisted(() => ({ mayChown: true }));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open = async (...args: Parameters<typeof real.open>) => {
    const file = await real.open(...args);
    const chown = file.chown.bind(file);
    file.chown = async (...ids) =>
      system.mayChown ? chown(...ids) : Promise.reject(Object.assign(new Error(), { code: "EPERM" }));
    return file;
  };
  return { ...real, open };
});

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "state.json");
  system.mayChown = true;
});

const modeOf = (name: string): number => statSync(name).mode & 0o777;

describe("replaceFile()", () => {
  it("makes a new file for its owner only", async () => {
    await replaceFile(path, "1");
    expect([await textsIn(folder), modeOf(path)]).toEqual([{ "state.json": "1" }, 0o600]);
  });

  it("keeps mode and owner of the file that it replaces", async () => {
    await writeFile(path, "1");
    await chmod(path, 0o640);
    if (process.getuid?.() === 0) await chown(path, 1234, 5678);
    const { uid, gid } = statSync(path);
    await replaceFile(path, "2");
    expect(modeOf(path)).toBe(0o640);
    expect(statSync(path)).toMatchObject({ uid, gid });
  });

  it("leaves the rights to the owner alone where the file may not be given to its old group", async () => {
    await writeFile(path, "1");
    for (const mayChown of [false, true]) {
      await chmod(path, 0o664);
      system.mayChown = mayChown;
      await replaceFile(path, "2");
      expect(modeOf(path)).toBe(mayChown ? 0o664 : 0o600);
    }
  });

  it("keeps the file before as .previous, when asked", async () => {
    for (const text of ["1", "2", "3"]) await replaceFile(path, text, { keepPrevious: true });
    expect(await textsIn(folder)).toEqual({ "state.json": "3", "state.json.previous": "2" });
  });

  it("leaves the old file and nothing else when it is stopped before the rename", async () => {
    await writeFile(path, "1");
    const lost = async (): Promise<void> => {
      throw new Error("the lock is gone");
    };
    await expect(replaceFile(path, "2", { beforeRename: lost })).rejects.toThrow("the lock is gone");
    expect(await textsIn(folder)).toEqual({ "state.json": "1" });
  });

  it("leaves nothing behind where a killed run has kept the same file already", async () => {
    await writeFile(path, "1");
    await link(path, `${path}.previous`);
    await replaceFile(path, "2", { keepPrevious: true });
    expect(await textsIn(folder)).toEqual({ "state.json": "2", "state.json.previous": "1" });
  });

  it("does not follow a link that somebody laid out as its .previous", async () => {
    const other = join(folder, "other");
    await writeFile(other, "precious");
    await symlink(other, `${path}.previous`);
    await replaceFile(path, "1", { keepPrevious: true });
    await replaceFile(path, "2", { keepPrevious: true });
    expect(await readFile(other, "utf8")).toBe("precious");
    expect(lstatSync(`${path}.previous`).isFile()).toBe(true);
  });

  it("leaves no part of a file that the disk has no room for", async () => {
    await mkdir(`${path}.previous`);
    await writeFile(path, "1");
    await expect(replaceFile(path, "2", { keepPrevious: true })).rejects.toThrow();
    expect(await textsIn(folder)).toEqual({ "state.json": "1", "state.json.previous": null });
  });
});

describe("publish()", () => {
  it("gives a file its name once, and never takes the name of another", async () => {
    const part = join(folder, ".part");
    await writeFile(part, "new");
    await publish(part, path);
    expect(await textsIn(folder)).toEqual({ "state.json": "new" });
    // A reader took it, or it was published before.
    await publish(part, path);
    await writeFile(part, "newer");
    await expect(publish(part, path)).rejects.toThrow(
      `Cannot publish "${part}" as "${path}": that name is taken`,
    );
    const full = join(folder, "full-000000001");
    await mkdir(full);
    await expect(publish(part, full)).rejects.toThrow("that name is taken");
    expect(await textsIn(folder)).toMatchObject({ "state.json": "new", ".part": "newer" });
  });
});

describe("statReplaceable()", () => {
  it.each<[string, () => Promise<unknown> | unknown]>([
    ["a link. Name the file that it points to", () => symlink(join(folder, "nowhere"), path)],
    ["a folder. Name a regular file", () => mkdir(path)],
    ["a named pipe", () => execFileSync("mkfifo", [path])],
    ["a socket", () => once(createServer().unref().listen(path), "listening")],
  ])("refuses %s", async (what, make) => {
    await make();
    const { ino } = lstatSync(path);
    await expect(statReplaceable(path)).rejects.toThrow(`Cannot replace the file "${path}": it is ${what}`);
    await expect(replaceFile(path, "1")).rejects.toThrow(`it is ${what}`);
    expect(lstatSync(path).ino).toBe(ino);
  });

  it("refuses a device", async () => {
    // Only asked about: a mistake here would replace the machine's own device.
    await expect(statReplaceable("/dev/null")).rejects.toThrow("it is a device");
  });
});

describe("removeLeftovers()", () => {
  it("removes what killed runs left of this file, and nothing else", async () => {
    const left = `${path}.0123456789abcdef.tmp`;
    const others = ["state.json", "state.json.previous", "state.json.tmp", "other.0123456789abcdef.tmp"];
    for (const name of [left, ...others.map((name) => join(folder, name))]) await writeFile(name, "");
    await removeLeftovers(path);
    expect((await readdir(folder)).sort()).toEqual([...others].sort());
  });
});
