import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { configFor } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

it("output compact makes one file of a stream, with each row once or the newest of each key", async () => {
  await using sandbox = await startSandbox({ people: 10, companies: 0, sources: 1, requestsPerMinute: 0 });
  const folder = await tempDir();
  const words = ["read", "--config", await configFor(sandbox), "--output", folder, "--stream", "people"];
  await run(CONNECTOR, words);
  sandbox.recheck(2);
  sandbox.arrive(2);
  await run(CONNECTOR, words);
  const linesIn = (): readonly string[] =>
    readdirSync(join(folder, "people")).flatMap((name) =>
      readFileSync(join(folder, "people", name), "utf8")
        .trimEnd()
        .split("\n"),
    );
  const before = linesIn();
  const compact = async (...flags: readonly string[]) =>
    await run(CONNECTOR, ["output", "compact", ...flags, folder]);
  expect(await compact()).toMatchObject({ code: 0, stderr: "" });
  expect(new Set(linesIn())).toEqual(new Set(before));
  expect((await compact("--newest")).stdout).toMatch(/^people: 1 file with \d+ rows became /);
  expect(readdirSync(join(folder, "people"))).toHaveLength(1);
  const served = sandbox.people();
  const rows = new Map(linesIn().map((line) => [JSON.parse(line).id, JSON.parse(line)]));
  expect([rows.size, linesIn().length]).toEqual([served.length, served.length]);
  for (const person of served) expect(rows.get(person.id)).toEqual(person);
  expect((await run(CONNECTOR, words)).stderr).toContain("Run complete: 0 rows");
});
