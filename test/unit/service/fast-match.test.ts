import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toLatin1 } from "../../../src/base/text.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { LinePattern } from "../../../src/service/fast-match.ts";
import { RowNotes } from "../../../src/service/row-notes.ts";
import { RowParser } from "../../../src/service/rows.ts";
import type { RawLine } from "../../../src/sync/event.ts";
import { runs } from "../../support/runs.ts";

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    id: { type: "string", title: "ID" },
    name: { type: ["null", "string"] },
    size: { type: ["null", "integer"] },
    share: { type: "number" },
    active: { type: ["null", "boolean"] },
    tags: { type: ["null", "array"], items: { type: ["null", "string"] } },
    list: { type: ["null", "array"] },
    any: {},
    more: { type: ["null", "object"], properties: { a: { type: "string" } }, additionalProperties: true },
    "a.b (c)": { type: ["null", "string"] },
    at: { type: ["null", "string"], format: "date-time", airbyte_type: "timestamp_with_timezone" },
  },
};
const NAMES = Object.keys(SCHEMA.properties ?? {});

const PARSER = new RowParser({ key: "id", cursor: "at", schema: SCHEMA });

/** Whether a row says nothing that the schema does not. */
function obeys(row: Record<string, unknown>): boolean {
  const { notes } = PARSER;
  notes.newFields.clear();
  notes.contradictions.clear();
  notes.withoutKey = 0;
  PARSER.parse("" as RawLine, row);
  return isDeepStrictEqual(notes, new RowNotes());
}

/** The pattern of a schema, which has learnt rows of these fields. */
function patternOf(names: readonly string[], { properties = {} }: JsonSchema = SCHEMA): LinePattern {
  const fields = Object.entries(properties).map(([name, field]) => [toLatin1(name), field] as const);
  const pattern = new LinePattern(new Map(fields), { key: "id", cursor: "at" });
  if (names.length > 0) pattern.learn(names);
  return pattern;
}

/** What a reader that parses takes from a line; undefined for one that is no row or contradicts the schema. */
function parsed(line: string): { raw: string; key: string; cursor: string | null } | undefined {
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (typeof row !== "object" || row === null || Array.isArray(row)) return undefined;
  const { id, at } = row as Record<string, unknown>;
  if (typeof id !== "string" || id === "" || !obeys(row as Record<string, unknown>)) return undefined;
  return { raw: line, key: JSON.stringify(id), cursor: typeof at === "string" && at !== "" ? at : null };
}

const TEXT = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\\", '"', "\n", "\u0000", "é"),
);
const latin1 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** A row as services write it: its fields in this order. */
const lineOf = (row: object, order = NAMES): string => {
  const values = new Map(Object.entries(row));
  const names = order.filter((name) => values.has(name));
  return latin1(JSON.stringify(Object.fromEntries(names.map((name) => [name, values.get(name)]))));
};

const mostly = <Value>(usual: fc.Arbitrary<Value>, odd: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 15, arbitrary: usual }, { weight: 1, arbitrary: odd });

const LIST = fc.array(fc.oneof(TEXT, fc.integer()), { maxLength: 3 });
const ODD_NUMBER = fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(1e21, 5e-324));

