import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { linesOf } from "../support/airbyte-messages.ts";
import { file, run, TAP } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { hurriedClock } from "../support/in-process.ts";
import { bookmarksOf, type Catalog, discover, recordsOf, schemasOf, selection, tap } from "../support/tap.ts";

// Orchestrators and targets of Singer rely on this; tap() holds every message against what the strictest targets take.

const QUICK = { companies: 8, people: 5 } as const;

describe("a sync", () => {
  it("without a catalog delivers all that the key can read, byte for byte", async () => {
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 120 });
    const { stdout, messages, logs } = await tap(["--config", config]);
    const metric_info = { metric: "record_count", value: sandbox.people().length };
    expect(logs.map((log) => log["metric_info"])).toContainEqual(expect.objectContaining(metric_info));
    for (const stream of ["people", "companies", "sources"] as const)
      expect(recordsOf(messages, stream)).toHaveLength(sandbox[stream]().length);
    expect(bookmarksOf(messages)).toMatchObject({
      people: { undated: { rows: 3 }, full_refresh: null },
      sources: { replication_key: null, replication_key_value: null },
    });
    const url = `${sandbox.url}/api/v1/public/people/stream`;
    const served = await (await fetch(url, { headers: { "x-api-key": sandbox.key } })).text();
    const sent = new Set(linesOf(stdout).map((line) => line.split('"record":')[1]));
    const escaped = (line: string): string =>
      line.replaceAll(/[\u0085\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    for (const line of linesOf(served)) expect(sent).toContain(`${escaped(line)}}`);
  });

  it("reads a table from the start whatever the state says, and activates its version, if the user asks", async () => {
    const settings = { emit_activate_version_messages: true };
    const { sandbox, config } = await sandboxWith({ ...QUICK, people: 60 }, settings);
    const first = await tap(["--config", config]);
    const state = await file("state.json", first.messages.at(-1)?.value);
    const catalog = await discover(config);
    for (const { metadata } of catalog.streams)
      Object.assign(metadata[0]?.metadata ?? {}, { "replication-method": "FULL_TABLE" });
    const chosen = await selection(catalog, ["people"]);
    const { messages } = await tap(["--config", config, "--catalog", chosen, "--state", state]);
    const rows = recordsOf(messages, "people");
    expect(rows).toHaveLength(sandbox.people().length);
    expect(messages.at(-2)?.type).toBe("ACTIVATE_VERSION");
    expect(new Set(rows.map(({ version }) => version))).toEqual(new Set([messages.at(-2)?.version]));
  });

  it("announces a new field by a second SCHEMA ahead of its records", async () => {
    const faults = ["new-field:path=/people/stream:after=20"];
    const { config } = await sandboxWith({ ...QUICK, people: 50, faults });
    const { messages, logs } = await tap(["--config", config]);
    const schemas = schemasOf(messages, "people").map(({ schema }) => schema?.properties["engagement"]);
    expect(schemas).toEqual([undefined, expect.any(Object)]);
    expect(logs.map(({ message }) => message).join("\n")).toContain('new field "engagement"');
  });

  it("buys only what both the settings and the catalog ask for, and once", async () => {
    const { sandbox } = await sandboxWith(QUICK);
    const external_api = { api_url: sandbox.url, api_key: sandbox.key };
    const email_verification = { emails: ["a@example.com"] };
    const config = await configFor(sandbox, { external_api, email_verification });
    const bought = (): number => sandbox.requests.filter(({ method }) => method !== "GET").length;
    await tap(["--config", config]);
    const { stderr } = await run(TAP, ["--config", config, "--test"]);
    expect(stderr).toMatch(/This key can read people.*, email_verifications/);
    expect(bought()).toBe(0);
    const args = ["--catalog", await selection(await discover(config), ["email_verifications"])];
    const { messages } = await tap(["--config", config, ...args]);
    expect([bought(), recordsOf(messages, "email_verifications").length]).toEqual([1, 1]);
    const state = await file("state.json", messages.at(-1)?.value);
    await tap(["--config", config, ...args, "--state", state]);
    await tap(["--config", await configFor(sandbox), ...args], { exits: 1 });
    expect(bought()).toBe(1);
  });
});

