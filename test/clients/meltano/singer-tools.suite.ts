import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { run, succeed } from "../../support/run.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { pathWithPrograms, program, TAP } from "./programs.ts";
import { documented } from "./project.ts";

let sandbox: Sandbox;
let folder: string;
let config: string;

beforeAll(async () => {
  sandbox = await startSandbox({ people: 400, companies: 30, requestsPerMinute: 0 });
  folder = await tempDir();
  config = join(folder, "config.json");
  const settings = { base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6000 };
  await writeFile(config, JSON.stringify(settings));
});

afterAll(async () => {
  await sandbox?.close();
});

describe("the tap", () => {
  it("passes the Singer SDK's suite for taps", async () => {
    const here = fileURLToPath(new URL(".", import.meta.url));
    const env = { TAP, TAP_CONFIG: await readFile(config, "utf8"), PYTHONDONTWRITEBYTECODE: "1" };
    const args = ["-q", "-p", "no:cacheprovider", join(here, "test_tap.py")];
    const ran = await run(program("singer-sdk", "pytest"), args, { cwd: folder, env });
    expect(ran.stdout).toMatch(/\d\d passed/);
    expect(ran.stdout).not.toMatch(/failed|error|skipped/i);
    expect(ran.code).toBe(0);
  });

  it("passes singer-check-tap, also when it goes on from a state", async () => {
    const args = ["--config", config, "--log-level", "critical"];
    const { stdout: messages } = await succeed(TAP, args);
    const checked = await run(program("singer-tools", "singer-check-tap"), [], { stdin: messages });
    expect(checked.stdout + checked.stderr).toContain("The output is valid");
    expect(checked.code).toBe(0);

    const state = join(folder, "saved.json");
    await writeFile(state, messages.trimEnd().split("\n").at(-1) ?? "");
    const { stdout: more } = await succeed(TAP, [...args, "--state", state]);
    const again = await run(program("singer-tools", "singer-check-tap"), [], { stdin: more });
    expect(again.code).toBe(0);
  });

  it("logs in lines of the Singer SDK's form", async () => {
    const script =
      'from importlib.resources import files; print((files("singer_sdk.schemas") / "logs.schema.json").read_text())';
    const { stdout: schema } = await succeed(program("singer-sdk", "python"), ["-c", script]);
    const isLog = new Ajv2020({ strict: false }).compile(JSON.parse(schema));
    const { stderr } = await succeed(TAP, ["--config", config, "--log-level", "debug"]);
    const lines = stderr.trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(15);
    for (const line of lines) expect(isLog(JSON.parse(line)), JSON.stringify(isLog.errors)).toBe(true);
  });

  it("passes target-stitch's validation", async () => {
    const { stdout: messages } = await succeed(TAP, ["--config", config]);
    const output = join(folder, "stitch.json");
    const args = ["--dry-run", "--output-file", output];
    const { code, stderr } = await run(program("target-stitch"), args, { stdin: messages });
    expect(stderr).not.toMatch(/CRITICAL|Traceback/);
    expect(code).toBe(0);
  });

  it("pipes into a target with a state file, as the page says", async () => {
    const target = { destination_path: folder, do_timestamp_file: false };
    await writeFile(join(folder, "target.json"), JSON.stringify(target));
    const shell = ["-euo", "pipefail", "-c", documented("pipe")];
    await succeed("bash", shell, { cwd: folder, env: { PATH: pathWithPrograms() } });
    const lines = async (): Promise<number> =>
      (await readFile(join(folder, "people.jsonl"), "utf8")).trimEnd().split("\n").length;
    expect(await lines()).toBe(sandbox.people().length);
    await succeed("bash", shell, { cwd: folder, env: { PATH: pathWithPrograms() } });
    expect((await lines()) - sandbox.people().length, "the second run is incremental").toBeLessThan(20);
  });
});
