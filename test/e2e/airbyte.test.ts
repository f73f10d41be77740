import { readFile } from "node:fs/promises";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import {
  type AirbyteMessage,
  type CatalogStream,
  type Json,
  linesOf,
  recordsOf,
  statesOf,
  statusesOf,
} from "../support/airbyte-messages.ts";
import { exampleConfigs, SPEC_RULES, schemasIn } from "../support/airbyte-rules.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { ROOT } from "../support/run.ts";
import { runs } from "../support/runs.ts";

// Airbyte's acceptance tests ask this of a connector, each rule under its id, by command lines against the sandbox.

const PEOPLE = runs(2_500, 12_000);
const DAY = 86_400_000;
const SAMPLES = runs(2, 10);

let sandbox: Sandbox;
let config: string;
let catalog: { readonly streams: readonly CatalogStream[] };
let first: readonly AirbyteMessage[];

beforeAll(async () => {
  // Small windows, so that one read has many states to go on from.
  sandbox = await startSandbox({ people: PEOPLE, undated: 7 });
  config = await configFor(sandbox, { max_window_rows: 1000 });
  const [discovered] = await say("discover");
  catalog = discovered?.catalog ?? { streams: [] };
  first = await read();
});

afterAll(async () => {
  await sandbox.close();
});

/** Runs a command that succeeds. */
async function say(command: string, ...args: readonly string[]): Promise<readonly AirbyteMessage[]> {
  const { messages, code, stderr } = await connector([command, "--config", config, ...args]);
  expect([code, stderr], "the platform shows all of stderr as errors").toEqual([0, ""]);
  return messages;
}

/** Reads incrementally, where a stream has it. */
async function read(state?: unknown): Promise<readonly AirbyteMessage[]> {
  const streams = catalog.streams.map((stream) => ({
    stream,
    sync_mode: stream.supported_sync_modes.at(-1),
    destination_sync_mode: "append_dedup",
  }));
  const given = state === undefined ? [] : ["--state", await file("state.json", state)];
  return await say("read", "--catalog", await file("catalog.json", { streams }), ...given);
}

const textsOf = (rows: readonly unknown[]): Set<string> => new Set(rows.map((row) => JSON.stringify(row)));

describe("specification", () => {
  let spec: { readonly connectionSpecification: object };

  beforeAll(async () => {
    const { stdout } = await run(CONNECTOR, ["spec"]);
    spec = JSON.parse(stdout).spec;
  });

  const settings = (): object => spec.connectionSpecification;

  it("CS2: is spec.json", async () => {
    expect(spec).toEqual(JSON.parse(await readFile(`${ROOT}spec.json`, "utf8")));
  });

  it("CS1: takes the config of a connection, each example, and nulls that a form sends", () => {
    const isValid = new Ajv({ strict: false, validateFormats: false }).compile(settings());
    const account = { base_url: sandbox.url, api_key: sandbox.key };
    const nulls = { start_date: null, max_run_seconds: null, ignore_missing_days: null };
    const examples = exampleConfigs(settings());
    expect(examples.length).toBeGreaterThan(10);
    for (const more of [nulls, { start_date: "2026-01-02T03:04:05Z" }, ...examples])
      expect([more, isValid({ ...account, ...more })]).toEqual([more, true]);
    expect(isValid({ api_key: "k" })).toBe(false);
  });

  it.each(SPEC_RULES)("$id: $says", ({ broken }) => {
    expect(broken(settings())).toEqual([]);
  });

  it("CS5: requires an address and a key, and hides every key, the salt and the webhook", () => {
    expect(settings()).toMatchObject({ required: ["base_url", "api_key"] });
    const secrets = [...schemasIn(settings())].filter(({ schema }) => schema.airbyte_secret === true);
    expect(secrets.map(({ path }) => path)).toEqual([
      ...["/api_key", "/external_api/api_key", "/hash_salt", "/company_lookup/webhook_url"],
    ]);
  });

  it("has words for every setting, and no default that buys", () => {
    for (const { path, schema } of schemasIn(settings())) {
      const { title, description, pattern, pattern_descriptor, default: usual } = { ...schema } as Json;
      const isSetting = path !== "" && !path.endsWith("[]");
      if (isSetting) expect([path, typeof title, typeof description]).toEqual([path, "string", "string"]);
      expect(pattern === undefined, path).toBe(pattern_descriptor === undefined);
      if (/domains|emails|from_/.test(path)) expect([undefined, false], path).toContain(usual);
    }
  });
});

