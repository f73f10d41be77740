import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import {
  type AirbyteMessage,
  type CatalogStream,
  recordsOf as dataOf,
  errorsOf,
  type Json,
  statusesOf,
} from "../support/airbyte-messages.ts";
import { SPEC_RULES, schemasIn } from "../support/airbyte-rules.ts";
import { CONNECTOR, connector, type Ended, run } from "../support/cli.ts";
import { ROOT } from "../support/run.ts";
import { runs } from "../support/runs.ts";
import { tempDir } from "../support/temp-dir.ts";

// Airbyte's acceptance tests ask this of a connector, each rule under its id, by command lines against the sandbox.

type SyncMode = "full_refresh" | "incremental";
type Said = { readonly ended: Ended; readonly messages: readonly AirbyteMessage[] };

const PEOPLE = runs(3_500, 12_000);
const DAY = 86_400_000;
const SAMPLES = runs(2, 10);

let sandbox: Sandbox;
let folder: string;
let catalog: { readonly streams: readonly CatalogStream[] };
let first: Said;

beforeAll(async () => {
  folder = await tempDir();
  // Small windows, so that one read has many states to go on from.
  sandbox = await startSandbox({ people: PEOPLE, undated: 7, requestsPerMinute: 0 });
  await put("config.json", configOf({ max_window_rows: 1000, requests_per_minute: 6000 }));
  const { messages } = await say("discover", "config.json");
  catalog = messages[0]?.catalog ?? { streams: [] };
  first = await read("incremental");
});

afterAll(async () => {
  await sandbox.close();
});

const configOf = (settings: object = {}): object => ({
  base_url: sandbox.url,
  api_key: sandbox.key,
  ...settings,
});

async function put(name: string, value: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify(value));
  return path;
}

/** Runs a command; `config` names a file of this test's folder. */
async function say(command: string, config: string, ...args: readonly string[]): Promise<Said> {
  const { messages, ...ended } = await connector([command, "--config", join(folder, config), ...args]);
  expect(ended.stderr, "the platform shows all of stderr as errors").toBe("");
  return { ended, messages };
}

type Ask = { readonly state?: unknown; readonly streams?: readonly string[] };

/** Reads in the mode that is asked for, where a stream has it. */
async function read(mode: SyncMode, { state, streams }: Ask = {}): Promise<Said> {
  const chosen = catalog.streams.filter(({ name }) => streams?.includes(name) ?? true);
  const configured = await put("catalog.json", {
    streams: chosen.map((stream) => ({
      stream,
      sync_mode: stream.supported_sync_modes.includes(mode) ? mode : "full_refresh",
      destination_sync_mode: "append_dedup",
    })),
  });
  const given = state === undefined ? [] : ["--state", await put("state.json", state)];
  const said = await say("read", "config.json", "--catalog", configured, ...given);
  expect(said.ended.code).toBe(0);
  return said;
}

const recordsOf = ({ messages }: Pick<Said, "messages">, stream: string): readonly Json[] =>
  dataOf(messages, stream);

const statesOf = ({ messages }: Said, stream?: string): AirbyteMessage[] =>
  messages.filter(({ state }) => state && [undefined, state.stream.stream_descriptor.name].includes(stream));

const textsOf = (rows: readonly unknown[]): Set<string> => new Set(rows.map((row) => JSON.stringify(row)));

const instantOf = (row: Json): number => Date.parse(String(row["discoveredAt"]));

