import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import type { SingerMessage } from "../support/singer-messages.ts";
import {
  bookmarksOf,
  discover,
  expectWithout,
  type Log,
  recordsOf,
  schemasOf,
  selection,
  TAP,
  tap,
} from "../support/tap.ts";

const QUICK = { requestsPerMinute: 0, companies: 8, people: 5 } as const;

type Point = { metric: string; value: number; tags: Readonly<Record<string, unknown>> };

/** The fields that the last SCHEMA of a stream has. */
const fieldsOf = (messages: readonly SingerMessage[], stream: string): unknown =>
  schemasOf(messages).findLast((schema) => schema.stream === stream)?.schema?.properties;

const warningsIn = (logs: readonly Log[]): string =>
  logs.flatMap(({ level, message }) => (level === "warning" ? [message] : [])).join("\n");

describe("tap-contact-intelligence", () => {
  it("syncs without a catalog all that the key can read, byte for byte", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 120 });
    const ended = await run(TAP, ["--config", config]);
    const { messages } = await tap(["-c", config]);
    expect(messages.filter(({ type }) => type === "ACTIVATE_VERSION")).toEqual([]);
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(recordsOf(messages, "companies")).toHaveLength(sandbox.companies().length);
    expect(recordsOf(messages, "sources")).toHaveLength(sandbox.sources().length);
    expect(bookmarksOf(messages)).toMatchObject({
      people: { version: 2, undated: { rows: 3 }, full_refresh: null, plan: null },
      sources: { replication_key: null, replication_key_value: null },
    });
    const url = `${sandbox.url}/api/v1/public/people/stream`;
    const served = await (await fetch(url, { headers: { "x-api-key": sandbox.key } })).text();
    const sent = new Set(linesOf(ended.stdout).map((line) => line.split('"record":')[1]));
    const escaped = (line: string): string =>
      line.replaceAll(/[\u0085\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    for (const line of linesOf(served)) expect(sent).toContain(`${escaped(line)}}`);
  });

  it("drops companies without their key, which targets that merge cannot take", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    sandbox.fault("keyless=3:path=companies");
    const { messages } = await tap(["-c", config]);
    const companies = recordsOf(messages, "companies");
    expect(companies).toHaveLength(sandbox.companies().length - 3);
    for (const company of companies) expect(company).toHaveProperty("record.domain", expect.any(String));
  });

  it("goes on from its last state, and hands on what it does not know of it", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 120 });
    const first = await tap(["--config", config]);
    const saved = first.messages.at(-1)?.value ?? { bookmarks: {} };
    sandbox.arrive(3);
    const state = { ...saved, currently_syncing: null, bookmarks: { ...saved.bookmarks, other: { x: 1 } } };
    const second = await tap(["--config", config, "--state", await file("state.json", state)]);
    expect(recordsOf(second.messages, "people").length).toBeLessThan(30);
    expect(recordsOf(second.messages, "people").length).toBeGreaterThanOrEqual(3);
    expect(second.messages.at(-1)?.value).toMatchObject({
      currently_syncing: null,
      bookmarks: { other: { x: 1 } },
    });
  });

  it("prunes what is not selected out of SCHEMA and RECORD, nested fields too", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 10 });
    const catalog = await selection(await discover(config), ["people", "companies"], {
      "people.email": false,
      "people.id": false,
      "people.discoveredAt": false,
      "companies.headquarters.city": false,
    });
    sandbox.fault("new-field:path=/people/stream:after=1");
    const { messages, logs } = await tap(["--config", config, "--catalog", catalog]);
    expect(schemasOf(messages).map(({ stream }) => stream)).toEqual(["people", "companies"]);
    expect(fieldsOf(messages, "people")).not.toHaveProperty("email");
    expect(fieldsOf(messages, "people")).toHaveProperty("id");
    expect(fieldsOf(messages, "companies")).toHaveProperty("headquarters.properties.country");
    expect(fieldsOf(messages, "companies")).not.toHaveProperty("headquarters.properties.city");
    expectWithout(messages, "people", "email", "engagement");
    for (const { record } of recordsOf(messages, "people")) expect(record).toHaveProperty("id");
    expectWithout(messages, "companies", "headquarters.city");
    expect(warningsIn(logs)).not.toContain('"email"');
  });

  it("announces a new field by a second SCHEMA ahead of its records, without a catalog", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 50 });
    sandbox.fault("new-field:path=/people/stream:after=20");
    const { messages, logs } = await tap(["--config", config]);
    expect(schemasOf(messages, "people")).toHaveLength(2);
    expect(fieldsOf(messages, "people")).toHaveProperty("engagement");
    expect(warningsIn(logs)).toContain('new field "engagement"');
  });

  it("withholds what the catalog does not name, and says so in every run", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 50 });
    const catalog = await discover(config);
    for (const { schema } of catalog.streams) {
      delete schema.properties["jobTitle"];
      delete schema.properties["employeeCount"];
      delete schema.properties["headquarters"]?.properties?.["city"];
    }
    sandbox.fault("new-field:path=/people/stream:after=20");
    const chosen = await selection(catalog, ["people", "companies"]);
    const { messages, logs } = await tap(["--config", config, "--catalog", chosen]);
    expect(schemasOf(messages).map(({ stream }) => stream)).toEqual(["people", "companies"]);
    expectWithout(messages, "people", "jobTitle", "engagement");
    expectWithout(messages, "companies", "employeeCount", "headquarters.city");
    expect(warningsIn(logs)).toMatch(/"people" have fields .* withheld: "jobTitle"\..*refresh-catalog/);
    expect(warningsIn(logs)).toMatch(/"people" have fields .* withheld: "engagement"\..*fixed.*"schema"/);
    expect(warningsIn(logs)).toMatch(
      /"companies" have fields .* withheld: .*"headquarters.city".*refresh-catalog/,
    );
  });

  it("fails on rows whose fields its catalog cannot know, until the catalog is made anew", async () => {
    await using empty = await startSandbox({ ...QUICK, companies: 0 });
    const cached = await discover(await configFor(empty));
    const chosen = await selection(cached, ["people", "companies"]);
    await tap(["--config", await configFor(empty), "--catalog", chosen]);
    const { sandbox, config } = await sandboxWith(QUICK);
    const { messages, logs } = await tap(["--config", config, "--catalog", chosen], { exits: 1 });
    expect(recordsOf(messages, "companies")).toEqual([]);
    expect(bookmarksOf(messages)).not.toHaveProperty("companies");
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(logs.at(-1)?.message).toMatch(/"companies": when the catalog was made .*refresh-catalog/);
    const anew = await selection(await discover(config), ["people", "companies"]);
    await tap(["--config", config, "--catalog", anew]);
  });

  it("refuses a replication key that is not the stream's own, before it asks for anything", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const catalog = await discover(config);
    Object.assign(catalog.streams[0]?.metadata[0]?.metadata ?? {}, { "replication-key": "email" });
    const asked = sandbox.requests.length;
    const chosen = await selection(catalog, ["people"]);
    const { logs } = await tap(["--config", config, "--catalog", chosen], { exits: 1 });
    expect(logs.at(-1)?.message).toContain('"people" by the key "email": it has "discoveredAt"');
    expect(sandbox.requests.length).toBe(asked);
  });

  it("replaces NULs and lone surrogates and says how many", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 50 });
    for (const [fault, report] of [
      ["nul", /"people" hold NUL characters.*: 1 replaced/],
      ["surrogate", /halves of surrogate pairs replaced by U\+FFFD: 1/],
    ] as const) {
      sandbox.fault(`${fault}:path=/people/stream`);
      const { stdout, logs } = await tap(["--config", config]);
      expect(stdout).not.toContain("\\u0000");
      expect(logs.map(({ message }) => message).join("\n")).toMatch(report);
    }
  });

  it("reads a table whole whatever the state says, if the user wants it so", async () => {
    const { sandbox, config } = await sandboxWith(
      { ...QUICK, people: 60 },
      { emit_activate_version_messages: true },
    );
    const first = await tap(["--config", config]);
    const state = await file("state.json", first.messages.at(-1)?.value);
    const catalog = await discover(config);
    for (const { metadata } of catalog.streams)
      Object.assign(metadata[0]?.metadata ?? {}, { "replication-method": "FULL_TABLE" });
    const chosen = await selection(catalog, ["people"]);
    const { messages } = await tap(["--config", config, "--catalog", chosen, "--state", state]);
    const rows = recordsOf(messages, "people");
    expect(rows).toHaveLength(sandbox.people().length);
    const activations = messages.filter(({ type }) => type === "ACTIVATE_VERSION");
    expect(activations).toHaveLength(1);
    expect(messages.indexOf(activations[0] ?? messages[0] ?? { type: "" })).toBe(messages.length - 2);
    expect(new Set(rows.map(({ version }) => version))).toEqual(new Set([activations[0]?.version]));
  });

  it("says so when nothing is selected, and when a stream is unknown", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const catalog = await discover(config);
    const nothing = await tap(["--config", config, "--catalog", await selection(catalog, [])]);
    expect(nothing.logs.map(({ message }) => message).join()).toContain("selects no stream");
    const [first] = catalog.streams;
    if (first === undefined) throw new Error("an empty catalog");
    const none = await tap(["--config", config, "--catalog", await file("none.json", { streams: [] })]);
    expect(warningsIn(none.logs)).toContain("selects no stream");
    const unknown = { streams: [first, { ...first, tap_stream_id: "ghosts", stream: "ghosts" }] };
    const chosen = await selection(unknown, ["people", "ghosts"]);
    const ended = await tap(["--config", config, "--catalog", chosen], { exits: 1 });
    expect(recordsOf(ended.messages, "people")).toHaveLength(sandbox.people().length);
    expect(ended.logs.at(-1)).toMatchObject({
      level: "critical",
      message: expect.stringContaining('"ghosts"'),
    });
  });

  it("ends by the signal, with its last state said after the records that came since", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 3000, bytesPerSecond: 400_000 });
    const ended = await tap(["--config", config], {
      exits: null,
      started: (child) =>
        child.stdout?.on("data", (chunk: Buffer) => {
          if (chunk.includes('"RECORD"')) child.kill("SIGTERM");
        }),
    });
    expect(ended.signal).toBe("SIGTERM");
    const rows = recordsOf(ended.messages, "people").length;
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThan(sandbox.people().length);
    expect(bookmarksOf(ended.messages), "no window was finished").toEqual({});
    expect(ended.logs.at(-1)?.message).toContain("SIGTERM");
  });

  it("logs in the form that Meltano parses, as much as is wanted", async () => {
    const { config } = await sandboxWith(QUICK);
    const args = ["--config", config];
    const { logs } = await tap(args);
    const keys = ["level", "pid", "logger_name", "ts", "thread_name", "app_name", "stream_name", "message"];
    for (const log of logs)
      expect(Object.keys(log)).toEqual([
        ...keys,
        ...(log.message === "METRIC" ? ["metric_info"] : []),
        "extra",
      ]);
    expect(logs.length).toBeGreaterThan(3);
    expect((await tap(args, { env: { MELTANO_CLI_LOG_LEVEL: "warning" } })).stderr).toBe("");
    expect((await tap([...args, "--log-level", "error"])).stderr).toBe("");
  });

  it("logs what the Meltano SDK measures, for each stream", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 30 });
    const { logs } = await tap(["--config", config]);
    const points = logs.flatMap(({ metric_info }) => (metric_info ?? []) as Point | []);
    const of = (stream: string): Record<string, number> => {
      const mine = points.filter(({ tags }) => tags["stream"] === stream);
      return Object.fromEntries(mine.map(({ metric, value }) => [metric, value]));
    };
    expect(of("people")).toMatchObject({ record_count: sandbox.people().length });
    const asked = sandbox.requests.filter(({ path }) => path.includes("/people")).length;
    expect(of("people")["http_request_count"]).toBeGreaterThan(0);
    expect(of("people")["http_request_count"]).toBeLessThanOrEqual(asked);
    expect(of("sources")["sync_duration"]).toBeGreaterThan(0);
    expect(of("sources")["http_request_duration"]).toBeGreaterThan(0);
    const statuses = points.flatMap(({ tags }) => tags["status"] ?? []);
    expect(statuses).toEqual(["succeeded", "succeeded", "succeeded"]);
    sandbox.fault("status=403:path=/sources:skip=2:times=always");
    const failed = await tap(["--config", config], { exits: 1 });
    expect(JSON.stringify(failed.logs)).toContain('"status":"failed"');
  });

  it("merges configs in order, and takes the environment for one", async () => {
    await using sandbox = await startSandbox(QUICK);
    const secret = await file("secret.json", { api_key: sandbox.key });
    const rest = await file("rest.json", { api_key: "wrong", base_url: sandbox.url });
    const tested = (words: readonly string[], env = {}) => run(TAP, ["--test", ...words], { env });
    expect(await tested(["--config", rest, "--config", secret])).toMatchObject({ code: 0 });
    expect(await tested(["--config", secret, "--config", rest])).toMatchObject({ code: 1 });
    const prefix = "TAP_CONTACT_INTELLIGENCE_";
    const env = { [`${prefix}API_KEY`]: sandbox.key, [`${prefix}BASE_URL`]: sandbox.url };
    expect(await tested(["--config", "ENV"], env)).toMatchObject({ code: 0 });
    const wrong = await tested(["--config", "ENV"], { ...env, [`${prefix}API_KEY`]: "wrong" });
    expect(wrong.stderr).toContain(`The key is from the environment variable ${prefix}API_KEY`);
    expect(await tested([], env)).toMatchObject({ code: 1 });
  });

  it("--test reads one record of each stream and buys nothing", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const { code, stdout, stderr } = await run(TAP, ["--config", config, "--test"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    for (const name of ["people", "companies", "sources"])
      expect(stderr).toContain(`\\"${name}\\": a record`);
    expect(sandbox.requests.filter(({ method }) => method !== "GET")).toEqual([]);
    const refusing = await sandboxWith({ ...QUICK, plan: "agency" });
    expect((await run(TAP, ["--config", refusing.config, "--test"])).code).toBe(1);
  });

  it("--test says of what is bought, and of what a run says of itself, that they can be had", async () => {
    await using sandbox = await startSandbox(QUICK);
    const config = await configFor(sandbox, {
      external_api: { api_url: sandbox.url, api_key: sandbox.key },
      company_lookup: { domains: ["a.example"] },
      proof_stream: true,
    });
    const { stderr } = await run(TAP, ["--config", config, "--test"]);
    expect(stderr).toContain('Stream \\"company_lookups\\": can be submitted');
    expect(stderr).toContain('Stream \\"sync_windows\\": comes with each run');
  });

  it("buys only what both its settings and a catalog ask for", async () => {
    await using sandbox = await startSandbox(QUICK);
    const config = await configFor(sandbox, {
      external_api: { api_url: sandbox.url, api_key: sandbox.key },
      email_verification: { emails: ["a@example.com"] },
    });
    const bought = (): number => sandbox.requests.filter(({ method }) => method !== "GET").length;
    await tap(["--config", config]);
    expect((await run(TAP, ["--config", config, "--test"])).code).toBe(0);
    const catalog = await discover(config);
    expect(bought()).toBe(0);
    const chosen = await selection(catalog, ["email_verifications"]);
    const { messages } = await tap(["--config", config, "--catalog", chosen]);
    expect(bought()).toBe(1);
    expect(recordsOf(messages, "email_verifications")).toHaveLength(1);
    const state = await file("state.json", messages.at(-1)?.value);
    await tap(["--config", config, "--catalog", chosen, "--state", state]);
    expect(bought(), "what was bought is not bought again").toBe(1);
    await tap(["--config", await configFor(sandbox), "--catalog", chosen], { exits: 1 });
    expect(bought()).toBe(1);
  });

  it("leaves out what the key's plan leaves out, unless a catalog asks for it", async () => {
    const { config } = await sandboxWith({ ...QUICK, plan: "agency" });
    const { messages } = await tap(["--config", config]);
    expect(recordsOf(messages, "people")).toEqual([]);
    expect(recordsOf(messages, "sources")).not.toEqual([]);
    const chosen = await selection(await discover(config), ["people"]);
    await tap(["--config", config, "--catalog", chosen], { exits: 1 });
  });
});

