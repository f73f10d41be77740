import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowNotes } from "../../../src/api/row-notes.ts";
import { RowParser } from "../../../src/api/rows.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { type NamingField, Suppression } from "../../../src/config/suppress.ts";
import { toLatin1 } from "../../../src/latin1.ts";
import type { RawLine } from "../../../src/streams/event.ts";

const text: JsonSchema = { type: ["null", "string"] };
const SUPPRESSED = new Suppression([["per_1"], ["é_1"], ["a@x.example"], ["x.example"]]);
const STREAMS = {
  people: { key: "id", fields: ["id", "email"] },
  companies: { key: "domain", fields: ["domain"] },
} as const satisfies Record<string, { key: string; fields: readonly NamingField[] }>;

/** A parser that has seen a row with its names in this order. */
function parserOf(stream: keyof typeof STREAMS, order: (names: string[]) => string[]): RowParser {
  const { key, fields } = STREAMS[stream];
  const names = order([...fields, "note"]);
  const properties = Object.fromEntries(names.map((name) => [name, text]));
  const parser = new RowParser({
    ...{ key, cursor: null, schema: { type: "object", properties } },
    held: { suppressed: SUPPRESSED, fields },
  });
  const usual = JSON.stringify(Object.fromEntries(names.map((name) => [name, "q"])));
  parser.parse(usual as RawLine, JSON.parse(usual), new RowNotes());
  return parser;
}

/** Texts as services write them: usual ones, and others that mean the same. */
const SPELT = [
  ...['"per_1"', '"PER_1"', '"per_2"', '"per\\u005f1"', '" per_1"', '"per_1\u200b"', '"é_1"', '"\\u00e9_1"'],
  ...['"a@x.example"', '"A@X.example"', '"a@x.example."', '"b@y.example,a@x.example"', '"b@y.example"'],
  ...['"x.example"', '"https://X.example/"', '"www.x.example"', '"y.example"', '"per_1/2"', '""', "null"],
];
const LINE = fc.record(
  Object.fromEntries(["id", "email", "domain", "note"].map((name) => [name, fc.constantFrom(...SPELT)])),
  { noNullPrototype: true },
);

/** Whether a line is held back: as its expression says, if that knows it, and as its parser says. */
function verdicts(parser: RowParser, line: string) {
  const raw = toLatin1(line) as RawLine;
  const notes = new RowNotes();
  const parsed = parser.parse(raw, JSON.parse(raw), notes);
  return { matched: parser.match(raw), parsed, facts: notes.take() };
}

const asGiven = (names: string[]): string[] => names;
const reversed = (names: string[]): string[] => names.toReversed();

describe.each([
  ["people", "the key first", asGiven],
  ["people", "the key last", reversed],
  ["companies", "the key first", asGiven],
  ["companies", "the key last", reversed],
] as const)("a row of %s, %s, whose person or company is suppressed", (stream, _order, order) => {
  const { key, fields } = STREAMS[stream];
  const parser = parserOf(stream, order);

  it("is held back however its names are spelt, whether its line is usual or parsed", () => {
    fc.assert(
      fc.property(LINE, (spelt) => {
        const names = order([...fields, "note"]);
        const { matched, parsed } = verdicts(
          parser,
          `{${names.map((name) => `"${name}":${spelt[name]}`).join(",")}}`,
        );
        const isHeld = fields.some((field) => SUPPRESSED.hasJson(field, toLatin1(spelt[field] ?? "null")));
        expect(parsed.isHeld).toBe(isHeld);
        if (matched !== undefined) expect([matched.isHeld, matched.key]).toEqual([isHeld, parsed.key]);
      }),
      { numRuns: 400 },
    );
  });

  it("is known by its line if that is usual", () => {
    const lineOf = (value: string): string => `{${order([`"${key}":"${value}"`, '"note":"n"']).join(",")}}`;
    const value = stream === "people" ? "per_1" : "x.example";
    const { matched } = verdicts(parser, lineOf(value));
    expect(matched).toMatchObject({ isHeld: true, key: `"${value}"` });
    expect(verdicts(parser, lineOf("other")).matched).toMatchObject({ isHeld: false });
  });

  it("is held back if one of two fields of one name says who it is", () => {
    const value = stream === "people" ? "per_1" : "x.example";
    for (const pair of [`"${key}":"${value}","${key}":"q"`, `"${key}":"q","${key}":"${value}"`]) {
      const { matched, parsed } = verdicts(parser, `{${pair},"note":"n"}`);
      expect([matched?.isHeld ?? true, parsed.isHeld]).toEqual([true, true]);
    }
  });

  it("teaches nothing, not even that it lacks its key", () => {
    const value = stream === "people" ? '"per_1"' : '["x.example"]';
    const odd = verdicts(parser, `{"${key}":${value},"note":5,"more":1}`);
    expect(odd).toMatchObject({ facts: undefined, parsed: { isHeld: true } });
    const other = verdicts(parser, `{"${key}":["q"],"note":5,"more":1}`);
    expect(other.facts).toMatchObject({ withoutKey: 1, newFields: new Map([["more", expect.anything()]]) });
    expect([...(other.facts?.contradictions.keys() ?? [])]).toEqual([key, "note"]);
  });
});
