import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { expectAirbyteMessages, idsOf, linesOf } from "../../support/airbyte-messages.ts";
import { configFor } from "../../support/configs.ts";
import { docBlock } from "../../support/docs.ts";
import { outputOf, ROOT, run } from "../../support/run.ts";
import { expectSingerMessages, recordsOf } from "../../support/tap.ts";
import { filesBelow, tempDir } from "../../support/temp-dir.ts";

const PUBLINT = "publint@0.3.25";
const { bin, version, dependencies } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8"));

let folder: string;
let clone: string;

beforeAll(async () => {
  folder = await tempDir();
  clone = join(folder, "clone");
  await outputOf("git", ["clone", "--quiet", ROOT, clone]);
});

/** Runs commands of README.md in the clone. */
async function typeIn(words: string, env: Readonly<Record<string, string>>): Promise<void> {
  const shell = ["-euo", "pipefail", "-c", docBlock("README.md", "sh", words)];
  await outputOf("bash", shell, { cwd: clone, env: { npm_config_prefer_offline: "true", ...env } });
}

/** Fails unless every command in a folder of programs does its work. */
async function expectCommands(programs: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  await using sandbox = await startSandbox({ people: 300 });
  const config = ["--config", await configFor(sandbox)];
  const call = (name: string, ...args: readonly string[]): Promise<string> =>
    outputOf(join(programs, name), args, { cwd: folder, env });
  for (const name of Object.keys(bin)) {
    expect(await call(name, "--version"), name).toBe(`${version}\n`);
    expect(await call(name, "--help"), name).toContain(name);
  }
  const people = sandbox.people().length;
  const read = linesOf(await call("source-contact-intelligence", "read", ...config));
  expect(idsOf(expectAirbyteMessages(read))).toHaveLength(people);
  const tapped = linesOf(await call("tap-contact-intelligence", ...config));
  expect(recordsOf(expectSingerMessages(tapped), "people")).toHaveLength(people);
  expect(await call("contact-intelligence-sandbox", "demo")).toContain("What to do next:");
}

describe("the npm package", { timeout: 600_000 }, () => {
  it("contains only what it needs", async () => {
    const [packed] = JSON.parse(await outputOf("npm", ["pack", "--json", "--dry-run", "--ignore-scripts"]));
    const files = packed.files.map(({ path }: { path: string }) => path);
    const plain = ["CHANGELOG.md", "LICENSE", "README.md", "package.json", "spec.json"];
    const kept = filesBelow("schemas", "meltano").filter((path) => !path.endsWith(".ts"));
    const built = filesBelow("dist");
    expect(files.toSorted()).toEqual([...plain, ...kept, ...built].toSorted());
    expect(
      built.filter((path) => !/\.js$|^dist\/(third-party-licenses\.txt|package\.json)$/.test(path)),
    ).toEqual([]);
    expect(packed.size).toBeLessThan(600_000);
    expect(dependencies).toBeUndefined();
  });

  it("names the license of each package whose code it contains", () => {
    const licenses = readFileSync(`${ROOT}dist/third-party-licenses.txt`, "utf8");
    for (const name of ["undici", "ajv", "yargs", "split2"])
      expect(licenses).toMatch(new RegExp(`^${name}@\\d`, "m"));
  });

  it("is as npm and its users expect (publint)", async () => {
    const { code, stdout, stderr } = await run("npx", ["--yes", PUBLINT, "--strict"]);
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).not.toMatch(/^(Errors|Warnings|Suggestions):/m);
  });

  it("has commands that work where README.md's commands have installed it", async () => {
    await typeIn("npm pack", { npm_config_prefix: join(folder, "global") });
    await expectCommands(join(folder, "global", "bin"));
  });
});

describe("the wheel", { timeout: 600_000 }, () => {
  it("has commands that work where README.md's commands have installed it, without any other Node", async () => {
    await typeIn("scripts/wheel.js", {});
    const programs = join(clone, ".venv", "bin");
    await expectCommands(programs, { PATH: "/usr/bin:/bin" });
    const spec = await outputOf(join(programs, "python"), ["-m", "source_contact_intelligence", "spec"]);
    expect(JSON.parse(spec)).toMatchObject({ type: "SPEC" });

    // Its commands are Node itself, so that signals reach them.
    const running = spawn(join(programs, "contact-intelligence-sandbox"), ["--port", "0"]);
    await once(running.stdout, "data");
    running.kill("SIGTERM");
    expect(await once(running, "exit")).toEqual([null, "SIGTERM"]);
  });

  it("contains only the bundle", async () => {
    const wheel = process.env["TEST_WHEEL"] ?? (await outputOf("node", ["scripts/wheel.js"])).trim();
    const script = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
    const names = linesOf(await outputOf("python3", ["-c", script, wheel]));
    const known = /\.dist-info\/|\/program\/(dist|schemas|meltano)\/|\/program\/\w+(\.json)?$|\/__\w+__\.py$/;
    expect(names.filter((name) => !known.test(name))).toEqual([]);
    expect((await stat(wheel)).size).toBeLessThan(700_000);
  });
});
