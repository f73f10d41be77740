import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { CONNECTOR, file, run as runCommand } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { ROOT, run, succeed } from "../../support/run.ts";

const PROJECT = join(ROOT, ".cache/jvm");

beforeAll(async () => {
  rmSync(PROJECT, { recursive: true, force: true });
  cpSync(`${ROOT}test/clients/jvm/pom.xml`, join(PROJECT, "pom.xml"));
  cpSync(`${ROOT}test/clients/jvm/Parse.java`, join(PROJECT, "src/main/java/Parse.java"));
  cpSync(`${ROOT}test/support/airbyte_protocol.json`, join(PROJECT, "airbyte_protocol.json"));
  const copy = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";
  await succeed("mvn", ["-q", "-B", "package", copy, "-DoutputDirectory=target/lib"], { cwd: PROJECT });
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
  const catalog = await catalogFor({ people: {}, companies: {}, sources: {}, email_checks: {} });
  const read = ["read", "--config", config, "--catalog", catalog];
  const checks = [config, await file("wrong.json", {})].map((path) => ["check", "--config", path]);
  let text = "";
  for (const args of [["spec"], ["discover", "--config", config], ...checks, read])
    text += (await runCommand(CONNECTOR, args)).stdout;
  sandbox.fault("stream-failed");
  text += (await runCommand(CONNECTOR, read)).stdout;
  await sandbox.close();
  expect(await parsed(text)).toBeGreaterThan(600);
});

it("and none that is no message", async () => {
  await expect(parsed('{"type":"ODD"}\n')).rejects.toThrow();
});
