import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../src/sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { connector, file, run } from "../support/cli.ts";
import { bookmarksOf, configFor, discover, recordsOf, selection, TAP, tap } from "../support/tap.ts";

const QUICK = { requestsPerMinute: 0, companies: 8 } as const;

describe("tap-contact-intelligence", () => {
  it("syncs without a catalog all that the key can read, byte for byte", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 120 });
    const ended = await run(TAP, ["--config", await configFor(sandbox)]);
    const { code, messages } = await tap(["-c", await configFor(sandbox)]);
    expect(code).toBe(0);
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(recordsOf(messages, "companies")).toHaveLength(sandbox.companies().length);
    expect(recordsOf(messages, "sources")).toHaveLength(sandbox.sources().length);
    expect(bookmarksOf(messages)).toMatchObject({
      people: { version: 1, undated: "done", missing_days: [], full_refresh: null, gap: null },
      sources: { replication_key: null, replication_key_value: null },
    });
    const url = `${sandbox.url}/api/v1/public/people/stream`;
    const served = await (await fetch(url, { headers: { "x-api-key": sandbox.key } })).text();
    const sent = new Set(linesOf(ended.stdout).map((line) => line.split('"record":')[1]));
    const escaped = (line: string): string =>
      line.replaceAll(/[\u0085\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    for (const line of linesOf(served)) expect(sent).toContain(`${escaped(line)}}`);
  });

  it("goes on from its last state, and hands on what it does not know of it", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 120 });
    const config = await configFor(sandbox);
    const first = await tap(["--config", config]);
    const saved = first.messages.at(-1)?.value ?? { bookmarks: {} };
    sandbox.arrive(3);
    const state = { ...saved, currently_syncing: null, bookmarks: { ...saved.bookmarks, other: { x: 1 } } };
    const second = await tap(["--config", config, "--state", await file("state.json", state)]);
    expect(second.code).toBe(0);
    expect(recordsOf(second.messages, "people").length).toBeLessThan(30);
    expect(recordsOf(second.messages, "people").length).toBeGreaterThanOrEqual(3);
    expect(second.messages.at(-1)?.value).toMatchObject({
      currently_syncing: null,
      bookmarks: { other: { x: 1 } },
    });
  });

  it("takes a state from the connector, and the connector takes its", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 200 });
    const config = await configFor(sandbox);
    const airbyte = await connector(["read", "--config", config]);
    const states = airbyte.messages.filter(({ type }) => type === "STATE").map(({ state }) => state);
    const resumed = await tap(["--config", config, "--state", await file("state.json", states)]);
    expect(recordsOf(resumed.messages, "people").length).toBeLessThan(20);
    const singer = await file("state.json", resumed.messages.at(-1)?.value);
    const back = await connector(["read", "--config", config, "--state", singer, "--stream", "people"]);
    expect(back.code).toBe(0);
    expect(back.messages.filter(({ type }) => type === "RECORD").length).toBeLessThan(20);
  });

  it("refuses a state of an unknown shape", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const args = ["--config", await configFor(sandbox), "--state", await file("state.json", { cursor: 7 })];
    const { code, stdout, stderr } = await run(TAP, args);
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("Cannot use the state");
  });

  it("prunes what is not selected out of SCHEMA and RECORD, nested fields too", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 10 });
    const config = await configFor(sandbox);
    const catalog = await selection(await discover(config), ["people", "companies"], {
      "people.email": false,
      "people.id": false,
      "people.discoveredAt": false,
      "companies.headquarters.city": false,
    });
    sandbox.fault("new-field:path=/people/stream:after=1");
    const { code, messages, logs } = await tap(["--config", config, "--catalog", catalog]);
    expect(code).toBe(0);
    const schemas = messages.filter(({ type }) => type === "SCHEMA");
    expect(schemas.map(({ stream }) => stream)).toEqual(["people", "companies"]);
    expect(schemas[0]?.schema?.properties).not.toHaveProperty("email");
    expect(schemas[0]?.schema?.properties).toHaveProperty("id");
    expect(schemas[1]?.schema?.properties).toHaveProperty("headquarters.properties.country");
    expect(schemas[1]?.schema?.properties).not.toHaveProperty("headquarters.properties.city");
    for (const { record } of recordsOf(messages, "people")) {
      expect(record).not.toHaveProperty("email");
      expect(record).not.toHaveProperty("engagement");
      expect(record).toHaveProperty("id");
    }
    for (const { record } of recordsOf(messages, "companies")) {
      expect(record).not.toHaveProperty("headquarters.city");
    }
    expect(logs.map(({ message }) => message).join("\n")).not.toContain('"email"');
  });

  it("announces a new field by a second SCHEMA ahead of its records", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 50 });
    const config = await configFor(sandbox);
    const catalog = await selection(await discover(config), ["people"]);
    sandbox.fault("new-field:path=/people/stream:after=20");
    const { messages, logs } = await tap(["--config", config, "--catalog", catalog]);
    const schemas = messages.filter(({ type }) => type === "SCHEMA");
    expect(schemas).toHaveLength(2);
    expect(schemas[1]?.schema?.properties).toHaveProperty("engagement");
    expect(logs.find(({ level }) => level === "warning")?.message).toContain('new field "engagement"');
  });

  it("replaces NULs and lone surrogates and says how many", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 50 });
    const config = await configFor(sandbox);
    for (const [fault, report] of [
      ["nul", /"people" hold NUL characters.*: 1 replaced/],
      ["surrogate", /halves of surrogate pairs replaced by U\+FFFD: 1/],
    ] as const) {
      sandbox.fault(`${fault}:path=/people/stream`);
      const { code, stdout, logs } = await tap(["--config", config]);
      expect(code).toBe(0);
      expect(stdout).not.toContain("\\u0000");
      expect(logs.map(({ message }) => message).join("\n")).toMatch(report);
    }
  });

  it("reads a table whole whatever the state says, if the user wants it so", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 60 });
    const config = await configFor(sandbox, { emit_activate_version_messages: true });
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

  it("activates nothing unless asked, nor after a table that was not read whole", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const quiet = await tap(["--config", await configFor(sandbox)]);
    expect(quiet.messages.filter(({ type }) => type === "ACTIVATE_VERSION")).toEqual([]);
    const config = await configFor(sandbox, { emit_activate_version_messages: true });
    sandbox.fault("status=403:path=/sources:skip=2:times=always");
    const cut = await tap(["--config", config]);
    expect(cut.code).toBe(1);
    expect(cut.messages.filter(({ type }) => type === "ACTIVATE_VERSION")).toEqual([]);
  });

  it("says so when nothing is selected, and when a stream is unknown", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const config = await configFor(sandbox);
    const catalog = await discover(config);
    const nothing = await tap(["--config", config, "--catalog", await selection(catalog, [])]);
    expect(nothing.code).toBe(0);
    expect(nothing.logs.map(({ message }) => message).join()).toContain("selects no stream");
    const [first] = catalog.streams;
    if (first === undefined) throw new Error("an empty catalog");
    const unknown = { streams: [first, { ...first, tap_stream_id: "ghosts", stream: "ghosts" }] };
    const ended = await tap([
      "--config",
      config,
      "--catalog",
      await selection(unknown, ["people", "ghosts"]),
    ]);
    expect(ended.code).toBe(1);
    expect(recordsOf(ended.messages, "people")).toHaveLength(sandbox.people().length);
    expect(ended.logs.at(-1)).toMatchObject({ level: "critical" });
    expect(ended.logs.at(-1)?.message).toContain('"ghosts"');
  });

  it("ends by the signal, with its last state said", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 4000, latencyMs: 60 });
    const config = await configFor(sandbox, { max_window_rows: 1000, num_workers: 1 });
    const ended = await tap(["--config", config], {
      started: (child) =>
        child.stdout?.once("data", () => child.stdout?.once("data", () => child.kill("SIGTERM"))),
    });
    expect(ended.signal).toBe("SIGTERM");
    expect(recordsOf(ended.messages, "people").length).toBeGreaterThan(0);
    expect(ended.logs.at(-1)?.message).toContain("SIGTERM");
  });

  it("logs in the form that Meltano parses, as much as is wanted", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const args = ["--config", await configFor(sandbox)];
    const { logs } = await tap(args);
    const keys = ["level", "pid", "logger_name", "ts", "thread_name", "app_name", "stream_name", "message"];
    for (const log of logs) expect(Object.keys(log)).toEqual(keys);
    expect(logs.length).toBeGreaterThan(3);
    expect((await tap(args, { env: { MELTANO_CLI_LOG_LEVEL: "warning" } })).stderr).toBe("");
    expect((await tap([...args, "--log-level", "error"])).stderr).toBe("");
  });

  it("merges configs in order, and takes the environment for one", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const secret = await file("secret.json", { api_key: sandbox.key });
    const rest = await file("rest.json", { api_key: "wrong", base_url: sandbox.url });
    expect((await run(TAP, ["--test", "--config", rest, "--config", secret])).code).toBe(0);
    expect((await run(TAP, ["--test", "--config", secret, "--config", rest])).code).toBe(1);
    const env = {
      TAP_CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
      TAP_CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
    };
    expect((await run(TAP, ["--test", "--config", "ENV"], { env })).code).toBe(0);
    expect((await run(TAP, ["--test"], { env })).code).toBe(1);
  });

  it("--test reads one record of each stream and buys nothing", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const { code, stdout, stderr } = await run(TAP, ["--config", await configFor(sandbox), "--test"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    for (const name of ["people", "companies", "sources"])
      expect(stderr).toContain(`\\"${name}\\": a record`);
    expect(sandbox.requests.filter(({ method }) => method !== "GET")).toEqual([]);
    await using refusing = await startSandbox({ ...QUICK, people: 5, plan: "agency" });
    expect((await run(TAP, ["--config", await configFor(refusing), "--test"])).code).toBe(1);
  });

  it("leaves out what the key's plan leaves out, unless a catalog asks for it", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5, plan: "agency" });
    const config = await configFor(sandbox);
    const { code, messages } = await tap(["--config", config]);
    expect(code).toBe(0);
    expect(recordsOf(messages, "people")).toEqual([]);
    expect(recordsOf(messages, "sources")).not.toEqual([]);
    const asked = await tap([
      "--config",
      config,
      "--catalog",
      await selection(await discover(config), ["people"]),
    ]);
    expect(asked.code).toBe(1);
  });
});