const fixture = async (name: string): Promise<unknown> =>
  JSON.parse(await readFile(`${ROOT}integration_tests/${name}`, "utf8"));

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

  it("CS1: takes the config of a connection, and nulls that a form sends", () => {
    const isValid = new Ajv({ strict: false, validateFormats: false }).compile(settings());
    const nulls = { start_date: null, max_run_seconds: null, ignore_missing_days: null };
    expect(
      [{}, nulls, { start_date: "2026-01-02T03:04:05Z" }].map((more) => isValid(configOf(more))),
    ).toEqual([...[true, true, true]]);
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

describe("connection", () => {
  it("CC1: a valid config gives exactly one status, and it is SUCCEEDED", async () => {
    const { ended, messages } = await say("check", "config.json");
    expect(ended.code).toBe(0);
    expect(messages).toMatchObject([{ connectionStatus: { status: "SUCCEEDED" } }]);
  });

  it("CC2: an invalid config gives exactly one status, FAILED with a message, and exit code 0", async () => {
    await put("invalid.json", await fixture("invalid_config.json"));
    const { ended, messages } = await say("check", "invalid.json");
    expect(ended.code).toBe(0);
    expect(messages).toMatchObject([
      { connectionStatus: { status: "FAILED", message: expect.stringMatching(/^Cannot .{20,}/) } },
    ]);
  });

  it.each(["discover", "read"])(
    "CC3: %s with a wrong key gives one ERROR trace with a message",
    async (command) => {
      await put("wrong.json", configOf({ api_key: "svc_00000000_00000000000000000000000000000000" }));
      const streams = command === "read" ? ["--stream", "people"] : [];
      const said = await say(command, "wrong.json", ...streams);
      expect(said.ended.code).toBe(1);
      expect(errorsOf(said.messages)).toMatchObject([
        { failure_type: "config_error", message: expect.any(String) },
      ]);
    },
  );
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

  it("CR5: the records are the service's, each once, and no other", () => {
    const expected = {
      people: sandbox.people(),
      companies: sandbox.companies(),
      sources: sandbox.sources(),
    };
    for (const [stream, rows] of Object.entries(expected)) {
      const records = recordsOf(first, stream);
      expect(textsOf(records), stream).toEqual(textsOf(rows));
      expect(records, stream).toHaveLength(rows.length);
    }
  });

  it("CR6, CR7: every stream is COMPLETE, with the statuses and counts that hold for any output", () => {
    for (const { name } of catalog.streams)
      expect(statusesOf(first.messages, name).at(-1), name).toBe("COMPLETE");
  });

  it.each([
    ["an unknown mode", { streams: [{ stream: { name: "people" }, sync_mode: "INVALID" }] }],
    ["an unknown stream", { streams: [{ stream: { name: "nobody" }, sync_mode: "full_refresh" }] }],
    ["no streams at all", {}],
  ])("CR8: a catalog with %s gives an ERROR trace and exit code 1", async (_, invalid) => {
    const said = await say("read", "config.json", "--catalog", await put("invalid-catalog.json", invalid));
    expect(said.ended.code).toBe(1);
    expect(errorsOf(said.messages)).toMatchObject([{ failure_type: "config_error" }]);
  });
});

describe("full refresh", () => {
  it("CF1, CF2: a second read is later and holds all of the first", async () => {
    const [one, two] = [await read("full_refresh"), await read("full_refresh")];
    for (const { name } of catalog.streams) {
      expect(textsOf(recordsOf(two, name)), name).toEqual(textsOf(recordsOf(one, name)));
    }
    const times = ({ messages }: Said): number[] =>
      messages.flatMap(({ record }) => record?.emitted_at ?? []);
    expect(Math.min(...times(two))).toBeGreaterThan(Math.max(...times(one)));
  });
});

describe("incremental", () => {
  const dated = ["people", "companies"];

  it("CI1, CI3: every state is a point to go on from: nothing is lost, and only the lookback repeats", async () => {
    const states = statesOf(first, "people");
    expect(states.length).toBeGreaterThan(SAMPLES);
    const step = Math.max(1, Math.floor(states.length / SAMPLES));
    for (const state of states.filter((_, index) => index % step === 0)) {
      const at = first.messages.indexOf(state);
      const after = textsOf(recordsOf({ messages: first.messages.slice(at) }, "people"));
      const resumed = await read("incremental", { state: [state.state], streams: ["people"] });
      const records = recordsOf(resumed, "people");
      const delivered = textsOf(records);
      expect([...after].filter((row) => !delivered.has(row))).toEqual([]);
      const { discoveredAt } = { discoveredAt: null, ...state.state?.stream.stream_state };
      const repeated = records.filter((row) => !after.has(JSON.stringify(row)));
      const lookback = Math.floor(Date.parse(String(discoveredAt)) / DAY) * DAY - DAY;
      expect(repeated.filter((row) => row["discoveredAt"] === null || instantOf(row) < lookback)).toEqual([]);
    }
  });

  it("CI4: a state of a future that has not come gives what may be new, and a state that fits", async () => {
    const abnormal = await fixture("abnormal_state.json");
    const known = new Set(sandbox.people().map(({ id }) => id));
    sandbox.arrive(4);
    const said = await read("incremental", { state: abnormal, streams: dated });
    const warnings = said.messages.flatMap(({ log }) => (log?.level === "WARN" ? [log.message] : []));
    expect(warnings.join("\n")).toMatch(/"people".* later than the service's clock/);
    expect(recordsOf(said, "people").filter(({ id }) => !known.has(String(id)))).toHaveLength(4);
    for (const stream of dated) {
      const dates = recordsOf(said, stream).flatMap(({ discoveredAt }) => discoveredAt ?? []);
      expect(Math.min(...dates.map((date) => Date.parse(String(date)))), stream).toBeGreaterThan(
        Date.now() - 4 * 86_400_000,
      );
      const { discoveredAt } = Object(statesOf(said, stream).at(-1)?.state?.stream.stream_state);
      expect(Date.parse(discoveredAt), stream).toBeLessThanOrEqual(Date.now());
    }
  });
});
