import { lstatSync, statSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import {
  makeFolder,
  publish,
  removeLeftovers,
  replaceFile,
  syncFolder,
} from "../../../src/output/files/replace.ts";
import { tempDir, textsIn } from "../../support/temp-dir.ts";

/** `did`: what was done to the disk, in order; `failure`: what a folder says that is to be synced. */
const system = vi.hoisted(() => ({
  mayChown: true,
  did: [] as string[],
  failure: undefined as string | undefined,
}));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const shown = (path: unknown): string =>
    String(path)
      .replace(/.*\//, "")
      .replace(/[0-9a-f]{16}/, "<random>");
  const noted =
    <Args extends readonly unknown[], Result>(name: string, act: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> => {
      const paths = args.filter((one) => typeof one === "string" && one.includes("/")).map(shown);
      system.did.push([name, ...paths].join(" "));
      return act(...args);
    };
  const open = async (...args: Parameters<typeof real.open>) => {
    const file = await real.open(...args);
    const [sync, close] = [file.sync.bind(file), file.close.bind(file)];
    const name = shown(args[0]);
    file.sync = async () => {
      system.did.push(`sync ${name}`);
      const { failure } = system;
      if (failure !== undefined && args[1] === "r") throw Object.assign(new Error(), { code: failure });
      await sync();
    };
    file.close = async () => {
      system.did.push(`close ${name}`);
      await close();
    };
    const chown = file.chown.bind(file);
    file.chown = async (...ids) =>
      system.mayChown ? chown(...ids) : Promise.reject(Object.assign(new Error(), { code: "EPERM" }));
    return file;
  };
  const { rename, link, mkdir } = real;
  const told = { rename: noted("rename", rename), link: noted("link", link), mkdir: noted("mkdir", mkdir) };
  return { ...real, open, ...told };
});

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "state.json");
  Object.assign(system, { mayChown: true, did: [], failure: undefined });
});

const modeOf = (name: string): number => statSync(name).mode & 0o777;

describe("replaceFile()", () => {
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

  it("is on the disk before it takes the name, and the name is on the disk before anything else is done", async () => {
    await writeFile(path, "1");
    const beforeRename = async (): Promise<void> => void system.did.push("asked");
    await replaceFile(path, "2", { keepPrevious: true, beforeRename });
    const name = folder.replace(/.*\//, "");
    expect(system.did).toEqual([
      ...["sync state.json.<random>.tmp", "close state.json.<random>.tmp"],
      ...["link state.json state.json.<random>.tmp", "rename state.json.<random>.tmp state.json.previous"],
      ...["asked", "rename state.json.<random>.tmp state.json", `sync ${name}`, `close ${name}`],
    ]);
  });

  it.each(["EIO", "ENOSPC", "EDQUOT"])("fails where the folder's sync says %s", async (code) => {
    system.failure = code;
    for (const act of [() => replaceFile(path, "1"), () => syncFolder(folder), () => makeFolder(folder)])
      await expect(act()).rejects.toMatchObject({ code });
    expect(system.did.at(-1)).toMatch(/^close/);
  });

  it("does not follow a link of another user at its .previous", async () => {
    const other = join(folder, "other");
    await writeFile(other, "precious");
    await symlink(other, `${path}.previous`);
    await replaceFile(path, "1", { keepPrevious: true });
    await replaceFile(path, "2", { keepPrevious: true });
    expect(await readFile(other, "utf8")).toBe("precious");
    expect(lstatSync(`${path}.previous`).isFile()).toBe(true);
  });
});

it("publish() does not replace another file or folder", async () => {
  const [part, full] = [join(folder, ".part"), join(folder, "full-000000001")];
  await writeFile(part, "new");
  await publish(part, path);
  await writeFile(part, "newer");
  await mkdir(full);
  for (const taken of [path, full])
    await expect(publish(part, taken)).rejects.toThrow(
      `Cannot publish "${part}" as "${taken}": that name is taken`,
    );
  expect(await textsIn(folder)).toMatchObject({ "state.json": "new", ".part": "newer" });
});

describe("removeLeftovers()", () => {
  it("removes what killed runs left of this file, and nothing else", async () => {
    const random = "0123456789abcdef";
    const left = ["", ".lock", `.${random}.tmp`].map((middle) => `${path}${middle}.${random}.tmp`);
    const others = [
      ...["state.json", "state.json.previous", "state.json.tmp", `other.${random}.tmp`, "state.json.lock"],
      ...[`state.json.${random}`, `state.json.${random}0.tmp`, `state.json.${random.slice(1)}.tmp`],
      ...[`state.json.x${random}.tmp`, `state.json.${random}.tmp.x`, `x.state.json.${random}.tmp`],
    ];
    for (const name of [...left, ...others.map((name) => join(folder, name))]) await writeFile(name, "");
    await removeLeftovers(path);
    expect((await readdir(folder)).sort()).toEqual([...others].sort());
    await removeLeftovers(join(folder, "nowhere", "state.json"));
  });
});

describe("makeFolder()", () => {
  it("makes it for its owner only, so that it survives a crash, and takes one that is there", async () => {
    const made = join(folder, "made");
    const name = folder.replace(/.*\//, "");
    await makeFolder(made);
    expect(modeOf(made)).toBe(0o700);
    await chmod(made, 0o750);
    await makeFolder(made);
    expect(modeOf(made)).toBe(0o750);
    const [act, ...rest] = ["mkdir made", `sync ${name}`, `close ${name}`];
    expect(system.did).toEqual([act, ...rest, act, ...rest]);
  });
});
