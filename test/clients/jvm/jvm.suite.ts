import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { startSandbox } from "../../../sandbox/server.ts";
import { exampleConfigs } from "../../support/airbyte-rules.ts";
import { CONNECTOR, file, run as runCommand } from "../../support/cli.ts";
import { catalogFor, configFor } from "../../support/configs.ts";
import { type Ended, ROOT, run, succeed } from "../../support/run.ts";

const PROJECT = join(ROOT, ".cache/jvm");
const VALIDATORS = ["1.0.72", "1.5.2"];

/** The folder of the classes. */
const built = (validator: string): string => join(PROJECT, validator, "target");

beforeAll(async () => {
  rmSync(PROJECT, { recursive: true, force: true });
  for (const validator of VALIDATORS) {
    const cwd = join(PROJECT, validator);
    cpSync(`${ROOT}test/clients/jvm/pom.xml`, join(cwd, "pom.xml"));
    for (const name of ["Parse", "Validate"])
      cpSync(`${ROOT}test/clients/jvm/${name}.java`, join(cwd, `src/main/java/${name}.java`));
    cpSync(`${ROOT}test/support/airbyte_protocol.json`, join(cwd, "airbyte_protocol.json"));
    const copy = "org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies";
    const settings = ["-DoutputDirectory=target/lib", `-Dvalidator=${validator}`];
    await succeed("mvn", ["-q", "-B", "package", copy, ...settings], { cwd });
  }
});

function java(name: string, stdin: string, validator = "1.5.2"): Promise<Ended> {
  const path = ["classes", "lib/*"].map((folder) => join(built(validator), folder)).join(":");
  return run("java", ["-cp", path, name], { stdin });
}

/** Throws unless the platform's own classes take every line. Returns how many there are. */
async function parsed(text: string): Promise<number> {
  const { code, stdout, stderr } = await java("Parse", text);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return Number(stdout);
}

it("the platform's classes take every message of every command", async () => {
  const sandbox = await startSandbox({ people: 300, companies: 30 });
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

const ACCOUNT = { base_url: "https://contacts.example.com", api_key: "svc_key" };

/** What the patterns of the specification are meant for, and what a form sends. */
const MEANT: readonly object[] = [
  ...["30d", "2026-01-01T00:00:00Z", "2026-01-01 03:04:05+02:00", " 2026-01-01"].map((start_date) => ({
    start_date,
  })),
  ...["2026-01-01T00:00:00Z", null].map((end_date) => ({ end_date })),
  { ignore_missing_days: ["2026-01-01", "2026-01-02 00:00"] },
  ...[" https://contacts.example.com\n", "https://b\u00fccher.example/path", "http://[::1]:80/"].map(
    (url) => ({
      base_url: url,
      external_api: { api_url: url, api_key: " k " },
      company_lookup: { webhook_url: url },
    }),
  ),
  { api_key: "**********", hash_salt: "gr\u00fcn", receipts_file: "", endpoints: {}, num_workers: 2.0 },
];

it.each(VALIDATORS)(
  "the platform's validator %s takes each example, and what patterns are meant for",
  async (validator) => {
    const { connectionSpecification: spec } = JSON.parse((await runCommand(CONNECTOR, ["spec"])).stdout).spec;
    const configs = [...exampleConfigs(spec), ...MEANT, { start_date: "tomorrow" }];
    const stdin = JSON.stringify([spec, configs.map((config) => ({ ...ACCOUNT, ...config }))]);
    const lines = (await java("Validate", stdin, validator)).stdout.trim().split("\n");
    const found = configs.map((config, nth) => [config, lines[nth]]);
    expect(found.pop()).toEqual([{ start_date: "tomorrow" }, expect.stringContaining("pattern")]);
    expect(found).toEqual(configs.slice(0, -1).map((config) => [config, "[]"]));
  },
);
