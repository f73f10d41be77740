import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { recordsOf as dataOf, errorsOf, linesOf } from "../support/airbyte-messages.ts";
import { CONNECTOR, connector, file, run } from "../support/cli.ts";
import { configFor, sandboxWith } from "../support/configs.ts";
import { sandboxStage } from "../support/job-stage.ts";
import { discover, expectWithout, recordsOf, schemasOf, selection, TAP, tap } from "../support/tap.ts";

const SALT = "a long random text";
const QUICK = { requestsPerMinute: 0, companies: 8, people: 60 } as const;

const PRIVATE = {
  drop_fields: ["lastName", "companies.headquarters.city"],
  hash_fields: ["email", "people.id", "companies.employeeCount"],
  hash_salt: SALT,
};

const digest = (text: unknown): string | null =>
  text === null ? null : createHmac("sha256", SALT).update(String(text), "utf8").digest("hex");

describe("drop_fields and hash_fields", () => {
  it("hold in Airbyte's language, catalog included, and in every other run", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, PRIVATE);
    const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
    const { streams } = JSON.parse(stdout).catalog;
    expect(streams[0].json_schema.properties).not.toHaveProperty("lastName");
    expect(streams[0].json_schema.properties.id.type).toEqual(["null", "string"]);
    expect(streams[1].json_schema.properties.employeeCount).toMatchObject({ type: ["null", "string"] });
    expect(streams[1].json_schema.properties.headquarters.properties).not.toHaveProperty("city");

    const { code, messages, stdout: said, stderr } = await connector(["read", "--config", config]);
    expect(code).toBe(0);
    const expected = sandbox
      .people()
      .map(({ id, email, lastName: _, ...rest }) => ({ ...rest, id: digest(id), email: digest(email) }));
    expect(textsOf(dataOf(messages, "people"))).toEqual(textsOf(expected));
    for (const { id, email } of sandbox.people()) {
      for (const text of [id, email]) if (text !== null) expect(said + stderr).not.toContain(text);
    }
    expect(said + stderr, "nothing is said of dropped or hashed fields as if they had changed").not.toContain(
      "differ from its schema",
    );
    expect(said).not.toContain(SALT);
  });

  it("hold in JSON lines and pages", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, {
      ...PRIVATE,
      hash_fields: ["sources.slug", "people.id"],
    });
    const rowsOf = async (stream: string): Promise<Record<string, unknown>[]> => {
      const args = ["read", "--config", config, "--format", "jsonl", "--stream", stream];
      return linesOf((await run(CONNECTOR, args)).stdout).map((line) => JSON.parse(line));
    };
    const people = await rowsOf("people");
    const ids = sandbox.people().map(({ id }) => digest(id));
    expect(people.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    for (const person of people) expect(person).not.toHaveProperty("lastName");
    const sources = await rowsOf("sources");
    const slugs = sandbox.sources().map(({ slug }) => digest(slug));
    expect(sources.map(({ slug }) => slug).toSorted()).toEqual(slugs.toSorted());
  });

  it("hold in Singer's language: schemas, a new field, and a catalog that is refreshed", async () => {
    await using sandbox = await startSandbox(QUICK);
    const raw = await configFor(sandbox);
    const before = await selection(await discover(raw), ["people", "companies"]);
    const drop_fields = [...PRIVATE.drop_fields, "engagement"];
    const config = await configFor(sandbox, { ...PRIVATE, drop_fields });
    sandbox.fault("new-field:path=/people/stream:after=20:times=always");
    const stale = await tap(["--config", config, "--catalog", before], { exits: 1 });
    expect(recordsOf(stale.messages, "companies")).toEqual([]);
    expect(stale.logs.at(-1)?.message).toMatch(
      /"companies": the catalog types "employeeCount" .*Discover again/,
    );
    const warnings = stale.logs.filter(({ level }) => level === "warning").map(({ message }) => message);
    expect(warnings).toContainEqual(expect.stringMatching(/catalog of "people" names "lastName"/));

    const fresh = await selection(await discover(config), ["people", "companies"]);
    for (const args of [[], ["--catalog", fresh]]) {
      const { messages, logs } = await tap(["--config", config, ...args]);
      const schemas = schemasOf(messages, "people");
      expect(schemas).toHaveLength(1);
      expect(schemas[0]?.schema?.properties).not.toHaveProperty("lastName");
      expectWithout(messages, "people", "lastName", "engagement");
      for (const { record } of recordsOf(messages, "people"))
        expect(record?.["id"]).toMatch(/^[0-9a-f]{64}$/);
      for (const { record } of recordsOf(messages, "companies"))
        expect(record?.["employeeCount"]).toMatch(/^[0-9a-f]{64}$/);
      expect(JSON.stringify(logs)).not.toContain("engagement");
    }
  });

  it("types a hashed field that comes later as text, in a second SCHEMA", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { hash_fields: ["engagement"], hash_salt: SALT });
    sandbox.fault("new-field:path=/people/stream:after=20:times=always");
    const { messages } = await tap(["--config", config]);
    const schemas = schemasOf(messages, "people");
    expect(schemas[1]?.schema?.properties["engagement"]).toEqual({ type: ["null", "string"] });
  });

  it("are refused before any request where they cannot be obeyed, by every command", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { drop_fields: ["people.id"] });
    for (const args of [["discover"], ["read"]]) {
      const { code, stdout } = await run(CONNECTOR, [...args, "--config", config]);
      expect(code).toBe(1);
      expect(stdout).toContain('drop_fields \\"people.id\\" names the primary key');
    }
    expect((await run(CONNECTOR, ["check", "--config", config])).stdout).toContain('"FAILED"');
    for (const args of [["--discover"], []]) {
      const { code, stderr } = await run(TAP, ["--config", config, ...args]);
      expect(code).toBe(1);
      expect(stderr).toContain("names the primary key");
    }
    expect(sandbox.requests).toEqual([]);
  });

  it.each([
    [
      { drop_fields: ["emial"] },
      'drop_fields "emial" names a field that no stream of this account has. Did you mean "email"?',
    ],
    [{ drop_fields: ["Email"] }, 'Did you mean "email"?'],
    [
      { hash_fields: ["headquarters.citty"], hash_salt: SALT },
      'hash_fields "headquarters.citty" names a field',
    ],
    [{ drop_fields: ["people.emial"] }, 'names a field that "people" does not have. Did you mean "email"?'],
    [{ drop_feilds: ["email"] }, 'drop_feilds is not a setting. Did you mean "drop_fields"?'],
  ])("are errors in check and before the first row where they are misspelt: %j", async (settings, why) => {
    const { config } = await sandboxWith(QUICK, settings);
    const checked = await run(CONNECTOR, ["check", "--config", config, "--exit-code"]);
    expect([checked.code, JSON.parse(checked.stdout).connectionStatus.message]).toEqual([
      1,
      expect.stringContaining(why),
    ]);
    for (const words of [["read"], ["read", "--format", "jsonl", "--stream", "people"], ["discover"]]) {
      const { code, stdout, stderr } = await run(CONNECTOR, [...words, "--config", config]);
      expect([code, stdout.includes("@")]).toEqual([words.includes("jsonl") ? 2 : 1, false]);
      expect(`${stdout}${stderr}`).toContain(JSON.stringify(why).slice(1, -1));
    }
    const { code, stdout, stderr } = await run(TAP, ["--config", config]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(JSON.stringify(why).slice(1, -1));
  });

  it("take a name that only live records have", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { drop_fields: ["engagement"] });
    sandbox.fault("new-field:path=/people/stream:times=always");
    const { code, stdout } = await run(CONNECTOR, ["read", "--config", config]);
    expect([code, stdout.includes("engagement")]).toEqual([0, false]);
  });

  it("warn of a name that no row had", async () => {
    const { config } = await sandboxWith(QUICK, { drop_fields: ["companies.taxNumber"] });
    const { logs } = await tap(["--config", config]);
    expect(logs.map(({ message }) => message)).toContainEqual(
      expect.stringContaining('No row had a field "companies.taxNumber"'),
    );
  });

  it("reach Airbyte's catalogs that were configured before", async () => {
    await using sandbox = await startSandbox(QUICK);
    const { stdout } = await run(CONNECTOR, ["discover", "--config", await configFor(sandbox)]);
    const streams = JSON.parse(stdout).catalog.streams.map((stream: object) => ({
      ...{ stream, sync_mode: "full_refresh", destination_sync_mode: "overwrite" },
    }));
    const catalog = await file("catalog.json", { streams });
    const config = await configFor(sandbox, PRIVATE);
    const { code, messages } = await connector(["read", "--config", config, "--catalog", catalog]);
    expect(code).toBe(1);
    const message = expect.stringContaining('the catalog types "employeeCount"');
    expect(errorsOf(messages)).toMatchObject([{ message }]);
    expect(dataOf(messages, "companies")).toEqual([]);
  });
});

