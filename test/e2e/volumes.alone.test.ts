import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { init } from "../../src/commands/init.ts";
import { CONNECTOR, run, TAP } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { canMount, mountAlone } from "../support/mounts.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testProcess } from "../support/terminal.ts";

/**
 * What the volume refuses: the code of the error of each operation. `mode`: of every file, whatever was asked for. `onRead`: is
 * called when a state was read.
 */
const volume = vi.hoisted(() => ({
  refuses: {} as Record<string, string>,
  mode: undefined as number | undefined,
  onRead: undefined as (() => Promise<void>) | undefined,
}));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const refusing =
    <Args extends readonly unknown[], Result>(name: string, act: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const code = volume.refuses[name];
      if (code !== undefined) throw Object.assign(new Error(`${code}: ${name}`), { code });
      return await act(...args);
    };
  const open = async (...args: Parameters<typeof real.open>) => {
    const [path] = args;
    if (String(path).endsWith(".lock")) await refusing("lock", async () => {})();
    const file = await real.open(...args);
    file.chmod = refusing("chmod", file.chmod.bind(file));
    file.chown = refusing("chown", file.chown.bind(file));
    file.sync = refusing("sync", file.sync.bind(file));
    const stat = file.stat.bind(file) as () => Promise<import("node:fs").Stats>;
    const { mode } = volume;
    if (mode !== undefined) Object.assign(file, { stat: async () => Object.assign(await stat(), { mode }) });
    return file;
  };
  const readFile = async (...args: Parameters<typeof real.readFile>) => {
    const content = await real.readFile(...args);
    if (String(args[0]).endsWith("s.json")) await volume.onRead?.();
    return content;
  };
  const { link, rename } = real;
  return { ...real, open, readFile, link: refusing("link", link), rename: refusing("rename", rename) };
});

beforeEach(() => {
  Object.assign(volume, { refuses: {}, mode: undefined, onRead: undefined });
});

const SMALL = { people: 20, undated: 2, companies: 3, sources: 2 };

/** Command lines that save a state, and where. */
const SAVING: readonly (readonly [line: string, state: string])[] = [
  ["read --state-file DIR/s.json --summary DIR/summary.json", "s.json"],
  ["read --output DIR/rows", "rows/state.json"],
  ["tap --state-file DIR/s.json", "s.json"],
];

const wordsOf = (line: string, folder: string, config: string): [program: string, args: string[]] => {
  const words = line.replaceAll("DIR", folder).split(" ");
  return line.startsWith("tap")
    ? [TAP, [...words.slice(1), "-c", config]]
    : [CONNECTOR, [...words, "-c", config]];
};

describe("a volume without rights", () => {
  it.each(
    ["EPERM", "ENOSYS", "ENOTSUP"].flatMap((code) => SAVING.map(([line, state]) => [code, line, state])),
  )("that says %s: %s saves its state in every run", async (code = "", line = "", state = "") => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const folder = await tempDir();
    volume.refuses = { chmod: code, chown: code, link: code, sync: code === "EPERM" ? "EINVAL" : code };
    const saved: string[] = [];
    for (const _ of [1, 2, 3]) {
      expect(await run(...wordsOf(line, folder, config))).toMatchObject({ code: 0 });
      saved.push(readFileSync(join(folder, state), "utf8"));
      sandbox.advance(60_000);
      sandbox.arrive(1);
    }
    expect(new Set(saved).size).toBe(3);
    expect(existsSync(join(folder, `${state}.previous`))).toBe(true);
  });

  it("takes no key where everyone could read it", async () => {
    const { sandbox } = await sandboxWith(SMALL);
    const path = join(await tempDir(), "config.json");
    await writeFile(path, "mine");
    const answer = (): Promise<number> => {
      const stdin = (): Readable => Readable.from([`y\n${sandbox.url}\n${sandbox.key}\n`]);
      return init({ config: path }, testProcess({ stdin }));
    };
    volume.refuses = { chmod: "EPERM" };
    volume.mode = 0o100777;
    await expect(answer()).rejects.toThrow("Cannot write a key to this volume: others could read it");
    expect(readFileSync(path, "utf8")).toBe("mine");
    volume.mode = undefined;
    expect(await answer()).toBe(0);
  });
});

describe("a place that takes no new file is refused before the first request, with the way out,", () => {
  it.each([
    ...SAVING.flatMap(([line]) => [
      ["lock", "EACCES", line],
      ["lock", "EROFS", line],
      ["rename", "EBUSY", line],
      ["rename", "EXDEV", line],
    ]),
    ["rename", "EBUSY", "read --summary DIR/summary.json"],
    ["rename", "ENOSYS", "read --state-file DIR/s.json"],
  ])("%s %s: %s", async (operation = "", code = "", line = "") => {
    const { sandbox, config } = await sandboxWith(SMALL);
    volume.refuses = { [operation]: code };
    const { code: exit, stdout, stderr } = await run(...wordsOf(line, await tempDir(), config));
    const isForPerson = line.includes("--output") || (operation === "rename" && line.includes("--summary"));
    expect([exit, sandbox.requests.length]).toEqual([isForPerson ? 2 : 1, 0]);
    expect(stdout + stderr).toMatch(/mount the folder, not the file alone|its volume cannot do that/);
  });

  it.skipIf(!canMount).each([
    ["", "read --state-file DIR/alone.json"],
    ["{}", "read --state-file DIR/alone.json"],
    ["{}", "tap --state-file DIR/alone.json"],
    ["", "read --summary DIR/alone.json"],
  ])("a file that is mounted alone and contains %j: %s", async (text, line) => {
    const { sandbox, config } = await sandboxWith(SMALL);
    const folder = await tempDir();
    const [file, other] = [join(folder, "file"), join(folder, "other")];
    await mkdir(other);
    await writeFile(file, text);
    mountAlone(file, join(other, "alone.json"));
    const { code, stdout, stderr } = await run(...wordsOf(line, other, config));
    expect([code, sandbox.requests.length, readFileSync(file, "utf8")]).toEqual([
      ...[line.includes("--summary") ? 2 : 1, 0, text],
    ]);
    expect(stdout + stderr).toContain("it is mounted alone");
    expect(readdirSync(other)).toEqual(["alone.json"]);
  });
});

it("a run whose lock another takes at its very start leaves the state that the other saves", async () => {
  const { sandbox, config } = await sandboxWith(SMALL);
  const folder = await tempDir();
  const state = join(folder, "s.json");
  await writeFile(state, "{}");
  volume.onRead = async () => {
    volume.onRead = undefined;
    await rm(`${state}.lock`);
    await writeFile(state, '{"bookmarks": {}}');
  };
  const { code, stdout } = await run(CONNECTOR, ["read", "-c", config, "--state-file", state]);
  expect([code, sandbox.requests.length]).toEqual([1, 0]);
  expect(stdout).toContain("Another run took it over");
  expect(readFileSync(state, "utf8")).toBe('{"bookmarks": {}}');
});