describe("tap-contact-intelligence --discover", () => {
  it("prints on many lines a catalog with metadata for every property", async () => {
    const { config } = await sandboxWith(QUICK);
    const { stdout, stderr, code } = await run(TAP, ["--config", config, "--discover"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThan(1000);
    const { streams } = JSON.parse(stdout);
    const names = streams.map((entry: { stream: string }) => entry.stream);
    expect(names).toEqual(["people", "companies", "sources"]);
    for (const { schema, metadata } of streams) {
      const crumbs = metadata.map(({ breadcrumb }: { breadcrumb: string[] }) => breadcrumb.join("."));
      expect(crumbs).toEqual(["", ...pathsOf(schema)]);
      for (const item of metadata) expect(["available", "automatic"]).toContain(item.metadata.inclusion);
    }
    expect(streams[1].schema.properties).toHaveProperty("headquarters.properties.city");
  });

  it("wins over every other flag", async () => {
    const { config } = await sandboxWith(QUICK);
    const { stdout: plain } = await run(TAP, ["--config", config, "--discover"]);
    const nothing = await file("none.json", {});
    const others = ["--catalog", "gone", "--state", nothing, "--test", "--about"];
    const args = ["--config", config, ...others, "--discover"];
    expect(await run(TAP, args)).toMatchObject({ code: 0, stdout: plain });
  });

  it.each(["html", "status=503", "status=401"])(
    "fails when the service does not show the rows: %s",
    async (fault) => {
      await using sandbox = await startSandbox(QUICK);
      const config = await configFor(sandbox);
      sandbox.fault(`${fault}:times=always`);
      const args = ["--config", config, "--discover"];
      const { stdout, stderr, code } = await run(TAP, args, { clock: hurriedClock() });
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain("read companies");
    },
  );

  it("gives up at once when the service limits the key for longer than a caller would wait", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    sandbox.fault("429=55:times=always");
    const { stdout, stderr, code } = await run(TAP, ["--config", config, "--discover"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("the service limits this key until");
    expect(sandbox.requests).toHaveLength(1);
    sandbox.fault("429=1");
    expect((await run(TAP, ["--config", config, "--discover"], { clock: hurriedClock() })).code).toBe(0);
  });

  it.each([
    [49, 0],
    [51, 1],
  ])("waits for a limit of %i seconds or not: it ends with %i", async (seconds, code) => {
    const { sandbox, config } = await sandboxWith(QUICK);
    let now = Date.now();
    const sleep = async (ms: number): Promise<void> => {
      now += ms;
    };
    const clock = { now: () => now, monotonic: () => now, sleep };
    sandbox.fault(`429=${seconds}`);
    const ended = await run(TAP, ["--config", config, "--discover"], { clock });
    expect([ended.code, sandbox.requests.length > 1]).toEqual([code, code === 0]);
  });

  it("says of which streams live rows told the fields", async () => {
    const sampledOf = async (options: SandboxOptions): Promise<unknown[]> => {
      const { config } = await sandboxWith({ ...QUICK, ...options });
      return (await discover(config)).streams.map(({ metadata }) => metadata[0]?.metadata["sampled"]);
    };
    expect(await sampledOf({})).toEqual([undefined, true, true]);
    expect(await sampledOf({ companies: 0 })).toEqual([undefined, false, true]);
    expect(await sampledOf({ plan: "agency" })).toEqual([undefined, false, true]);
  });

  it("shows what is declared without a usable config", async () => {
    const bare = await run(TAP, ["--discover"]);
    expect(bare.code).toBe(0);
    expect(JSON.parse(bare.stdout).streams).toHaveLength(3);
    expect(bare.stderr).toContain("base_url is missing");
    for (const { stream, metadata } of JSON.parse(bare.stdout).streams)
      expect(metadata[0].metadata.sampled).toBe(stream === "people" ? undefined : false);
  });
});

type Schema = { readonly properties?: Readonly<Record<string, Schema>> };

const pathsOf = (schema: Schema, parent: readonly string[] = []): string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = [...parent, "properties", name];
    return [path.join("."), ...pathsOf(inner, path)];
  });

describe("tap-contact-intelligence --about", () => {
  const shipped = new URL("../../meltano/", import.meta.url);

  it("describes itself for people and programs", async () => {
    const text = await run(TAP, ["--about"]);
    expect(text.stdout).toContain("max_run_seconds (integer)");
    const markdown = await run(TAP, ["--about", "--format", "markdown"]);
    expect(markdown.stdout).toContain("| `external_api.api_key` | string, secret |");
    const { stdout } = await run(TAP, ["--about", "--format", "json", "--config", "gone"]);
    const about = JSON.parse(stdout);
    expect(about).toMatchObject({
      name: "tap-contact-intelligence",
      settings: { required: ["base_url", "api_key"] },
    });
    expect(about.settings.properties.api_key).toMatchObject({ secret: true });
    expect(about.capabilities).toContain("state");
  });

  it.each([
    ["meltano", "tap-contact-intelligence.yml"],
    ["meltano-hub", "hub/extractors/tap-contact-intelligence/source-contact-intelligence.yml"],
  ])("prints the plugin definition that is shipped, in the form %s", async (format, file) => {
    const { stdout } = await run(TAP, ["--about", "--format", format]);
    expect(stdout).toBe(await readFile(new URL(file, shipped), "utf8"));
  });
});
