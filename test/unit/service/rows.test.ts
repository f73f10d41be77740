import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { toLatin1 } from "../../../src/base/text.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import type { RowNotes } from "../../../src/service/row-notes.ts";
import { RowParser } from "../../../src/service/rows.ts";
import type { RawLine } from "../../../src/sync/event.ts";

const schemaOf = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: "object",
  properties: { id: { type: "string" }, ...properties },
});

/** What rows teach a parser of a schema. */
function taught(schema: JsonSchema, ...rows: readonly Record<string, unknown>[]): RowNotes {
  const parser = new RowParser({ key: "id", cursor: null, schema });
  for (const row of rows) parser.parse("" as RawLine, { id: "1", ...row });
  return parser.notes;
}

describe("rows teach", () => {
  it("what contradicts the schema and what is new in it, counted in rows, names as text", () => {
    const schema = schemaOf({ size: { type: ["null", "integer"] }, nür: { type: "string" } });
    const [odd, fresh] = [toLatin1("nür"), toLatin1("Größe")];
    const notes = taught(
      schema,
      { size: 2 },
      { size: "two", [odd]: 5 },
      { [fresh]: 7 },
      { id: 5, [fresh]: "x" },
    );
    expect(notes).toMatchObject({ withoutKey: 0, replaced: 0 });
    expect([...notes.contradictions]).toEqual([
      ["size", 1],
      ["nür", 1],
      ["id", 1],
    ]);
    // Later values decide nothing.
    expect([...notes.newFields]).toEqual([["Größe", { rows: 2, schema: { type: ["null", "number"] } }]]);
  });

  it("names that every object has", () => {
    const notes = taught(schemaOf({}), JSON.parse('{"constructor":{"a":1},"toString":[1]}'));
    expect([...notes.newFields.keys()]).toEqual(["constructor", "toString"]);
    expect(notes.contradictions.size).toBe(0);
  });
});

describe("a schema from a catalog", () => {
  it.each([{ type: "strnig" }, { pattern: "(" }, { $ref: "#/nowhere" }, null])(
    "is refused by name if it is none: %j",
    (field) => {
      const open = (): unknown => taught(schemaOf({ "odd\n": field as JsonSchema }));
      expect(open).toThrow(ConfigError);
      expect(open).toThrow('"odd\\n"');
    },
  );
});
