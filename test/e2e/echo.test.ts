import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, type Ended, file, run, TAP } from "../support/cli.ts";
import { catalogFor } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { type Served, serve } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";

/** No format of keys is insisted on, so a key may look like a code of the service, and passes wherever one does. */
const KEYS = { public: "KEY_OF_THE_PUBLIC_API", external: "KEY_OF_THE_EXTERNAL_API" };

/** A service that puts the caller's key into all that ends up in a message: codes, names of fields, ids of jobs. */
const startEcho = (refuses = true): Promise<Served> =>
  serve((request, response) => {
    const key = String(request.headers["x-api-key"]);
    const send = (status: number, body: unknown): void =>
      void response.writeHead(status).end(JSON.stringify(body));
    const refuse = (): void => send(403, { success: false, error: { code: key, message: key } });
    const names = { id: "p1", slug: "s1", domain: "one.example" };
    const row = { ...names, discoveredAt: "2020-01-02T03:04:05Z", [key]: 1 };
    const path = String(request.url);
    if (refuses && path.includes("/companies")) return refuse();
    if (path.includes("/stream")) return void response.end(`${JSON.stringify(row)}\n`);
    if (request.method === "POST") return send(202, { success: true, data: { job_id: `job_${key}` } });
    if (path.includes("/external/")) return refuse();
    return send(200, { success: true, data: [row], pagination: { page: 1, limit: 1, total: 1 } });
  });

const configOf = ({ url }: Served): Promise<string> =>
  file("config.json", {
    ...{ base_url: url, api_key: KEYS.public, requests_per_minute: 6000, receipts_file: "" },
    external_api: { api_url: url, api_key: KEYS.external },
    company_lookup: { domains: ["one.example"] },
  });

/** Holds a text that must have had both keys, or one of them, in it. */
function expectMasked(text: string): void {
  expect(text).toContain("***");
  for (const key of Object.values(KEYS)) expect(text).not.toContain(key);
}

const linesWith = ({ stdout }: Ended, type: string): string =>
  linesOf(stdout)
    .filter((line) => line.includes(`"type":"${type}"`))
    .join("\n");

describe("a service that echoes the key", () => {
  it("brings it into no sentence of check", async () => {
    const echo = await startEcho();
    const config = await configOf(echo);
    expectMasked((await connector(["check", "--config", config])).stdout);
  });

  it.each([
    ["name of a catalog", false, 0],
    ["word about a catalog that cannot be had", true, 1],
  ])("brings it into no %s, in both languages", async (_what, refuses, exitCode) => {
    const echo = await startEcho(refuses);
    const config = await file("config.json", { base_url: echo.url, api_key: KEYS.public });
    const discovered = await run(CONNECTOR, ["discover", "--config", config]);
    const tapped = await run(TAP, ["--config", config, "--discover"]);
    for (const { code, stdout, stderr } of [discovered, tapped]) {
      expect(code).toBe(exitCode);
      expectMasked(stdout + stderr);
    }
  });

  it("brings it into no log, trace or state of read, its summary or the table of jobs", async () => {
    const echo = await startEcho();
    const catalog = await catalogFor({ people: {}, companies: {}, company_lookups: {} });
    const config = await configOf(echo);
    const [summary, state] = [join(await tempDir(), "summary.json"), join(await tempDir(), "state.json")];
    const args = ["--catalog", catalog, "--summary", summary, "--state-file", state];
    const ended = await connector(["read", "--config", config, ...args], { clock: hurriedClock() });
    for (const type of ["LOG", "TRACE", "STATE"]) expectMasked(linesWith(ended, type));
    expectMasked(readFileSync(summary, "utf8"));
    expectMasked((await run(CONNECTOR, ["jobs", "--config", config, "--state-file", state])).stdout);
  });

  it("brings it into no line of the tap, on stdout or stderr, but records", async () => {
    const echo = await startEcho();
    const ended = await run(TAP, ["--config", await configOf(echo)], { clock: hurriedClock() });
    expectMasked(ended.stderr);
    expectMasked(linesWith(ended, "SCHEMA"));
  });

  it("brings it into no line on stderr where stdout has only records", async () => {
    const echo = await startEcho();
    const args = ["--config", await configOf(echo), "--format", "jsonl", "--stream"];
    for (const stream of ["people", "companies"])
      expectMasked((await run(CONNECTOR, ["read", ...args, stream])).stderr);
  });
});
