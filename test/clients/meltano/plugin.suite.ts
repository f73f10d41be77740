import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { hubDefinition, meltanoHubPlugin, meltanoPlugin } from "../../../scripts/meltano-plugin.ts";
import { loadSpec } from "../../../src/config/spec.ts";

const program = { name: "tap-contact-intelligence", description: "Moves people", version: "1.2.3" };
const spec = loadSpec();
const definition = hubDefinition(program, spec);

const text = { type: "string", minLength: 1 };
const texts = { type: "array", items: text };
const KINDS =
  "string integer boolean array object date_iso8601 options password hidden file email oauth".split(" ");
const CAPABILITIES =
  "about activate-version batch catalog discover log-based properties schema-flattening state stream-maps structured-logging test".split(
    " ",
  );

/** What Meltano's Hub takes for an extractor: schemas/plugin_definitions/extractors.schema.json of meltano/hub says so. */
const isListed = new Ajv({ allErrors: true, strictRequired: false }).compile({
  type: "object",
  required: ["name", "namespace", "variant", "label"],
  additionalProperties: false,
  properties: {
    ...Object.fromEntries(
      "name namespace variant label description docs repo executable pip_url"
        .split(" ")
        .map((name) => [name, text]),
    ),
    keywords: texts,
    supported_python_versions: { type: "array", items: { type: "string", pattern: "^3\\.\\d+$" } },
    maintenance_status: { enum: ["active", "beta", "development", "inactive", "unknown"] },
    capabilities: { type: "array", items: { enum: CAPABILITIES }, uniqueItems: true },
    settings_group_validation: { type: "array", items: texts },
    settings: {
      type: "array",
      items: {
        type: "object",
        required: ["name"],
        additionalProperties: false,
        properties: {
          name: text,
          label: text,
          description: text,
          kind: { enum: KINDS },
          sensitive: { type: "boolean" },
          options: {
            type: "array",
            items: { type: "object", required: ["label", "value"], properties: { label: text, value: text } },
          },
          value: {},
        },
      },
    },
  },
});

type Named = { readonly name: string; readonly value?: unknown };
const settings = definition["settings"] as unknown as readonly Named[];

describe("hubDefinition()", () => {
  it("has the form that Meltano's Hub takes", () => {
    isListed(definition);
    expect(isListed.errors).toBeNull();
    expect(isListed({ ...definition, executables: "tap" })).toBe(false);
  });

  it("requires settings that it has", () => {
    const names = settings.map(({ name }) => name);
    expect(definition["settings_group_validation"]).toEqual([["base_url", "api_key"]]);
    expect(names).toEqual(expect.arrayContaining(["base_url", "api_key"]));
    expect(new Set(names).size).toBe(names.length);
  });

  it("has no default that buys", () => {
    const nested = settings.filter(({ name }) => /^(company_lookup|email_|external_api)/.test(name));
    expect(nested.length).toBeGreaterThan(10);
    expect(nested.filter((setting) => "value" in setting)).toEqual([]);
  });

  it("links this repository, and its page on Meltano", () => {
    const released = { ...spec, documentationUrl: "https://host/owner/name/blob/v1.2.3/docs/airbyte.md" };
    expect(hubDefinition(program, released)).toMatchObject({
      repo: "https://host/owner/name",
      docs: "https://host/owner/name/blob/v1.2.3/docs/meltano.md",
    });
  });
});

describe("meltanoPlugin()", () => {
  it("is what the Hub lists, without what Meltano would install", () => {
    const installed =
      /^(keywords:\n- api|maintenance_status: active|pip_url: .*|supported_python_versions:(?:\n- .*)+)\n/gm;
    const [, ...lines] = meltanoPlugin(program, spec).split("\n");
    expect(lines.join("\n")).toBe(meltanoHubPlugin(program, spec).replaceAll(installed, ""));
  });
});
