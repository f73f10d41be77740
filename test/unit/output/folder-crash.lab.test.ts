import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { replaceFiles } from "../../../src/commands/output-compact.ts";
import { Part } from "../../../src/output/files/part.ts";
import { newPartName, recover, startName, visibleFiles } from "../../../src/output/folder-state.ts";
import { StateFile } from "../../../src/output/state-file.ts";
import {
  check,
  described,
  expectedRows,
  FOLDER,
  hasCrash,
  linesIn,
  ONE_ROW,
  openFolder,
  plan,
  play,
  runtimeOf,
  visible,
} from "../../support/folder-chain.ts";
import { MemoryDisk, mounted } from "../../support/memory-disk.ts";
import { runs } from "../../support/runs.ts";

vi.mock("node:fs/promises", async (original) =>
  (await import("../../support/memory-disk.ts")).standIns(original),
);

describe("a folder over crashes", () => {
  it("holds exactly the records that the state covers, in every chain of runs, kills and power cuts", async () => {
    const numRuns = Number(process.env["FOLDER_CHAINS"] ?? runs(50, 150));
    await fc.assert(
      fc.asyncProperty(
        fc.array(plan, { minLength: 1, maxLength: 4 }),
        async (plans) => void (await check(plans)),
      ),
      { numRuns },
    );
  });
});

describe("compaction over crashes", () => {
  /** Makes one file of all of people's, as `output compact` does once it has the rows. */
  async function compact(disk: MemoryDisk, pid: number): Promise<void> {
    const state = await StateFile.open(`${FOLDER}/state.json`, runtimeOf(pid));
    const files = await recover(FOLDER, state.saved.rest["output"]);
    const names = await visibleFiles(FOLDER, "people");
    const start = startName(Date.UTC(2026, 0, 1));
    const part = new Part(`${FOLDER}/people/${newPartName(start)}`, false, 1);
    const lines = linesIn(visible(disk, "people"));
    for (const line of lines) await part.append(`${line}\n`, 1);
    const merged = { part, content: await part.seal(), rows: lines.length, start, gzip: false };
    await replaceFiles(FOLDER, "people", names, merged, files, state);
    await state.release();
  }

  it.each(["kill", "power"] as const)(
    "shows every row at any time, and each once after a %s",
    async (end) => {
      for (let crashAt = 1, isOver = false; !isOver; crashAt += 1) {
        const disk = new MemoryDisk();
        mounted.disk = disk;
        disk.start();
        const sizes: number[] = [];
        const first = { ...ONE_ROW, windows: [2, 1, 3], cutBytes: 1 };
        for (const pid of [0, 1]) {
          const output = await openFolder(runtimeOf(pid), 1);
          await play(output, first, sizes);
          await output.release();
        }
        const rows = expectedRows(disk, sizes);
        expect(visible(disk, "people")).toHaveLength(6);
        disk.start(crashAt);
        isOver = await compact(disk, 2).then(
          () => true,
          (error: unknown) => {
            if (!hasCrash(error)) throw error;
            return false;
          },
        );
        let choice = crashAt;
        disk.crash(end, (below) => choice++ % below);
        expect([...new Set(linesIn(visible(disk, "people")))].toSorted()).toEqual(rows.toSorted());
        disk.start();
        await (await openFolder(runtimeOf(3))).release();
        const files = visible(disk, "people");
        expect(linesIn(files).toSorted()).toEqual(rows.toSorted());
        expect([1, 6]).toContain(files.length);
        if (isOver) expect(files).toHaveLength(1);
        const manifest = JSON.parse(disk.files(FOLDER).get(`${FOLDER}/manifest.json`) ?? "") as {
          files: { file: string }[];
        };
        expect(manifest.files.filter(({ file }) => file.startsWith("people/"))).toEqual(described(files));
      }
    },
  );
});
