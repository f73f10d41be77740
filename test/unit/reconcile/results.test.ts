import { statSync, writeFileSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { type Report, Results } from "../../../src/reconcile/results.ts";
import { tempDir } from "../../support/temp-dir.ts";

const REPORT = { stream: "people", lost: 1 } as Report;

let folder: string;

beforeEach(async () => {
  folder = join(await tempDir(), "found");
});

it("removes what an earlier comparison left, and nothing else", async () => {
  await mkdir(folder);
  const left = ["lost.jsonl", "gone.csv", "suppressed.csv", "report.json"];
  const killed = [".lost-0123456789abcdef.part", "gone.csv.0123456789abcdef.tmp"];
  for (const name of [...left, ...killed, "notes.txt", "gone.csv.bak"])
    writeFileSync(join(folder, name), "old");
  const results = await Results.open(folder);
  expect((await readdir(folder)).sort()).toEqual(["gone.csv.bak", "notes.txt"]);
  await results.discard();
  expect((await readdir(folder)).sort()).toEqual(["gone.csv.bak", "notes.txt"]);
});

it("leaves no report where a list breaks off, and no rows after it was discarded", async () => {
  const results = await Results.open(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  for (let nth = 0; nth < 300; nth++) await results.lose("x".repeat(1_000));
  expect(await readdir(folder)).toEqual([expect.stringMatching(/^\.lost-[0-9a-f]{16}\.part$/)]);
  const broken = (async function* (): AsyncGenerator<string> {
    yield "id\n";
    throw new Error("broken");
  })();
  await expect(results.publish(REPORT, { "gone.csv": broken })).rejects.toThrow("broken");
  await results.discard();
  expect(await readdir(folder)).toEqual(["lost.jsonl"]);
  const other = await Results.open(folder);
  for (let nth = 0; nth < 300; nth++) await other.lose("x".repeat(1_000));
  await other.discard();
  expect(await readdir(folder)).toEqual([]);
});
