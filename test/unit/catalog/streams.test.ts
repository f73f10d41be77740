import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { loadSchema, TIMESTAMP } from "../../../src/catalog/schema.ts";
import { listPathOf, STREAMS, streamsOf } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";

const ROWS = STREAMS.filter((spec) => spec.reading === "dated" || spec.reading === "list");

const account = { base_url: "https://contacts.example.com", api_key: "k" };

describe("STREAMS", () => {
  it("have the names, keys and cursors that pipelines rely on", () => {
    expect(STREAMS.map(({ name, primaryKey, cursorField }) => [name, primaryKey, cursorField])).toEqual([
      ["people", ["id"], "discoveredAt"],
      ["companies", ["domain"], "discoveredAt"],
      ["sources", ["slug"], null],
      ["company_lookups", ["job_id"], "created_at"],
      ["company_lookup_contacts", ["job_id", "position"], "created_at"],
      ["email_checks", ["email", "source"], "checked_at"],
      ["email_verifications", ["email"], "verified_at"],
      ["sync_windows", ["id"], "run_started_at"],
    ]);
  });

  it("are at the paths that the config says, whose defaults are the interface's", () => {
    const pathsWith = (settings: object): readonly string[] =>
      ROWS.map((stream) => listPathOf(stream, parseConfig({ ...account, ...settings }, {}).endpoints));
    const [people, companies, sources] = ROWS.map(({ listPath }) => listPath);
    expect(pathsWith({})).toEqual([people, companies, sources]);
    expect(pathsWith({ endpoints: { companies: "/v2/firms" } })).toEqual([people, "/v2/firms", sources]);
  });
});

describe("streamsOf()", () => {
  const external = { external_api: { api_url: "https://external.example.com", api_key: "e" } };
  const names = (config: object): readonly string[] =>
    streamsOf(parseConfig({ ...account, ...config }, {})).map(({ name }) => name);

  it("has no stream that may cost anything unless it is configured", () => {
    expect(names({})).toEqual(["people", "companies", "sources"]);
    expect(names(external)).toEqual(["people", "companies", "sources"]);
  });

  it.each([
    [
      { ...external, company_lookup: { domains: ["a.example"] } },
      ["company_lookups", "company_lookup_contacts"],
    ],
    [{ email_check: { emails: ["a@b.example"] } }, ["email_checks"]],
    [{ ...external, email_verification: { emails: ["a@b.example"] } }, ["email_verifications"]],
  ])("has the stream of what is configured: %j", (config, streams) => {
    expect(names(config)).toEqual(["people", "companies", "sources", ...streams]);
  });
});

describe("loadSchema()", () => {
  const NULLABLE =
    "firstName lastName email jobTitle seniority department jobFunction company companyDomain companySize industry location country linkedinUrl discoveredAt";

  it("declares every documented field of a person", () => {
    const { properties = {}, additionalProperties } = loadSchema("people");
    expect(Object.keys(properties).sort()).toEqual(["id", "sources", ...NULLABLE.split(" ")].sort());
    expect(additionalProperties).toBe(true);
    expect(properties["discoveredAt"]).toMatchObject(TIMESTAMP);
  });

  it("takes a person with nothing but an id, and none without", () => {
    const isValid = new Ajv({ strict: false, validateFormats: false }).compile(loadSchema("people"));
    const nulls = Object.fromEntries(NULLABLE.split(" ").map((field) => [field, null]));
    expect(isValid({ ...nulls, id: "p1", sources: [] })).toBe(true);
    expect(isValid({ ...nulls, id: null, sources: [] })).toBe(false);
    expect(isValid({ id: "p1", companySize: "many" })).toBe(false);
  });

  it("gives every declared field a title and a description", () => {
    for (const { name, primaryKey } of STREAMS) {
      const { properties = {} } = loadSchema(name);
      for (const [field, schema] of Object.entries(properties)) {
        expect(schema, field).toMatchObject({ title: expect.any(String), description: expect.any(String) });
      }
      for (const key of primaryKey) expect(["string", "integer"]).toContain(properties[key]?.type);
    }
  });
});
