import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { toLatin1 } from "../../../src/base/text.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { RowNotes } from "../../../src/service/row-notes.ts";
import { RowParser } from "../../../src/service/rows.ts";
import type { RawLine, RowFacts } from "../../../src/sync/event.ts";

const schemaOf = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: "object",
  properties: { id: { type: "string" }, ...properties },
});

/** What a batch of rows teaches a parser of a schema; undefined for nothing. */
function taught(schema: JsonSchema, ...rows: readonly Record<string, unknown>[]): RowFacts | undefined {
  const parser = new RowParser({ key: "id", cursor: null, schema });
  const notes = new RowNotes();
  for (const row of rows) parser.parse("" as RawLine, { id: "1", ...row }, notes);
  return notes.take();
}

describe("rows teach", () => {
  it("what contradicts the schema and what is new in it, counted in rows, names as text", () => {
    const schema = schemaOf({ size: { type: ["null", "integer"] }, nür: { type: "string" } });
    const [odd, fresh] = [toLatin1("nür"), toLatin1("Größe")];
    const facts = taught(
      schema,
      { size: 2 },
      { size: "two", [odd]: 5 },
      { [fresh]: 7 },
      { id: 5, [fresh]: "x" },
    );
    expect(facts).toMatchObject({ withoutKey: 0, replaced: 0 });
    expect([...(facts?.contradictions ?? [])]).toEqual([
      ["size", 1],
      ["nür", 1],
      ["id", 1],
    ]);
    // Later values decide nothing.
    expect([...(facts?.newFields ?? [])]).toEqual([
      ["Größe", { rows: 2, schema: { type: ["null", "number"] } }],
    ]);
  });

  it("nothing of the batches before", () => {
    const parser = new RowParser({ key: "id", cursor: null, schema: schemaOf({}) });
    const notes = new RowNotes();
    for (let batch = 0; batch < 2; batch++) {
      parser.parse("" as RawLine, { new: 1 }, notes);
      const facts = notes.take();
      expect([facts?.withoutKey, facts?.newFields.get("new")?.rows]).toEqual([1, 1]);
    }
    expect(notes.take()).toBeUndefined();
  });

  it("names that every object has", () => {
    const facts = taught(schemaOf({}), JSON.parse('{"constructor":{"a":1},"toString":[1]}'));
    expect([...(facts?.newFields.keys() ?? [])]).toEqual(["constructor", "toString"]);
    expect(facts?.contradictions.size).toBe(0);
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
