import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run, TAP } from "../support/cli.ts";
import { catalogFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { type Served, serve } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";

// A service that repeats the caller's keys, and rows, wherever it can: none of them may be in what is said about it.

/** The connector takes keys of any form, so a key may look like a code of the service. */
const KEYS = { public: "KEY_OF_THE_PUBLIC_API", external: "KEY_OF_THE_EXTERNAL_API" };
const PERSON = "somebody@private.example";

/** As it is, and as it stands in headers and dumps. */
const formsOf = (key: string): string[] => [key, Buffer.from(key).toString("base64").replace(/=+$/, "")];

/** @param refuses whether companies and jobs answer with an error that holds the key */
const startEcho = (refuses = true): Promise<Served> =>
  serve((request, response) => {
    const key = String(request.headers["x-api-key"]);
    const send = (status: number, body: unknown): void =>
      void response.writeHead(status).end(JSON.stringify(body));
    const refuse = (code: string): void =>
      send(403, { success: false, error: { code, message: `${key} ${PERSON}` } });
    const names = { id: "p1", slug: "s1", domain: "one.example" };
    const inBase64 = Buffer.from(key).toString("base64");
    const row = { ...names, discoveredAt: "2020-01-02T03:04:05Z", [key]: 1, [`field ${inBase64}`]: 1 };
    const path = String(request.url);
    if (refuses && path.includes("/companies")) return refuse(key);
    if (path.includes("/stream")) return void response.end(`${JSON.stringify(row)}\n`);
    if (request.method === "POST") return send(202, { success: true, data: { job_id: `job_${key}` } });
    if (path.includes("/external/")) return refuse(PERSON);
    return send(200, { success: true, data: [row], pagination: { page: 1, limit: 1, total: 1 } });
  });

const configOf = ({ url }: Served): Promise<string> =>
  file("config.json", {
    ...{ base_url: url, api_key: KEYS.public, requests_per_minute: 6000, receipts_file: "" },
    external_api: { api_url: url, api_key: KEYS.external },
    company_lookup: { domains: ["one.example"] },
  });

/** Holds a text against the keys, one of which must have been in it. */
function expectMasked(text: string): void {
  expect(text).toContain("***");
  for (const secret of [...Object.values(KEYS).flatMap(formsOf), PERSON]) expect(text).not.toContain(secret);
}

const linesWith = (stdout: string, type: string): string =>
  linesOf(stdout)
    .filter((line) => line.includes(`"type":"${type}"`))
    .join("\n");

describe("a key that the service repeats", () => {
  it("is in no sentence of check", async () => {
    const config = await configOf(await startEcho());
    const clock = hurriedClock();
    expectMasked((await connector(["check", "--config", config], { clock })).stdout);
    expectMasked((await run(TAP, ["--test", "--config", config], { clock })).stderr);
  });

  it.each([
    ["name of a catalog", false, 0],
    ["word about a catalog that cannot be had", true, 1],
  ])("is in no %s, in both languages", async (_what, refuses, exitCode) => {
    const { url } = await startEcho(refuses);
    const config = await file("config.json", { base_url: url, api_key: KEYS.public });
    for (const [program, words] of [
      [CONNECTOR, ["discover", "--config", config]],
      [TAP, ["--config", config, "--discover"]],
    ] as const) {
      const { code, stdout, stderr } = await run(program, words);
      expect(code).toBe(exitCode);
      expectMasked(stdout + stderr);
    }
  });

  it("is in no log, trace or state of read, its summary or the table of jobs", async () => {
    const catalog = await catalogFor({ people: {}, companies: {}, company_lookups: {} });
    const config = await configOf(await startEcho());
    const [summary, state] = [join(await tempDir(), "summary.json"), join(await tempDir(), "state.json")];
    const debug = ["--log-level", "debug"];
    const args = ["--catalog", catalog, "--summary", summary, "--state-file", state, ...debug];
    const { stdout } = await connector(["read", "--config", config, ...args], { clock: hurriedClock() });
    for (const type of ["LOG", "TRACE", "STATE"]) expectMasked(linesWith(stdout, type));
    expectMasked(readFileSync(summary, "utf8"));
    expectMasked((await run(CONNECTOR, ["jobs", "--config", config, "--state-file", state])).stdout);
  });

  it("is in no line of the tap but records, and in none on stderr for JSON lines and files", async () => {
    const config = await configOf(await startEcho());
    const tapped = await run(TAP, ["--config", config, "--log-level", "debug"], { clock: hurriedClock() });
    expectMasked(tapped.stderr);
    expectMasked(linesWith(tapped.stdout, "SCHEMA"));
    for (const stream of ["people", "companies"]) {
      const args = ["read", "--config", config, "--format", "jsonl", "--stream", stream];
      expectMasked((await run(CONNECTOR, args)).stderr);
    }
    const output = ["--output", join(await tempDir(), "rows")];
    const filed = await run(CONNECTOR, ["read", "--config", config, ...output], { clock: hurriedClock() });
    expectMasked(filed.stdout + filed.stderr);
  });

  it("is not in the output of a dry run, and not in a message about a path that contains it", async () => {
    const config = await configOf(await startEcho());
    const dry = await run(CONNECTOR, ["read", "--dry-run", "--config", config]);
    const output = join(await file("no-folder", ""), KEYS.public, KEYS.external);
    const refused = await run(CONNECTOR, ["read", "--config", config, "--output", output]);
    expect(refused.code).toBe(2);
    for (const { stdout, stderr } of [dry, refused]) expectMasked(stdout + stderr);
  });
});

/** In the form of the sandbox. */
const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";

it.each([
  ["an error body that repeats them", "leak:times=always"],
  ["a redirect with the key", `redirect=https://elsewhere.example/${KEY}?key=${KEY}:times=always`],
  ["a web page", "html:times=always"],
  ["a line that is no JSON", "garbage:times=always"],
  ["bytes that are no UTF-8", "bad-utf8:times=always"],
  ["a row without its id", "no-key:times=always"],
])("no key and no row is in a message of a run that meets %s", async (_, fault) => {
  const options = { key: KEY, people: 5, undated: 0, days: 1, faults: [fault] };
  const start_date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  const { sandbox, config } = await sandboxWith(options, { start_date });
  const [catalog, debug] = [await catalogFor({ people: {} }), ["--log-level", "debug"]];
  const args = ["read", "--config", config, "--catalog", catalog, ...debug];
  const { stdout, stderr } = await connector(args, { clock: hurriedClock() });
  const others = linesOf(stdout).filter((line) => !line.startsWith('{"type":"RECORD"'));
  const said = others.join("\n") + stderr;
  const rows = sandbox.people().flatMap(({ id, email }) => (email === null ? [id] : [id, email]));
  expect(said.length).toBeGreaterThan(100);
  for (const secret of [...formsOf(KEY), KEY.slice(-32), ...rows]) expect(said).not.toContain(secret);
});

const SPACED = { base_url: "https://x", api_key: `${KEYS.public} x` };

it.each([
  ["a config that is no JSON", `{"base_url": "https://x", "api_key": "${KEYS.public}"`],
  ["a config with a key in its address", { base_url: `https://user:${KEYS.public}@x`, api_key: KEYS.public }],
  ["a key with a space, and as a date", { ...SPACED, start_date: KEYS.public }],
])("%s is refused without its key", async (_, content) => {
  const config = await file("config.json", content);
  const { stdout } = await connector(["check", "--config", config]);
  expect(stdout).toContain("FAILED");
  const read = await run(CONNECTOR, ["read", "--format", "jsonl", "--stream", "people", "--config", config]);
  for (const text of [stdout, read.stderr]) expect(text).not.toContain(KEYS.public);
});
