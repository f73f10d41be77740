import { describe, expect, it } from "vitest";
import { inferSchema } from "../../../src/api/infer-schema.ts";
import { RowNotes } from "../../../src/api/row-notes.ts";
import { RowParser } from "../../../src/api/rows.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { ConfigError } from "../../../src/errors.ts";
import { toLatin1 } from "../../../src/latin1.ts";
import { Drift } from "../../../src/run/drift.ts";
import type { RawLine, RowFacts } from "../../../src/streams/event.ts";

const schemaOf = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: "object",
  properties: { ...properties, id: { type: "string" } },
});
const MANY = Object.fromEntries(Array.from({ length: 100_000 }, (_, nth) => [`field_${nth}`, nth]));

/** What rows teach a parser of a schema; undefined for nothing. */
function taught(schema: JsonSchema, ...rows: readonly Record<string, unknown>[]): RowFacts | undefined {
  const parser = new RowParser({ key: "id", cursor: null, schema });
  const notes = new RowNotes();
  for (const row of rows) expect(parser.parse("" as RawLine, { id: "1", ...row }, notes).key).toBe('"1"');
  return notes.take();
}

function factsOf(row: Record<string, unknown>): RowFacts {
  const facts = taught(schemaOf({}), row);
  if (facts === undefined) throw new Error("The row taught nothing");
  return facts;
}

describe("a row of a hundred thousand fields", () => {
  it("teaches the names of a thousand", () => {
    expect(factsOf(MANY).newFields.size).toBe(1_000);
  });

  it("is not compared with itself for ever, though every field is declared and seen in another order", () => {
    const names = Object.keys(MANY).slice(0, 2_000);
    const schema = schemaOf(Object.fromEntries(names.map((name) => [name, { type: "integer" }])));
    const orders = [names, names.toReversed()].map((order) =>
      Object.fromEntries(order.map((name) => [name, 1])),
    );
    expect(taught(schema, ...orders.flatMap((row) => Array(20).fill(row)))).toBeUndefined();
  });

  it("is a schema of a thousand", () => {
    expect(Object.keys(inferSchema({ type: "object" }, [MANY]).properties ?? {})).toHaveLength(1_000);
  });
});

describe("names from outside", () => {
  it("may be those that every object has", () => {
    const row = JSON.parse('{"__proto__":1,"constructor":{"a":1},"toString":[1],"hasOwnProperty":null}');
    const { newFields, contradictions } = factsOf(row);
    expect(contradictions.size).toBe(0);
    expect(newFields.get("__proto__")).toStrictEqual({ rows: 1, schema: {} });
    expect(newFields.get("toString")).toMatchObject({ rows: 1, schema: { type: ["null", "array"] } });
    expect([...newFields.keys()].sort()).toEqual(["__proto__", "constructor", "hasOwnProperty", "toString"]);
    const added = new Drift().add({ ...factsOf(row) });
    expect(Object.keys(added ?? {})).toHaveLength(4);
    expect(({} as Record<string, unknown>)["a"]).toBeUndefined();
  });

  it("may be so long that no expression holds them", () => {
    const name = "x".repeat(60_000);
    const row = { [name]: "y" };
    expect(taught(schemaOf({ [name]: { type: "string" } }), row, row, row)).toBeUndefined();
  });

  it("are cut and escaped in the report, of which there is a page at most", () => {
    const drift = new Drift();
    const odd = `\u001b[31m\u202e${"x".repeat(5_000)}\n`;
    drift.add(factsOf({ [toLatin1(odd)]: 1 }));
    for (let batch = 0; batch < 5; batch++) {
      drift.add(
        factsOf(Object.fromEntries(Array.from({ length: 999 }, (_, nth) => [`f${batch}_${nth}`, nth]))),
      );
    }
    const report = drift.report("companies").join();
    expect(report).toContain("\\u001b[31m\\u202e");
    expect(report).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(report).toContain("950 more fields, and others that are not counted");
    expect(report.length).toBeLessThan(10_000);
  });
});

describe("a schema from a catalog", () => {
  it("may be lists of lists without end", () => {
    let items: JsonSchema = {};
    for (let depth = 0; depth < 60; depth++) items = { type: ["null", "array"], items };
    expect(() => taught(schemaOf({ tags: items }), { tags: [[[[1]]]] })).not.toThrow();
  });

  it.each([
    [{ type: "strnig" }],
    [{ pattern: "(" }],
    [{ $ref: "#/nowhere" }],
    [{ enum: 3 }],
    [{ type: {} }],
    [5],
    [null],
    ["x"],
    [[]],
  ])("is refused by name if it is none: %j", (field) => {
    const open = (): unknown => taught(schemaOf({ "odd\n": field as JsonSchema }));
    expect(open).toThrow(ConfigError);
    expect(open).toThrow('the schema of the field "odd\\n" is not one');
  });
});

describe("RowNotes", () => {
  it("says of each batch what its own rows taught", () => {
    const parser = new RowParser({ key: "id", cursor: null, schema: schemaOf({ old: { type: "string" } }) });
    const notes = new RowNotes();
    const facts = [1, 2].map(() => {
      parser.parse("" as RawLine, { old: 1, new: 1 }, notes);
      return notes.take();
    });
    for (const one of facts) {
      expect(one).toMatchObject({ withoutKey: 1, replaced: 0 });
      expect([one?.newFields.get("new")?.rows, one?.contradictions.get("old")]).toEqual([1, 1]);
    }
    expect(notes.take()).toBeUndefined();
  });
});
