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

it("the description of the tap for programs is a JSON schema that marks secrets at any depth", () => {
  const about = aboutJson(PROGRAM, SPEC);
  expect(about).toMatchObject({ ...PROGRAM, sdk_version: null, settings: SPEC.connectionSpecification });
  expect(about).toHaveProperty("settings.properties.key", expect.objectContaining(SECRET));
  expect(about).toHaveProperty(
    "settings.properties.api.properties.keys.items",
    expect.objectContaining(SECRET),
  );
  expect(about).not.toHaveProperty("settings.properties.api.properties.url.secret");
});

it("what the tap says of itself is a page of Markdown, whose tables no description breaks", () => {
  const page = aboutMarkdown(PROGRAM, SPEC);
  expect(page).toContain("| `key` | string, required, secret | A key | `CONTACT_INTELLIGENCE_KEY` |");
  expect(page).toContain("| `days` | integer, default 0 | Days \\| nights \\| none | `CONTACT_");
  expect(page).toContain('| `api.key` | string, default "" |  | `CONTACT_INTELLIGENCE_API__KEY` |');
});
