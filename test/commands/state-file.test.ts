import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { StateFile } from "../../src/commands/state-file.ts";
import { parseStateText } from "../../src/source/state.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "state-"));
  path = join(folder, "state.json");
});

const blobOf = async (name: string): Promise<unknown> =>
  parseStateText(await readFile(name, "utf8")).streams.get("people");

describe("StateFile", () => {
  it("is empty before there is a file, and makes none before there is a state", async () => {
    const file = await StateFile.open(join(folder, "new", "state.json"));
    expect(file.saved.streams.size).toBe(0);
    expect(await readdir(join(folder, "new"))).toEqual([]);
  });

  it("replaces the file and keeps the one before", async () => {
    const file = await StateFile.open(path);
    await file.save("people", { discoveredAt: "1" });
    expect(await readdir(folder)).toEqual(["state.json"]);
    await file.save("people", { discoveredAt: "2" });
    expect(await blobOf(path)).toEqual({ discoveredAt: "2" });
    expect(await blobOf(`${path}.previous`)).toEqual({ discoveredAt: "1" });
    expect((await readdir(folder)).sort()).toEqual(["state.json", "state.json.previous"]);
  });

  it("keeps what it does not know, in whatever envelope it was", async () => {
    await writeFile(path, JSON.stringify({ bookmarks: { other: { x: 1 } }, currently_syncing: "other" }));
    const file = await StateFile.open(path);
    await file.save("people", {});
    const saved = JSON.parse(await readFile(path, "utf8"));
    expect(saved).toEqual({ currently_syncing: "other", bookmarks: { other: { x: 1 }, people: {} } });
  });

  it("writes through a link", async () => {
    await mkdir(join(folder, "real"));
    const real = join(folder, "real", "state.json");
    await writeFile(real, "");
    await symlink(real, path);
    await (await StateFile.open(path)).save("people", { a: 1 });
    expect(await blobOf(real)).toEqual({ a: 1 });
  });

  it("names a damaged file and the one before it, and one that cannot be written", async () => {
    await writeFile(path, '{"bookmarks": {');
    await expect(StateFile.open(path)).rejects.toThrow(`${path}.previous`);
    await expect(StateFile.open(join(path, "below"))).rejects.toThrow(
      /Cannot replace the state file ".*below": E/,
    );
  });

  it("leaves a usable file wherever a write breaks off", async () => {
    const file = await StateFile.open(path);
    await file.save("people", { discoveredAt: "1" });
    await mkdir(`${path}.previous.next`);
    await expect(file.save("people", { discoveredAt: "2" })).rejects.toThrow("Cannot replace the state file");
    expect(await blobOf(path)).toEqual({ discoveredAt: "1" });
    expect((await StateFile.open(path)).saved.streams.get("people")).toEqual({ discoveredAt: "1" });
  });
});
