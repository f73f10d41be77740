import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, file, run, SANDBOX } from "../support/cli.ts";
import { docBlock } from "../support/docs.ts";
import { tempDir } from "../support/temp-dir.ts";

/** The words of a page's command. Its port may be taken; 0 is any that is free. */
function onAnyPort(page: string): readonly string[] {
  const words = docBlock(page, "sh", "-sandbox ").trim().split(" ").slice(1);
  return words.map((word) => (word === "8080" ? "0" : word));
}

const sandboxCommand = (...words: readonly string[]) => run(SANDBOX, words, { asProcess: true });

it("the demo shows two syncs by commands that work when they are typed", async () => {
  const { code, stdout, stderr } = await sandboxCommand("demo");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("people: 8,403 RECORDs");
  const typed = [...stdout.matchAll(/\$ source-contact-intelligence (.*)$/gm)].map(([, words = ""]) => words);
  expect(typed).toHaveLength(7);
  const config = JSON.parse(/^ {2}(\{"base_url".*\})$/m.exec(stdout)?.[1] ?? "");
  await using sandbox = await startSandbox({ people: 20, key: config.api_key });
  const folder = await tempDir();
  await writeFile(join(folder, "config.json"), JSON.stringify({ ...config, base_url: sandbox.url }));
  for (const words of new Set(typed)) {
    const args = words.split(" ").map((word) => (word.endsWith(".json") ? join(folder, word) : word));
    expect([words, (await run(CONNECTOR, args)).code]).toEqual([words, 0]);
  }
});

it.each([
  [["--port", "65536"], "Cannot use --port: it must be a whole number from 0 to 65535\n"],
  [["--plan", "gold"], "Cannot use --plan: it must be enterprise or agency\n"],
  [["--nonsense"], "Unknown option '--nonsense'. See contact-intelligence-sandbox --help\n"],
  [["--fault", "nonsense"], 'Cannot read the fault "nonsense": it names no fault; known are reset, '],
])("the sandbox refuses %j and says why", async (words, message) => {
  const { code, stdout, stderr } = await sandboxCommand(...words);
  expect([code, stdout, stderr.slice(0, message.length)]).toEqual([2, "", message]);
});

it.each([
  ["with faults", ["--port", "0", "--people", "3", "--plan", "enterprise", "--fault", "garbage:after=1"], 6],
  ["by the command of docs/meltano.md", onAnyPort("docs/meltano.md"), 1_003],
])("the sandbox prints a config that works, until a signal ends it: %s", async (_what, words, rows) => {
  const child = spawn(process.execPath, [SANDBOX, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  try {
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toContain("http://127.0.0.1:");
    const config = String((await lines.next()).value).replace("Config: ", "");
    const args = ["--config", await file("config.json", config), "--stream", "people", "--format", "jsonl"];
    expect((await run(CONNECTOR, ["read", ...args])).stdout.trim().split("\n")).toHaveLength(rows);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await ended).toEqual([null, "SIGTERM"]);
});
