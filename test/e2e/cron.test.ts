import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, rename, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR } from "../support/cli.ts";
import { docBlock } from "../support/docs.ts";
import { configFor } from "../support/tap.ts";
import { tempDir } from "../support/temp-dir.ts";

it("docs/cron.md has a line that works as cron runs it, also while the run before is going on", async () => {
  await using sandbox = await startSandbox({
    people: 30,
    companies: 4,
    requestsPerMinute: 0,
    latencyMs: 300,
  });
  const [, path, line] =
    /PATH=(.*)\n\S+ \* \* \* \* (.*)\n/.exec(docBlock("docs/cron.md", "cron", "PATH=")) ?? [];
  const folder = await tempDir();
  await symlink(CONNECTOR, join(folder, "source-contact-intelligence"));
  await rename(await configFor(sandbox), join(folder, "config.json"));
  const command = line?.replace("/var/lib/contacts", folder) ?? "exit 9";
  const env = { PATH: [folder, dirname(process.execPath), path].join(delimiter) };
  const start = (): Promise<unknown> => promisify(execFile)("/bin/sh", ["-c", command], { env });

  const first = start();
  await expect
    .poll(() => existsSync(join(folder, "contacts/state.json.lock")), { timeout: 20_000 })
    .toBe(true);
  await expect(start(), "the first still holds the lock").rejects.toMatchObject({ code: 1 });
  expect(await readFile(join(folder, "contacts.log"), "utf8")).toContain("another run is using it");
  await first;

  const alarm = /^0 9 \* \* \* (.*)$/m.exec(docBlock("docs/cron.md", "cron", "--max-age"))?.[1] ?? "exit 9";
  const watch = (age: string): Promise<unknown> => {
    const words = alarm.replace("/var/lib/contacts", folder).replace("26h", age);
    return promisify(execFile)("/bin/sh", ["-c", words], { env });
  };
  expect(await watch("26h"), "no mail").toEqual({ stdout: "", stderr: "" });
  await expect(watch("0m")).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^Too old: /),
  });

  const people = join(folder, "contacts/people");
  const texts = await Promise.all(
    (await readdir(people)).map((name) => readFile(join(people, name), "utf8")),
  );
  expect(texts.join("").trimEnd().split("\n")).toHaveLength(sandbox.people().length);
  const left = ["companies", "manifest.json", "people", "sources", "state.json", "state.json.previous"];
  expect((await readdir(join(folder, "contacts"))).sort()).toEqual(left);
});