describe("a catalog", () => {
  it("made when there were no rows lets no row out whose fields it cannot know, until it is made again", async () => {
    await using empty = await startSandbox({ ...QUICK, companies: 0 });
    const chosen = await selection(await discover(await configFor(empty)), ["people", "companies"]);
    await tap(["--config", await configFor(empty), "--catalog", chosen]);
    const { sandbox, config } = await sandboxWith(QUICK);
    const { messages, logs } = await tap(["--config", config, "--catalog", chosen], { exits: 1 });
    expect(recordsOf(messages, "companies")).toEqual([]);
    expect(bookmarksOf(messages)).not.toHaveProperty("companies");
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(logs.at(-1)?.message).toMatch(/"companies": when the catalog was made .*refresh-catalog/);
    const fresh = await selection(await discover(config), ["people", "companies"]);
    await tap(["--config", config, "--catalog", fresh]);
  });

  it("that selects a stream which the tap does not have still reads the others, and fails", async () => {
    const { sandbox, config } = await sandboxWith(QUICK);
    const catalog = await file("catalog.json", { streams: [{ stream: "aliens" }, { stream: "people" }] });
    const { messages, logs } = await tap(["--config", config, "--catalog", catalog], { exits: 1 });
    expect(recordsOf(messages, "people")).toHaveLength(sandbox.people().length);
    expect(schemasOf(messages, "aliens")).toEqual([]);
    expect(logs.filter(({ level }) => level === "critical").map(({ message }) => message)).toEqual([
      expect.stringMatching(/"aliens": there is no such stream/),
    ]);
  });

  it("fails for a stream that it selects and the key's plan does not include", async () => {
    const { config } = await sandboxWith({ ...QUICK, plan: "agency" });
    const chosen = await selection(await discover(config), ["people"]);
    await tap(["--config", config, "--catalog", chosen], { exits: 1 });
  });
});

type Entry = Catalog["streams"][number];

const fieldOf = ({ schema }: Entry, ...path: readonly string[]): object =>
  path.reduce((inner, name) => inner.properties?.[name] ?? {}, schema);

function mark({ metadata }: Entry, marks: object, ...path: readonly string[]): void {
  const place = path.flatMap((name) => ["properties", name]).join();
  Object.assign(metadata.find(({ breadcrumb }) => breadcrumb.join() === place)?.metadata ?? {}, marks);
}

type Edit = (people: Entry, companies: Entry) => unknown;
const FALSE = { selected: "False" };
const UNSUPPORTED = { inclusion: "unsupported" };

/** Edits of a discovered catalog, each with what must not leave by it. */
const WITHHELD: readonly (readonly [how: string, withheld: "email" | "city" | "people", edit: Edit])[] = [
  ["false", "email", (people) => mark(people, { selected: false }, "email")],
  ["a text", "email", (people) => mark(people, FALSE, "email")],
  ["its default", "email", (people) => mark(people, { "selected-by-default": "false" }, "email")],
  ["inclusion", "email", (people) => mark(people, UNSUPPORTED, "email")],
  ["its schema", "email", (people) => Object.assign(fieldOf(people, "email"), { selected: false })],
  ["inclusion in its schema", "email", (people) => Object.assign(fieldOf(people, "email"), UNSUPPORTED)],
  [
    "the schema of others",
    "email",
    (people) => Object.assign(fieldOf(people, "company"), { selected: true }),
  ],
  ["nested metadata", "city", (_, companies) => mark(companies, FALSE, "headquarters", "city")],
  ["a nested schema", "city", (_, all) => Object.assign(fieldOf(all, "headquarters", "city"), FALSE)],
  ["metadata of the stream", "people", (people) => mark(people, FALSE)],
  ["the stream", "people", (people) => Object.assign(people, FALSE)],
  ["the stream's schema", "people", (people) => Object.assign(fieldOf(people), FALSE)],
];

/** Edits by which nobody can know what is meant, each with what the refusal says. */
const UNCLEAR: readonly (readonly [why: string, edit: Edit])[] = [
  ['"selected" of "people.email" is 0.', (people) => mark(people, { selected: 0 }, "email")],
  ['"selected" of "people.email" is null.', (people) => mark(people, { selected: null }, "email")],
  [
    '"selected" of "people.email" is "no".',
    (people) => Object.assign(fieldOf(people, "email"), { selected: "no" }),
  ],
  ['"selected" of "people" is 0.', (people) => Object.assign(people, { selected: 0 })],
  ['and "metadata" with "selected"', (people) => Object.assign(people, { metadata: { selected: false } })],
  [
    'and "metadata" with "selected"',
    ({ metadata }) => metadata.push({ breadcrumb: ["email"], metadata: { selected: false } }),
  ],
];