describe("tap-contact-intelligence --discover", () => {
  it("prints on many lines a catalog with metadata for every property", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const { stdout, stderr, code } = await run(TAP, ["--config", await configFor(sandbox), "--discover"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThan(1000);
    const { streams } = JSON.parse(stdout);
    expect(streams.map((entry: { stream: string }) => entry.stream)).toEqual([
      "people",
      "companies",
      "sources",
    ]);
    for (const { schema, metadata } of streams) {
      const crumbs = metadata.map(({ breadcrumb }: { breadcrumb: string[] }) => breadcrumb.join("."));
      expect(crumbs).toEqual(["", ...pathsOf(schema)]);
      for (const item of metadata) expect(["available", "automatic"]).toContain(item.metadata.inclusion);
    }
    expect(streams[1].schema.properties).toHaveProperty("headquarters.properties.city");
  });

  it("wins over every other flag", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const config = await configFor(sandbox);
    const { stdout: plain } = await run(TAP, ["--config", config, "--discover"]);
    const nothing = await file("none.json", {});
    const args = [
      "--config",
      config,
      "--catalog",
      "gone",
      "--state",
      nothing,
      "--test",
      "--about",
      "--discover",
    ];
    expect(await run(TAP, args)).toMatchObject({ code: 0, stdout: plain });
  });

  it("shows what is declared when the service does not tell", async () => {
    await using sandbox = await startSandbox({ ...QUICK, people: 5 });
    const config = await configFor(sandbox);
    sandbox.fault("html:times=always");
    const { stdout, stderr, code } = await run(TAP, ["--config", config, "--discover"]);
    expect(code).toBe(0);
    expect(Object.keys(JSON.parse(stdout).streams[1].schema.properties)).toEqual(["domain"]);
    expect(stderr).toContain('"level":"warning"');
    const bare = await run(TAP, ["--discover"]);
    expect(bare.code).toBe(0);
    expect(JSON.parse(bare.stdout).streams).toHaveLength(3);
    expect(bare.stderr).toContain("base_url is missing");
  });
});

type Schema = { readonly properties?: Readonly<Record<string, Schema>> };

const pathsOf = (schema: Schema, parent: readonly string[] = []): string[] =>
  Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = [...parent, "properties", name];
    return [path.join("."), ...pathsOf(inner, path)];
  });

describe("tap-contact-intelligence --about", () => {
  const shipped = new URL("../../meltano/tap-contact-intelligence.yml", import.meta.url);

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

  it("makes the plugin definition that is shipped, in which nothing buys", async () => {
    const { stdout } = await run(TAP, ["--about", "--format", "meltano"]);
    expect(stdout).toBe(await readFile(shipped, "utf8"));
    const settings = stdout.split(/^- name: /m).slice(1);
    const nested = settings.filter((text) => /^(company_lookup|email_|external_api)/.test(text));
    expect(nested.length).toBeGreaterThan(10);
    for (const text of nested) expect(text).not.toContain("\n  value:");
  });
});