describe("discovery", () => {
  it("takes two requests, and learns the fields of companies and sources from live rows", async () => {
    const other = await sandboxWith({ people: 20, seed: 3 });
    const { messages } = await connector(["discover", "--config", other.config]);
    const [, companies] = messages[0]?.catalog?.streams ?? [];
    expect(companies?.json_schema.properties).toHaveProperty("headquarters.properties.city");
    expect(other.sandbox.requests.map(({ path }) => path)).toEqual([
      "/api/v1/public/companies/stream",
      "/api/v1/public/sources",
    ]);
  });
});

describe("basic read", () => {
  it("CR1, CR2, CR3: there are records of every stream, each as its schema says, with a key", () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/);
    for (const { name, json_schema, source_defined_primary_key } of catalog.streams) {
      const [isValid, records] = [ajv.compile(json_schema), recordsOf(first, name)];
      expect(records, name).not.toHaveLength(0);
      const broken = records.filter((record) => !isValid(record));
      expect(broken, `${name}: ${ajv.errorsText(isValid.errors)}`).toEqual([]);
      const keys = records.flatMap((record) =>
        source_defined_primary_key.map(([field = ""]) => record[field]),
      );
      expect(keys.filter((key) => typeof key !== "string" || key === "")).toEqual([]);
    }
  });

  it("CR5, CR6, CR7: the records are the service's, each once, and every stream ends COMPLETE", () => {
    const expected = {
      people: sandbox.people(),
      companies: sandbox.companies(),
      sources: sandbox.sources(),
    };
    for (const [stream, rows] of Object.entries(expected)) {
      const records = recordsOf(first, stream);
      expect(textsOf(records), stream).toEqual(textsOf(rows));
      expect(records, stream).toHaveLength(rows.length);
      expect(statusesOf(first, stream).at(-1), stream).toBe("COMPLETE");
    }
  });
});

it("CI1, CI3: a run continues from every state: no row is lost, and only the lookback repeats", async () => {
  const states = first.filter(({ state }) => state?.stream.stream_descriptor.name === "people");
  expect(states.length).toBeGreaterThan(SAMPLES);
  const step = Math.max(1, Math.floor(states.length / SAMPLES));
  for (const state of states.filter((_, index) => index % step === 0)) {
    const after = textsOf(recordsOf(first.slice(first.indexOf(state)), "people"));
    const records = recordsOf(await read([state.state]), "people");
    const delivered = textsOf(records);
    expect([...after].filter((row) => !delivered.has(row))).toEqual([]);
    const { discoveredAt } = { discoveredAt: null, ...state.state?.stream.stream_state };
    const repeated = records.filter((row) => !after.has(JSON.stringify(row)));
    const lookback = Math.floor(Date.parse(String(discoveredAt)) / DAY) * DAY - DAY;
    const older = ({ discoveredAt: at }: Json): boolean => at === null || Date.parse(String(at)) < lookback;
    // Without a cursor everything is read.
    if (discoveredAt !== null) expect(repeated.filter(older)).toEqual([]);
  }
});

it("CI4: a run with a state from the future reads what may be new, and saves a correct state", async () => {
  const before = textsOf(sandbox.people());
  sandbox.recheck(3);
  sandbox.arrive(4);
  const said = await read(JSON.parse(await readFile(`${ROOT}integration_tests/abnormal_state.json`, "utf8")));
  const rows = textsOf(recordsOf(said, "people"));
  const changed = [...textsOf(sandbox.people())].filter((row) => !before.has(row));
  expect([changed.length, changed.filter((row) => !rows.has(row))]).toEqual([7, []]);
  const { discoveredAt } = statesOf(said, "people").at(-1) ?? {};
  expect(String(discoveredAt) < new Date().toISOString()).toBe(true);
});

const NAMED = { stream: { name: "people" } };

it.each<[why: string, entry: object]>([
  ['"people" has no sync_mode. Write "incremental"', NAMED],
  [
    'has "config", as Airbyte\'s API writes it',
    { ...NAMED, config: { sync_mode: "incremental", selected: false } },
  ],
  ['has "syncMode", as', { ...NAMED, syncMode: "incremental" }],
  ['has "jsonSchema", as', { stream: { name: "people", jsonSchema: {} }, sync_mode: "incremental" }],
  ['has "syncMode", as', { name: "people", syncMode: "incremental_append" }],
  ['has "selected_fields", as', { name: "people", sync_mode: "incremental", selected_fields: ["id"] }],
])("a catalog of another form is refused before any request: %s", async (why, entry) => {
  const asked = sandbox.requests.length;
  const args = ["--config", config, "--catalog", await file("catalog.json", { streams: [entry] })];
  const { code, stdout } = await run(CONNECTOR, ["read", ...args]);
  expect([code, sandbox.requests.length - asked]).toEqual([1, 0]);
  expect(JSON.parse(linesOf(stdout).at(-1) ?? "").trace.error.message).toContain(why);
});