describe("a field or stream that a catalog does not select", () => {
  let catalog: Catalog;
  let sandbox: Sandbox;
  let config: string;

  beforeAll(async () => {
    sandbox = await startSandbox(QUICK);
    config = await configFor(sandbox);
    catalog = await discover(config);
  });
  afterAll(() => sandbox.close());

  async function edited(edit: Edit): Promise<readonly string[]> {
    const { streams } = structuredClone(catalog);
    const [people, companies] = streams as [Entry, Entry];
    edit(people, companies);
    return ["--config", config, "--properties", await file("properties.json", { streams })];
  }

  it.each(WITHHELD)("by %s never leaves: %s", async (_, withheld, edit) => {
    const asked = sandbox.requests.length;
    const { stdout } = await tap(await edited(edit));
    const requests = sandbox.requests.slice(asked).filter(({ path }) => path.includes("people"));
    const found = ["email", "city"].map((field) => stdout.includes(`"${field}":`));
    expect([requests.length > 0, ...found]).toEqual([
      withheld !== "people",
      withheld === "city",
      withheld !== "city",
    ]);
  });

  it.each(UNCLEAR)("in an unclear form is refused: %s", async (why, edit) => {
    const asked = sandbox.requests.length;
    const { code, stdout, stderr } = await run(TAP, await edited(edit));
    expect([code, stdout, sandbox.requests.length - asked]).toEqual([1, "", 0]);
    expect(JSON.parse(linesOf(stderr)[0] ?? "").message).toContain(why);
  });
});

describe("--discover", () => {
  it("prints the streams on many lines, and says which lack fields of live rows, whatever other flags there are", async () => {
    const { config } = await sandboxWith(QUICK);
    const others = ["--catalog", "gone", "--state", await file("none.json", {}), "--test", "--about"];
    const { stdout, stderr, code } = await run(TAP, ["--config", config, ...others, "--discover"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThan(1000);
    const { streams } = JSON.parse(stdout);
    const names = streams.map(({ stream }: { stream: string }) => stream);
    expect(names).toEqual(["people", "companies", "sources"]);
    expect(streams[1].schema.properties).toHaveProperty("headquarters.properties.city");
    const sampledOf = async (options: SandboxOptions): Promise<unknown[]> => {
      const other = await sandboxWith({ ...QUICK, ...options });
      return (await discover(other.config)).streams.map(({ metadata }) => metadata[0]?.metadata["sampled"]);
    };
    expect(await sampledOf({})).toEqual([undefined, undefined, undefined]);
    for (const options of [{ companies: 0 }, { plan: "agency" }] as const)
      expect(await sampledOf(options)).toEqual([undefined, false, undefined]);
  });

  it.each(["html", "status=503", "status=401", "429=55"])(
    "prints no catalog when the service does not show the rows: %s",
    async (fault) => {
      const { config } = await sandboxWith({ ...QUICK, faults: [`${fault}:times=always`] });
      const ended = await run(TAP, ["--config", config, "--discover"], { clock: hurriedClock() });
      expect([ended.code, ended.stdout]).toEqual([1, ""]);
      expect(ended.stderr).toMatch(/read (page 1 of )?companies/);
    },
  );

  it("shows what is declared without a usable config", async () => {
    const { code, stdout, stderr } = await run(TAP, ["--discover"]);
    expect([code, JSON.parse(stdout).streams.length]).toEqual([0, 3]);
    expect(stderr).toContain("No config found. Name a file with --config");
  });
});

describe("an orchestrator", () => {
  it("tests a connection by one record of each stream, with settings from files and the environment", async () => {
    const { sandbox } = await sandboxWith(QUICK);
    const secret = await file("secret.json", { api_key: sandbox.key });
    const rest = await file("rest.json", { api_key: "wrong", base_url: sandbox.url });
    const tested = (words: readonly string[], env = {}) => run(TAP, ["--test", ...words], { env });
    const { code, stdout, stderr } = await tested(["--config", rest, "--config", secret]);
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toMatch(/This key can read people \(\d+\), companies \(\d+\), sources \(\d+\)/);
    expect((await tested(["--config", secret, "--config", rest])).code).toBe(1);
    const prefix = "TAP_CONTACT_INTELLIGENCE_";
    const env = { [`${prefix}API_KEY`]: sandbox.key, [`${prefix}BASE_URL`]: sandbox.url };
    expect((await tested(["--config", "ENV"], env)).code).toBe(0);
    expect((await tested([], env)).code).toBe(1);
    const wrong = await tested(["--config", "ENV"], { ...env, [`${prefix}API_KEY`]: "wrong" });
    expect(wrong.stderr).toContain(`The key is from the environment variable ${prefix}API_KEY`);
  });

  it("learns settings and capabilities from --about", async () => {
    const about = async (...words: readonly string[]) => (await run(TAP, ["--about", ...words])).stdout;
    expect(await about()).toContain("max_run_seconds (integer)");
    expect(await about("--format", "markdown")).toContain("| `external_api.api_key` | string, secret |");
    expect(JSON.parse(await about("--format", "json", "--config", "gone"))).toMatchObject({
      ...{ name: "tap-contact-intelligence", capabilities: expect.arrayContaining(["state"]) },
      settings: {
        required: ["base_url", "api_key"],
        properties: {
          api_key: { secret: true },
          external_api: { properties: { api_key: { secret: true } } },
        },
      },
    });
  });
});
