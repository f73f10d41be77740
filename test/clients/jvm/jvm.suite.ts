import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it, vi } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { TARGETS } from "../../lab/fuzz/main.ts";
import { CONNECTOR, file, run as runCommand } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { ROOT, run, succeed } from "../../support/run.ts";

/** What the fuzz was told on stdout by commands that speak Airbyte's language. */
const said = vi.hoisted((): string[] => []);
vi.mock("../../lab/fuzz/verdict.ts", async (original) => {
  const real = await original<typeof import("../../lab/fuzz/verdict.ts")>();
  const judgeEnded: typeof real.judgeEnded = (language, ended, alwaysZero) => {
    const judged = real.judgeEnded(language, ended, alwaysZero);
    if (["airbyte", "check", "discover"].includes(language)) said.push(ended.stdout);
    return judged;
  };
  return { ...real, judgeEnded };
});

const HERE = join(ROOT, "test/clients/jvm");
const PROJECT = join(ROOT, ".cache/jvm");

beforeAll(async () => {
  const sources = join(PROJECT, "src/main/java");
  rmSync(PROJECT, { recursive: true, force: true });
  mkdirSync(sources, { recursive: true });
  cpSync(join(HERE, "pom.xml"), join(PROJECT, "pom.xml"));
  cpSync(join(HERE, "Parse.java"), join(sources, "Parse.java"));
  cpSync(join(ROOT, "test/support/airbyte_protocol.json"), join(PROJECT, "airbyte_protocol.json"));
  await succeed("mvn", ["-q", "-B", "package"], { cwd: PROJECT });
});

/** Throws unless the platform's own classes take every line. Returns how many there are. */
async function parsed(text: string): Promise<number> {
  const path = ["target/classes", "target/lib/*"].map((name) => join(PROJECT, name)).join(":");
  const { code, stdout, stderr } = await run("java", ["-cp", path, "Parse"], { stdin: text });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return Number(stdout);
}

it("the platform's classes take every message of every command", async () => {
  const sandbox = await startSandbox({ people: 300, companies: 30, requestsPerMinute: 0 });
  const config = await configFor(sandbox, { email_check: { emails: ["a@x.example"] } });
  const streams = Object.fromEntries(
    ["people", "companies", "sources", "email_checks"].map((name) => [name, {}]),
  );
  const wrong = await file("wrong.json", {});
  const read = ["read", "--config", config, "--catalog", await catalogFor(streams)];
  const commands = [["spec"], ["check", "--config", config], ["discover", "--config", config], read];
  let text = "";
  for (const args of [...commands, ["check", "--config", wrong]])
    text += (await runCommand(CONNECTOR, args)).stdout;
  sandbox.fault("stream-failed");
  text += (await runCommand(CONNECTOR, read)).stdout;
  await sandbox.close();
  expect(await parsed(text)).toBeGreaterThan(600);
});

it("and of the fuzz", async () => {
  const { playOne } = await import("../../lab/fuzz/main.ts");
  for (const name of ["configs", "catalogs", "states", "answers"]) {
    const entry = TARGETS[name];
    const target = await entry?.open();
    for (let seed = 1; target !== undefined && seed <= (entry?.short ?? 0); seed++)
      await playOne(target, seed);
    await target?.close();
  }
  expect(await parsed(said.join(""))).toBeGreaterThan(200);
});

it("and none that is no message", async () => {
  await expect(parsed('{"type":"ODD"}\n')).rejects.toThrow();
});
