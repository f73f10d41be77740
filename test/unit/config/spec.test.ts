import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadSpec, type SpecProperty, settingsIn, typeOf } from "../../../src/config/spec.ts";
import { SPEC_RULES, specBreaks } from "../../support/spec-rules.ts";

const spec = loadSpec();
const golden = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../golden/${name}`, import.meta.url), "utf8"));
const released = golden("released-spec.json");
const isValid = new Ajv({ strict: false, validateFormats: false }).compile(spec.connectionSpecification);
const account = { base_url: "https://contacts.example.com", api_key: "svc_0123abcd_secret" };

/** A broken specification for each rule, so that no rule can pass everything. */
const BROKEN: Readonly<Record<string, Record<string, unknown>>> = {
  CS3: { a: { type: "string", enum: ["x", "x"] } },
  CS4: {
    a: { type: "object", oneOf: [{ properties: { b: { const: 1 } } }, { properties: { c: { const: 2 } } }] },
  },
  CS5: { a: { type: "string" } },
  CS6: { client_secret: { type: "string" } },
  CS7: { a: { type: ["null", "string"] } },
  CS8: { a: { type: "object" } },
  CS9: { a: { type: "array", items: { type: "boolean" } } },
  CS10: { a: { anyOf: [] } },
  CS11: { a: { type: "string", format: "date" } },
  CS12: { a: { type: "string", order: 1 }, b: { type: "string", order: 1 } },
  CS13: { a: { type: "object", properties: { b: { type: "string", group: "x" } } } },
  CS14: { a: { type: "string", display_type: "radio" } },
  CS15: { a: { $ref: "#/x" } },
  CS16: { a: { type: "object", properties: { b: { type: "string" } }, additionalProperties: false } },
};

describe("spec.json", () => {
  it("CS1: a config in use validates against it", () => {
    const moreover = { start_date: "2026-01-02T03:04:05Z", company_lookup: { domains: ["a.com"] } };
    // Forms and scripts may send null for what is optional.
    const nulls = { start_date: null, max_run_seconds: null, ignore_missing_days: null };
    for (const more of [{}, moreover, nulls]) expect(isValid({ ...account, ...more })).toBe(true);
    expect(isValid({ api_key: "k" })).toBe(false);
  });

  it("CS2: equals the golden one", () => {
    expect(spec).toEqual(golden("spec.json"));
  });

  it.each(SPEC_RULES)("$id: $says", ({ id, broken }) => {
    expect(broken(spec.connectionSpecification)).toEqual([]);
    const whole = id === "CS17" ? { advanced_auth: {} } : {};
    expect(broken({ type: "object", properties: BROKEN[id] ?? {}, ...whole })).not.toEqual([]);
  });

  it("CS5: base_url and api_key are all that is required, and every key is a secret", () => {
    const secrets = [...settingsIn(spec.connectionSpecification)].filter(
      ({ property }) => property.airbyte_secret,
    );
    expect(spec.connectionSpecification).toMatchObject({ required: ["base_url", "api_key"] });
    expect(secrets.map(({ path }) => path.join("."))).toEqual([
      "api_key",
      "external_api.api_key",
      "hash_salt",
      "company_lookup.webhook_url",
    ]);
  });

  it("CS18: takes nothing away from the released one", () => {
    expect(specBreaks(released.connectionSpecification, spec.connectionSpecification)).toEqual([]);
  });

  it.each([
    ["a new required property", { required: ["a"] }],
    ["a removed property", { properties: {} }],
    ["a narrower type", { properties: { a: { type: "string" } } }],
    ["an enum where there was none", { properties: { a: { type: ["string", "null"], enum: ["x"] } } }],
    ["a higher minimum", { properties: { a: { type: ["string", "null"], minimum: 3 } } }],
    ["a lower maximum", { properties: { a: { type: ["string", "null"], maximum: 3 } } }],
    ["a new pattern", { properties: { a: { type: ["string", "null"], pattern: "x" } } }],
  ])("CS18: notices %s", (_, change) => {
    const before = { type: "object", properties: { a: { type: ["string", "null"] } } };
    expect(specBreaks(before, before)).toEqual([]);
    expect(specBreaks(before, { ...before, ...change })).not.toEqual([]);
  });

  it("CS18: configs made for the released one validate", () => {
    fc.assert(
      fc.property(configs(released.connectionSpecification), (config) => isValid({ ...config, ...account })),
      { numRuns: 100 },
    );
  });

  it("gives every property a title and a description, and a descriptor beside each pattern", () => {
    for (const { path, property } of settingsIn(spec.connectionSpecification)) {
      expect(property, path.join(".")).toMatchObject({
        title: expect.any(String),
        description: expect.any(String),
      });
      const { pattern, pattern_descriptor } = { pattern: undefined, ...property };
      expect(pattern === undefined, path.join(".")).toBe(pattern_descriptor === undefined);
    }
  });

  it("has no default that names something to buy", () => {
    const properties = [...settingsIn(spec.connectionSpecification)];
    const lists = properties.filter(({ property }) => typeOf(property) === "array");
    expect(lists.filter(({ property }) => property.default !== undefined)).toEqual([]);
    const all = properties.find(({ path }) => path.at(-1) === "from_companies");
    expect(all?.property.default).toBe(false);
  });
});

/** Configs that a schema's own words promise to take. */
function configs(schema: SpecProperty): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => [
    name,
    valuesOf(property),
  ]);
  return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
}

function valuesOf(
  property: SpecProperty & { pattern?: string; minimum?: number; maximum?: number },
): fc.Arbitrary<unknown> {
  const { minimum: min = 0, maximum: max = 1_000_000 } = property;
  switch (typeOf(property)) {
    case "object":
      return configs(property);
    case "array":
      return fc.array(property.items === undefined ? fc.string() : valuesOf(property.items));
    case "integer":
      return fc.integer({ min, max });
    case "boolean":
      return fc.boolean();
    default:
      if (property.enum !== undefined) return fc.constantFrom(...property.enum);
      return property.pattern === undefined ? fc.string() : fc.stringMatching(new RegExp(property.pattern));
  }
}