/** Fields as services write them, mostly. */
const ROW = fc.record(
  {
    id: mostly(fc.stringMatching(/^[a-z0-9_]{1,12}$|^[*;' ]{1,3}$/), TEXT),
    name: fc.option(TEXT),
    size: mostly(fc.option(fc.integer()), fc.oneof(fc.maxSafeInteger(), fc.double())),
    share: mostly(fc.constantFrom(0, -1.5, 12.25), ODD_NUMBER),
    active: mostly(fc.option(fc.boolean()), fc.jsonValue()),
    tags: mostly(fc.option(fc.array(fc.option(TEXT), { maxLength: 3 })), fc.jsonValue()),
    list: mostly(fc.option(LIST), fc.array(fc.jsonValue())),
    any: mostly(fc.option(TEXT), fc.jsonValue()),
    more: mostly(fc.constant(null), fc.dictionary(TEXT, fc.integer(), { maxKeys: 2 })),
    "a.b (c)": fc.option(TEXT),
    at: mostly(fc.option(fc.constant("2026-01-02T03:04:05.678Z")), TEXT),
  },
  { requiredKeys: ["id"], noNullPrototype: true },
);

/** Lines as services write them, and lines of which one character or more is not what it was. */
const LINE = fc
  .tuple(
    ROW,
    fc.shuffledSubarray(NAMES, { minLength: NAMES.length }),
    fc.nat(7).map((chance) => chance === 0),
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.constantFrom(...'{}[]",:\\ \t\n\u0000\u001f019-+.eEtnu/')), {
      maxLength: 2,
    }),
  )
  .map(([row, order, shuffled, changes]) => {
    let line = lineOf(row, shuffled ? order : NAMES);
    for (const [place, removed, put] of changes) {
      const at = place % (line.length + 1);
      line = line.slice(0, at) + put + line.slice(at + removed);
    }
    return line;
  });

describe("LinePattern", () => {
  it("says of a line what parsing and checking it say, or nothing", () => {
    let matches = 0;
    fc.assert(
      fc.property(fc.array(LINE, { minLength: 1, maxLength: 8 }), (lines) => {
        const [pattern, usual] = [patternOf([]), patternOf(NAMES)];
        for (const line of lines) {
          for (const matched of [pattern.match(line), usual.match(line)]) {
            if (matched === undefined) continue;
            matches += 1;
            expect(matched).toEqual({ ...parsed(line), names: expect.any(Array) });
          }
          if (parsed(line) !== undefined) pattern.learn(Object.keys(JSON.parse(line)));
        }
      }),
      { numRuns: runs(100, 5_000) },
    );
    expect(matches).toBeGreaterThan(runs(100, 5_000));
  });

  it.each<[string, object, string, string?]>([
    ["a keyword that it does not know", { type: "string", enum: ["a"] }, '"b"'],
    ["a number that doubles do not hold", { type: "integer" }, "1234567890123456"],
    ["an object", { type: ["null", "object"] }, "{}"],
    ["a list of what it does not know", { type: "array", items: { type: "string", minLength: 1 } }, '["b"]'],
    ["what may be the service's error", { type: "boolean" }, "false", "success"],
  ])("leaves %s to the parser", (_, field, value, name = "field") => {
    const properties = { id: { type: "string" }, [name]: field as JsonSchema };
    const pattern = patternOf(["id", name], { properties });
    pattern.learn(["id"]);
    expect(pattern.match('{"id":"1"}')).toBeDefined();
    expect(pattern.match(`{"id":"1","${name}":${value}}`)).toBeUndefined();
  });

  it("leaves what does not match without trying every way, and does not try what is very long", () => {
    const pattern = patternOf(NAMES);
    const text = "x".repeat(60_000);
    const many = Array.from({ length: 90 }, (_, nth) => `f${nth}`);
    const fields = many.map((name, nth) => [name, nth % 2 ? {} : { type: ["number", "integer"] }]);
    const numbers = patternOf(["id", ...many], {
      properties: Object.fromEntries([["id", { type: "string" }], ...fields]),
    });
    const counted = many.map((name, nth) => `,"${name}":${nth}`).join("");
    expect(numbers.match(`{"id":"1"${counted}}`)).toBeDefined();
    expect(numbers.match(`{"id":"1"${counted}]`)).toBeUndefined();
    for (const line of [
      `{"name":"${text}`,
      `{"name":"${text}","id":"${text}`,
      `{"tags":["${"a".repeat(9)}"${',"b"'.repeat(14_000)}`,
      `{"name":"${"\\n".repeat(30_000)}`,
      `{"any":${"[".repeat(60_000)}`,
    ])
      expect(pattern.match(line)).toBeUndefined();
    expect(pattern.match(`{"id":"${"x".repeat(70_000)}"}`)).toBeUndefined();
  });
});
