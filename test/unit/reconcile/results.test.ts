import { writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openResults } from "../../../src/reconcile/results.ts";
import { tempDir } from "../../support/temp-dir.ts";

it("removes what an earlier comparison left, and nothing else", async () => {
  const folder = await tempDir();
  const left = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];
  const killed = ["lost.jsonl.0123456789abcdef.tmp", "gone.csv.0123456789abcdef.tmp"];
  for (const name of [...left, ...killed, "notes.txt", "gone.csv.bak"])
    writeFileSync(join(folder, name), "old");
  await openResults(folder);
  expect((await readdir(folder)).sort()).toEqual(["gone.csv.bak", "notes.txt"]);
});
