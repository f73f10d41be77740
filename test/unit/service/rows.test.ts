import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/base/errors.ts";
import { toLatin1 } from "../../../src/base/text.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { type NamingField, Suppression } from "../../../src/privacy/suppress.ts";
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

const SUPPRESSED = new Suppression([["per_1"], ["é_1"], ["a@x.example"], ["x.example"]]);
const PEOPLE: readonly NamingField[] = ["id", "email"];
const COMPANIES: readonly NamingField[] = ["domain"];

/** Texts as services write them: usual ones, and others that mean the same. */
const SPELT = [
  ...['"per_1"', '"PER_1"', '"per_2"', '"per\\u005f1"', '" per_1"', '"per_1\u200b"', '"é_1"', '"\\u00e9_1"'],
  ...[
    '"a@x.example"',
    '"A@X.example"',
    '"a@x.example."',
    '"b@y.example,a@x.example"',
    '"b@y.example;a@x.example"',
    '"A <a@x.example>"',
  ],
  ...['"x.example"', '"https://X.example/"', '"www.x.example"', '"y.example"', '"per_1/2"', '""', "null"],
];
const LINE = fc.record(
  Object.fromEntries(["id", "email", "domain", "note"].map((name) => [name, fc.constantFrom(...SPELT)])),
  { noNullPrototype: true },
);

describe.each([
  ["people, the key first", "people", "id", PEOPLE, [...PEOPLE, "note"], '"per_1"'],
  ["people, the key last", "people", "id", PEOPLE, ["note", "email", "id"], '"per_1"'],
  ["companies, the key first", "companies", "domain", COMPANIES, [...COMPANIES, "note"], '"x.example"'],
  ["companies, the key last", "companies", "domain", COMPANIES, ["note", "domain"], '"x.example"'],
] as const)("a suppressed row of %s", (_, stream, key, fields, names, suppressed) => {
  const properties = Object.fromEntries(names.map((name) => [name, { type: ["null", "string"] }]));
  const parser = new RowParser({
    ...{ key, cursor: null, schema: { type: "object", properties } },
    suppression: SUPPRESSED.groupsOf(stream),
  });
  const usual = JSON.stringify(Object.fromEntries(names.map((name) => [name, "q"])));
  parser.parse(usual as RawLine, JSON.parse(usual), new RowNotes());

  /** Whether a line is held back: as its expression says, if that knows it, and as its parser says. */
  const verdicts = (line: string) => {
    const raw = toLatin1(line) as RawLine;
    const notes = new RowNotes();
    return {
      matched: parser.match(raw),
      parsed: parser.parse(raw, JSON.parse(raw), notes),
      facts: notes.take(),
    };
  };

  it("is held back however its names are spelt, whether its line is usual or parsed", () => {
    fc.assert(
      fc.property(LINE, (spelt) => {
        const { matched, parsed } = verdicts(
          `{${names.map((name) => `"${name}":${spelt[name]}`).join(",")}}`,
        );
        const isSuppressed = fields.some((field) =>
          SUPPRESSED.has(field, JSON.parse(spelt[field] ?? "null")),
        );
        expect(parsed.isSuppressed).toBe(isSuppressed);
        if (matched !== undefined)
          expect([matched.isSuppressed, matched.key]).toEqual([isSuppressed, parsed.key]);
      }),
      { numRuns: 200 },
    );
    const line = (value: string): string =>
      `{${names.filter((name) => name !== "email").map((name) => (name === key ? `"${name}":${value}` : `"${name}":"n"`))}}`;
    expect([suppressed, '"other"'].map((value) => verdicts(line(value)).matched?.isSuppressed)).toEqual([
      true,
      false,
    ]);
  });

  it("is held back if one of two fields of one name says who it is", () => {
    for (const pair of [`"${key}":${suppressed},"${key}":"q"`, `"${key}":"q","${key}":${suppressed}`]) {
      const { matched, parsed } = verdicts(`{${pair},"note":"n"}`);
      expect([matched?.isSuppressed ?? true, parsed.isSuppressed]).toEqual([true, true]);
    }
  });

  it("teaches nothing", () => {
    const odd = verdicts(`{"${key}":${suppressed},"note":5,"more":1}`);
    expect(odd).toMatchObject({ facts: undefined, parsed: { isSuppressed: true } });
    expect(verdicts(`{"${key}":["q"],"note":5,"more":1}`).facts).toMatchObject({ withoutKey: 1 });
  });
});
