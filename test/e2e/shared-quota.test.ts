import { readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { tempDir } from "../support/temp-dir.ts";

const ACCOUNT = { people: 40, undated: 0, days: 60, requestsPerMinute: 0, now: "2026-03-20T12:00:00Z" };

it("shards in one folder take a turn of the key for each request, and none where they divide it", async () => {
  const { sandbox, config } = await sandboxWith(ACCOUNT);
  const { stdout } = await run(CONNECTOR, ["plan", "--config", config, "--shards", "3"]);
  const [plan, folder] = [await file("plan.jsonl", stdout), await tempDir()];
  const before = sandbox.requests.length;
  const words = ["read", "--config", config, "--plan", plan, "--output", folder];
  await Promise.all(["0", "1"].map((shard) => run(CONNECTOR, [...words, "--shard", shard])));
  const asked = sandbox.requests.length - before;
  const [shared = ""] = readdirSync(folder).filter((name) => /^\.requests-[0-9a-f]{16}-6000$/.test(name));
  expect(readdirSync(join(folder, shared))).toHaveLength(asked);
  await run(CONNECTOR, [...words, "--shard", "2", "--shards-at-once", "2"]);
  expect(readdirSync(join(folder, shared))).toHaveLength(asked);
});

it("plan --resume finishes a plan that was cut off, whose shards can be read before", async () => {
  const { config } = await sandboxWith(ACCOUNT);
  const words = ["plan", "--config", config, "--shards", "4"];
  const { stdout } = await run(CONNECTOR, words);
  const path = join(await tempDir(), "plan.jsonl");
  const [first = "", second = ""] = stdout.split("\n");
  await writeFile(path, `${first}\n${second.slice(0, 9)}`);
  const read = (shard: string) =>
    run(CONNECTOR, ["read", "--config", config, "--plan", path, "--shard", shard]);
  expect((await read("0")).code).toBe(0);
  expect((await read("2")).stdout).toContain("it was cut off before shard 2. Finish it with: plan --resume");
  expect(await run(CONNECTOR, [...words, "--resume", path])).toMatchObject({ code: 0, stdout });
  expect(await readFile(path, "utf8")).toContain(first);
});
