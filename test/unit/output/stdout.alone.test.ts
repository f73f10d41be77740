import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { wholeOutput } from "../../../src/output/files/stdout.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** How many bytes the disk still takes at once, write by write; then all. */
const disk = vi.hoisted(() => ({ takes: [] as (number | "full")[] }));
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const writeSync = (fd: number, data: Buffer | string, at = 0): number => {
    const bytes = Buffer.from(data as string);
    const most = disk.takes.shift() ?? bytes.length - at;
    if (most === "full") throw Object.assign(new Error(most), { code: "ENOSPC" });
    return real.writeSync(fd, bytes, at, Math.min(most, bytes.length - at));
  };
  return { ...real, writeSync };
});

let path: string;

beforeEach(async () => {
  path = join(await tempDir(), "out.jsonl");
  disk.takes = [];
});

/** The output of a process whose stdout is the file. */
function outputTo(flags: string): Writable {
  const fd = openSync(path, flags);
  onTestFinished(() => closeSync(fd));
  return wholeOutput(Object.assign(new PassThrough(), { fd }));
}

/** The error that a write ends with. */
const written = (output: Writable, text: string): Promise<Error | null | undefined> =>
  new Promise((resolve) => {
    output.once("error", () => {});
    output.write(text, resolve);
  });

it("is the stream itself where that is no file", () => {
  for (const fd of [openSync("/dev/null", "w"), 1_000_000]) {
    const stream = Object.assign(new PassThrough(), { fd });
    expect(wholeOutput(stream)).toBe(stream);
    if (fd < 1_000_000) closeSync(fd);
  }
});

it.each([
  ["", "a\nb\nc"],
  ["before\n", "before\na\nb\nc"],
  ["before\ntorn", "before\ntorn\na\nb\nc"],
])("begins a line of its own behind %j, once", async (before, after) => {
  writeFileSync(path, before);
  const output = outputTo("a");
  for (const text of ["a\nb", "\n", "c"]) expect(await written(output, text)).toBeFalsy();
  expect(readFileSync(path, "utf8")).toBe(after);
});

it("has every byte where the disk takes a few at a time", async () => {
  const output = outputTo("a");
  disk.takes = [1, 3, 2, 1];
  expect(await written(output, "h\u00e9llo\nworld\n")).toBeFalsy();
  expect(readFileSync(path, "utf8")).toBe("h\u00e9llo\nworld\n");
});

it("fails where the disk is full, and leaves all bytes that it took", async () => {
  const output = outputTo("a");
  disk.takes = [2, "full"];
  expect(await written(output, "a1\nb22\n")).toMatchObject({ code: "ENOSPC" });
  expect(readFileSync(path, "utf8")).toBe("a1");
});