/** Rows, whatever the order of their fields. */
const textsOf = (rows: readonly object[]): Set<string> =>
  new Set(rows.map((row) => JSON.stringify(Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1)))));

describe("only_fields", () => {
  const ONLY = {
    only_fields: ["people.email", "people.companySize", "companies.headquarters.city", "sources.slug"],
  };
  const PEOPLE = ["id", "email", "companySize", "discoveredAt"];
  const namesOf = (row: object): string[] => Object.keys(row).toSorted();

  it("holds in every language, in schemas and for fields that the service adds", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, ONLY);
    const secrets = sandbox.people().flatMap(({ lastName, linkedinUrl }) => [lastName, linkedinUrl]);
    const withheld = secrets.filter((text) => text !== null && String(text).length > 8).map(String);
    const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
    const [people, companies] = JSON.parse(stdout).catalog.streams;
    expect(namesOf(people.json_schema.properties)).toEqual(PEOPLE.toSorted());
    expect(Object.keys(companies.json_schema.properties.headquarters.properties)).toEqual(["city"]);

    const outputs: string[] = [];
    sandbox.fault("new-field:path=/people/stream:after=20");
    const airbyteRun = await connector(["read", "--config", config]);
    outputs.push(airbyteRun.stdout, airbyteRun.stderr);
    for (const row of dataOf(airbyteRun.messages, "people")) expect(namesOf(row)).toEqual(PEOPLE.toSorted());
    for (const { headquarters } of dataOf(airbyteRun.messages, "companies"))
      expect(namesOf(headquarters ?? {})).toEqual(headquarters === null ? [] : ["city"]);

    sandbox.fault("new-field:path=/people/stream:after=20");
    const lines = await run(CONNECTOR, [
      "read",
      "--config",
      config,
      "--format",
      "jsonl",
      "--stream",
      "people",
    ]);
    outputs.push(lines.stdout);
    expect(linesOf(lines.stdout)).toHaveLength(sandbox.people().length);
    for (const line of linesOf(lines.stdout)) expect(namesOf(JSON.parse(line))).toEqual(PEOPLE.toSorted());

    const catalog = await selection(await discover(await configFor(sandbox)), ["people"]);
    for (const args of [[], ["--catalog", catalog]]) {
      sandbox.fault("new-field:path=/people/stream:after=20");
      const { messages, logs } = await tap(["--config", config, ...args]);
      outputs.push(JSON.stringify([messages, logs]));
      const schemas = schemasOf(messages, "people").map(({ schema }) => namesOf(schema?.properties ?? {}));
      expect(schemas).toEqual([PEOPLE.toSorted()]);
      for (const { record } of recordsOf(messages, "people"))
        expect(namesOf(record ?? {})).toEqual(PEOPLE.toSorted());
    }
    for (const text of withheld) expect(outputs.some((output) => output.includes(text))).toBe(false);
    expect(outputs.join("")).not.toContain("engagement");
  });

  it("refuses a name that nobody has before the first request", async () => {
    const { sandbox, config } = await sandboxWith(QUICK, { only_fields: ["emial"] });
    expect((await run(CONNECTOR, ["check", "--config", config])).stdout).toContain(
      JSON.stringify('names a field that no stream has. Did you mean "email"?').slice(1, -1),
    );
    expect((await run(CONNECTOR, ["read", "--config", config])).code).toBe(1);
    expect(sandbox.requests).toEqual([]);
  });

  it("warns of a name that no row of its stream had, where only live rows tell names", async () => {
    const only_fields = [
      "companies.employeCount",
      "companies.headquarters.city",
      "companies.headquarters.*",
      "companies.industry",
      "sources.*",
    ];
    const { config } = await sandboxWith(QUICK, { only_fields });
    const { code, messages } = await connector(["read", "--config", config]);
    const warnings = messages.flatMap(({ log }) => (log?.level === "WARN" ? [log.message] : []));
    expect([code, warnings]).toEqual([
      0,
      [
        'only_fields "companies.employeCount" names a field that none of the rows of "companies" had. Did you mean "employeeCount"?',
      ],
    ]);
  });

  it("holds for look-ups and their contacts", async () => {
    const only_fields = ["company_lookups.contacts.first_name", "company_lookup_contacts.job_title"];
    const stage = await sandboxStage("company_lookup", { domains: ["2.example"] }, {}, { only_fields });
    const ran = await stage.play({
      streams: ["company_lookups", "company_lookup_contacts"],
      bought: ["2.example"],
    });
    expect(ran.records().map((record) => namesOf(record))).toEqual([
      ["contacts", "created_at", "job_id"],
      ...[0, 1].map(() => ["created_at", "job_id", "job_title", "position"]),
    ]);
    expect(ran.records()[0]?.["contacts"]).toEqual([{ first_name: "First1" }, { first_name: "First2" }]);
    expect(ran.text).not.toMatch(/person1@|Last\d/);
  });
});
