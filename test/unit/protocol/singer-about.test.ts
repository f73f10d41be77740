import { describe, expect, it } from "vitest";
import type { Spec } from "../../../src/config/spec.ts";
import { aboutJson, aboutMarkdown } from "../../../src/protocol/singer-about.ts";

const PROGRAM = { name: "tap-x", description: "Reads x", version: "1.2.3" };
const SPEC = {
  documentationUrl: "https://docs.example",
  connectionSpecification: {
    type: "object",
    required: ["key"],
    groups: [{ id: "g" }],
    properties: {
      key: {
        type: "string",
        description: "A key",
        airbyte_secret: true,
        airbyte_hidden: true,
        order: 0,
        group: "g",
      },
      days: { type: ["null", "integer"], description: "Days | nights | none", default: 0, minimum: 1 },
      api: {
        type: "object",
        order: 1,
        properties: {
          url: { type: "string", title: "Address", airbyte_secret: false, order: 0 },
          keys: { type: "array", items: { type: "string", airbyte_secret: true, order: 3 } },
          key: { type: "string", default: "" },
        },
      },
    },
  },
} as unknown as Spec;

const CAPABILITIES = [
  "about",
  "activate-version",
  "catalog",
  "discover",
  "state",
  "structured-logging",
  "test",
];

describe("what the tap says of itself", () => {
  it("is a JSON schema without what only Airbyte's forms know", () => {
    expect(aboutJson(PROGRAM, SPEC)).toEqual({
      ...PROGRAM,
      sdk_version: null,
      supported_python_versions: null,
      capabilities: CAPABILITIES,
      settings: {
        type: "object",
        required: ["key"],
        properties: {
          key: { type: "string", description: "A key", secret: true, writeOnly: true },
          days: { type: ["null", "integer"], description: "Days | nights | none", default: 0, minimum: 1 },
          api: {
            type: "object",
            properties: {
              url: { type: "string", title: "Address" },
              keys: { type: "array", items: { type: "string", secret: true, writeOnly: true } },
              key: { type: "string", default: "" },
            },
          },
        },
      },
    });
  });

  it("is a page of Markdown, whose tables no description breaks", () => {
    const page = aboutMarkdown(PROGRAM, SPEC);
    expect(page).toContain("| `key` | string, required, secret | A key | `CONTACT_INTELLIGENCE_KEY` |");
    expect(page).toContain("| `days` | integer, default 0 | Days \\| nights \\| none | `CONTACT_");
    expect(page).toContain('| `api.key` | string, default "" |  | `CONTACT_INTELLIGENCE_API__KEY` |');
  });
});
