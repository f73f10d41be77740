import { expect, it } from "vitest";
import type { Spec } from "../../../src/config/spec.ts";
import { aboutJson, aboutMarkdown } from "../../../src/protocol/singer-about.ts";

const PROGRAM = { name: "tap-x", description: "Reads x", version: "1.2.3" };
const FORM = { airbyte_hidden: true, order: 0, group: "g" };
const SECRET = { secret: true, writeOnly: true };
const SPEC = {
  documentationUrl: "https://docs.example",
  connectionSpecification: {
    type: "object",
    required: ["key"],
    groups: [{ id: "g" }],
    properties: {
      key: { type: "string", description: "A key", airbyte_secret: true, ...FORM },
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

it("what the tap says of itself is a JSON schema without what only Airbyte's forms know", () => {
  expect(aboutJson(PROGRAM, SPEC)).toMatchObject({ ...PROGRAM, sdk_version: null });
  expect(aboutJson(PROGRAM, SPEC)).toHaveProperty("settings", {
    type: "object",
    required: ["key"],
    properties: {
      key: { type: "string", description: "A key", ...SECRET },
      days: { type: ["null", "integer"], description: "Days | nights | none", default: 0, minimum: 1 },
      api: {
        type: "object",
        properties: {
          url: { type: "string", title: "Address" },
          keys: { type: "array", items: { type: "string", ...SECRET } },
          key: { type: "string", default: "" },
        },
      },
    },
  });
});

it("what the tap says of itself is a page of Markdown, whose tables no description breaks", () => {
  const page = aboutMarkdown(PROGRAM, SPEC);
  expect(page).toContain("| `key` | string, required, secret | A key | `CONTACT_INTELLIGENCE_KEY` |");
  expect(page).toContain("| `days` | integer, default 0 | Days \\| nights \\| none | `CONTACT_");
  expect(page).toContain('| `api.key` | string, default "" |  | `CONTACT_INTELLIGENCE_API__KEY` |');
});
