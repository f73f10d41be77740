import { describe, expect, it, vi } from "vitest";
import type { RawLine } from "../../../src/sync/event.ts";
import { close, open } from "../../support/events.ts";
import {
  check,
  expectedRows,
  FOLDER,
  hasCrash,
  linesIn,
  ONE_ROW,
  openFolder,
  type Plan,
  rowsOf,
  runtimeOf,
  visible,
} from "../../support/folder-chain.ts";
import { MemoryDisk, mounted } from "../../support/memory-disk.ts";

vi.mock("node:fs/promises", async (original) =>
  (await import("../../support/memory-disk.ts")).standIns(original),
);

describe("a folder on a disk that fails", () => {
  it.each([
    ["removes its parts where the new state cannot have taken effect", "state.json.", 0],
    ["leaves its parts to the next run where it can", FOLDER, 1],
  ])("%s", async (_what, refused, left) => {
    const disk = new MemoryDisk();
    mounted.disk = disk;
    disk.start();
    const output = await openFolder(runtimeOf(0), 1);
    const stream = "people";
    const state = { version: 1, discoveredAt: "1", full_refresh: null };
    await output.emit(open(stream));
    await output.emit({ kind: "records", stream, lines: rowsOf(0, 1), at: 0, window: 0 });
    disk.refuses = (path) => path === refused || path.startsWith(`${FOLDER}/${refused}`);
    await expect(output.emit({ kind: "checkpoint", stream, windows: 1, state })).rejects.toThrow(
      "Cannot replace the state file",
    );
    disk.refuses = () => false;
    await output.release();
    expect([...disk.files(FOLDER).keys()].filter((path) => path.includes(".part"))).toHaveLength(left);
    await (await openFolder(runtimeOf(1), 1)).release();
    expect(linesIn(visible(disk, stream))).toEqual(expectedRows(disk, [1]));
    expect(linesIn(visible(disk, stream))).toHaveLength(left);
  });
});

it.each(["kill", "power"] as const)(
  "a folder contains exactly the rows that its state covers after a crash (%s) at each operation of a run",
  async (end) => {
    const choices = [0, 1, 1, 0];
    const one: Plan = {
      ...ONE_ROW,
      windows: [2, 1],
      width: 2,
      choices: Array(5).fill(choices).flat(),
      ...{ commitBytes: 12, early: 2 },
    };
    const operations = await check([one]);
    for (let crashAt = 1; crashAt <= operations; crashAt += 1) await check([{ ...one, end, crashAt }, one]);
  },
);

describe("rows that every run reads again", () => {
  const person = (id: string): RawLine => `{"id":"${id}"}` as RawLine;

  /** A run that reads these people. */
  async function readAgain(pid: number, ids: string): Promise<void> {
    const sink = await openFolder(runtimeOf(pid), 1);
    const lines = [...ids].map(person);
    const state = { version: 1, discoveredAt: ids, full_refresh: null };
    await sink.emit(open("people"));
    await sink.emit({ kind: "records", stream: "people", lines, at: 0, window: 0, why: "lookback" });
    await sink.emit({ kind: "checkpoint", stream: "people", windows: 1, state });
    await sink.emit(close("people"));
    await sink.release();
  }

  it.each([
    ["kill", false],
    ["power", false],
    ["kill", true],
    ["power", true],
  ] as const)(
    "are all there after a crash (%s), and only once unless files were taken: %s",
    async (end, isTaken) => {
      for (let crashAt = 1, isOver = false; !isOver; crashAt += 1) {
        const disk = new MemoryDisk();
        mounted.disk = disk;
        disk.start();
        await readAgain(0, "ab");
        disk.start(crashAt);
        isOver = await readAgain(1, "abc").then(
          () => true,
          (error: unknown) => {
            if (!hasCrash(error)) throw error;
            return false;
          },
        );
        let choice = crashAt;
        disk.crash(end, (below) => choice++ % below);
        const taken = isTaken ? visible(disk, "people").slice(-1) : [];
        for (const [path] of taken) disk.take(path);
        disk.start();
        await readAgain(2, "abcd");
        const lines = linesIn([...taken, ...visible(disk, "people")]);
        expect([...new Set(lines)].toSorted()).toEqual([..."abcd"].map(person));
        if (!isTaken) expect(lines).toHaveLength(4);
      }
    },
  );
});
