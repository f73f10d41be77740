import { statSync, writeFileSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { openResults } from "../../../src/reconcile/results.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { compared, listOf, UNDATED } from "./compared.ts";

let folder: string;

beforeEach(async () => {
  folder = join(await tempDir(), "found");
});

it("removes what an earlier comparison left, and nothing else", async () => {
  await mkdir(folder);
  const left = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];
  const killed = ["lost.jsonl.0123456789abcdef.tmp", "gone.csv.0123456789abcdef.tmp"];
  for (const name of [...left, ...killed, "notes.txt", "gone.csv.bak"])
    writeFileSync(join(folder, name), "old");
  await openResults(folder);
  expect((await readdir(folder)).sort()).toEqual(["gone.csv.bak", "notes.txt"]);
});

it("leaves nothing of a comparison that breaks off", async () => {
  const publish = await openResults(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  const broken = compared(listOf(["a"]), () => [{ id: "a" }, { id: "b" }], {
    ...{ publish, form: UNDATED },
    read: async function* () {
      yield [];
      expect(await readdir(folder)).toEqual([expect.stringMatching(/^lost\.jsonl\.[0-9a-f]{16}\.tmp$/)]);
      throw new Error("broken");
    },
  });
  await expect(broken).rejects.toThrow("broken");
  expect(await readdir(folder)).toEqual([]);
});
