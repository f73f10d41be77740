import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startName, visibleFiles } from "../../src/run/folder-state.ts";
import { tempDir } from "../support/temp-dir.ts";

it("visibleFiles() names the files of a stream by their numbers, whatever their runs' clocks said", async () => {
  const folder = await tempDir();
  await mkdir(join(folder, "people"));
  const [early, late] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)].map(startName);
  const names = [
    `${late}-000000001.jsonl`,
    `${early}-000000002.jsonl`,
    `${late}-000000003.jsonl.gz`,
    `${early}-000000004.jsonl`,
  ];
  for (const name of [...names.toReversed(), "notes.txt"]) await writeFile(join(folder, "people", name), "");
  expect(await visibleFiles(folder, "people")).toEqual(names);
  expect(await visibleFiles(folder, "companies")).toEqual([]);
});
