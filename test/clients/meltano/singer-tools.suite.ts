import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { linesOf } from "../../support/airbyte-messages.ts";
import { TAP } from "../../support/cli.ts";
import { configFor } from "../../support/configs.ts";
import { outputOf, run, succeed } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms, program } from "./programs.ts";
import { documented, shellIn } from "./project.ts";

let sandbox: Sandbox;
let folder: string;
let config: string;

beforeAll(async () => {
  sandbox = await startSandbox({ people: 400, companies: 30 });
  folder = await tempDir();
  config = await configFor(sandbox);
});

afterAll(async () => {
  await sandbox?.close();
});

const sync = (...more: readonly string[]): Promise<string> => outputOf(TAP, ["--config", config, ...more]);

describe("the tap", () => {
  it("passes the Singer SDK's suite for taps", async () => {
    const tests = fileURLToPath(new URL("test_tap.py", import.meta.url));
    const env = { TAP, TAP_CONFIG: config, PYTHONDONTWRITEBYTECODE: "1" };
    const args = ["-q", "-p", "no:cacheprovider", tests];
    const ran = await run(program("singer-sdk", "pytest"), args, { cwd: folder, env });
    expect(ran.stdout).toMatch(/\d\d passed/);
    expect(ran.stdout).not.toMatch(/failed|error|skipped/i);
    expect(ran.code).toBe(0);
  });

  it("passes singer-check-tap, also when it continues from a state", async () => {
    const messages = await sync();
    const state = join(folder, "saved.json");
    await writeFile(state, linesOf(messages).at(-1) ?? "");
    for (const stdin of [messages, await sync("--state", state)]) {
      const { stdout, stderr } = await succeed(program("singer-tools", "singer-check-tap"), [], { stdin });
      expect(stdout + stderr).toContain("The output is valid");
    }
  });

  it("logs in lines of the Singer SDK's form", async () => {
    const script =
      'from importlib.resources import files; print((files("singer_sdk.schemas") / "logs.schema.json").read_text())';
    const schema = await outputOf(program("singer-sdk", "python"), ["-c", script]);
    const isLog = new Ajv2020({ strict: false }).compile(JSON.parse(schema));
    const { stderr } = await succeed(TAP, ["--config", config, "--log-level", "debug"]);
    expect(linesOf(stderr).length).toBeGreaterThan(15);
    for (const line of linesOf(stderr))
      expect(isLog(JSON.parse(line)), JSON.stringify(isLog.errors)).toBe(true);
  });

  it("passes target-stitch's validation", async () => {
    const args = ["--dry-run", "--output-file", join(folder, "stitch.json")];
    const { stderr } = await succeed(program("target-stitch"), args, { stdin: await sync() });
    expect(stderr).not.toMatch(/CRITICAL|Traceback/);
  });

  it("pipes into a target with a state file, as the page says", async () => {
    const target = { destination_path: folder, do_timestamp_file: false };
    await writeFile(join(folder, "target.json"), JSON.stringify(target));
    await writeFile(join(folder, "config.json"), await readFile(config));
    const pipe = async (): Promise<number> => {
      await shellIn(folder, documented("pipe"), "", { PATH: pathWithPrograms() });
      return linesOf(await readFile(join(folder, "people.jsonl"), "utf8")).length;
    };
    expect(await pipe()).toBe(sandbox.people().length);
    expect((await pipe()) - sandbox.people().length, "the second run is incremental").toBeLessThan(20);
  });
});
