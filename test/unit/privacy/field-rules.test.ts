import { Ajv } from "ajv";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  catalogConflicts,
  type FieldAction,
  type FieldRule,
  type FieldRules,
  joined,
  schemaUnder,
} from "../../../src/catalog/field-rules.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { lineRewriter } from "../../../src/privacy/line-rewriter.ts";
import { asRead, rawLine } from "../../support/events.ts";
import { runs } from "../../support/runs.ts";

const DROP: FieldAction = { kind: "drop", setting: "test" };
const HASH: FieldAction = { kind: "hash", setting: "test" };
const UNLISTED: FieldAction = { kind: "unlisted", setting: "catalog" };

const rules = (defaultRule: FieldRule, fields: Record<string, FieldRule>): FieldRules => ({
  defaultRule,
  fields: new Map(Object.entries(fields)),
});

const AJV = new Ajv({ strict: false, validateFormats: false });

const ONLY_OBJECTS: FieldRules = { ...rules("keep", { x: DROP }), onlyObjects: true };

/** Tells what was hashed. */
const hash = (bytes: string): string => `#${Buffer.from(bytes, "latin1").toString("hex")}`;

const hashed = (text: string): string => `#${Buffer.from(text, "utf8").toString("hex")}`;

const rewritten = (json: string, given: FieldRules): string =>
  asRead(lineRewriter(given, { hash })(rawLine(json)));

describe("a row under rules", () => {
  it.each<[what: string, given: FieldRules, row: string, left: string]>([
    [
      "keeps what stays to the byte",
      rules(DROP, { id: "keep", name: "keep", n: "keep" }),
      '{ "id" : 9007199254740993 , "x": {"a":"}\\"{"}, "name":"a\\u00e9é😀\\\\", "y":[[],["]"]],"n":1.50e3 }',
      '{ "id" : 9007199254740993, "name":"a\\u00e9é😀\\\\","n":1.50e3 }',
    ],
    [
      "hashes every value but null, lists element by element",
      rules("keep", { h: HASH }),
      '{"h":[ "\\u00e9\\/", null, [1.50], {"b" : "\\u00e9"}, true ]}',
      `{"h":[ "${hashed("é/")}", null, ["${hashed("1.50")}"], "${hashed('{"b":"é"}')}", "${hashed("true")}" ]}`,
    ],
  ])("%s", (_, given, row, left) => {
    expect(rewritten(row, given)).toBe(left);
  });

  it("drops and reports equal fields with and without the names of usual rows", () => {
    const names = ["a", "b", "c", "d"];
    const odd = fc.constantFrom<unknown>('","b":"', '\\",\\"a\\":\\"', "}", [1, "]"], [], [null, "b"]);
    const values = fc.oneof(fc.constantFrom<unknown>(1, null, "x", -1.5), odd);
    const usual = fc.record(Object.fromEntries(names.map((name) => [name, values])), { requiredKeys: [] });
    const kinds: readonly FieldRule[] = ["keep", DROP, ONLY_OBJECTS, rules(DROP, {})];
    const some = (fields: readonly FieldRule[], rest: FieldRule) =>
      fc.record({
        fields: fc.dictionary(fc.constantFrom(...names), fc.constantFrom(...fields)),
        rest: fc.constantFrom<FieldRule>("keep", rest),
      });
    const later = fc.array(some(kinds, UNLISTED), { maxLength: 2 });
    fc.assert(
      fc.property(usual, some([...kinds, HASH], DROP), later, (row, first, others) => {
        const told: string[] = [];
        const acted = ({ kind }: FieldAction, path: readonly string[]) => void told.push(`${kind} ${path}`);
        const given = [first, ...others].map(({ fields, rest }) => rules(rest, fields)).reduce(joined);
        const rewrite = lineRewriter(given, { hash, acted });
        const inOrder = names.filter((name) => name in row).map((name) => [name, row[name]]);
        const line = JSON.stringify(Object.fromEntries(inOrder));
        const left = rewrite(line, names);
        const all = new Set(told.splice(0));
        expect(left).toBe(rewrite(line));
        expect(told.filter((one) => !all.has(one))).toEqual([]);
      }),
      { numRuns: runs(300, 3000) },
    );
  });

  it("joined with other rules does what both do one after the other", () => {
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>(1, null, "x"),
        fc.array(tie("value"), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
      ),
    }));
    const row = fc.dictionary(fc.constantFrom("a", "b", "c"), value);
    const some = (...kinds: readonly FieldRule[]) =>
      fc
        .tuple(fc.constantFrom(...kinds), fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom(...kinds)))
        .map(([rest, fields]) => rules(rest, fields));
    const first = some("keep", DROP, HASH, rules("keep", { a: HASH }), rules(DROP, { b: "keep" }));
    const second = some("keep", DROP, UNLISTED, rules(UNLISTED, { a: "keep" }), rules("keep", { b: DROP }));
    fc.assert(
      fc.property(row, first, second, (fields, one, other) => {
        const line = JSON.stringify(fields);
        const inTurn = rewritten(rewritten(line, one), other);
        expect(JSON.parse(rewritten(line, joined(one, other)))).toEqual(JSON.parse(inTurn));
      }),
      { numRuns: runs(300, 3000) },
    );
  });

  it("drops a hashed object if only its fields may leave", () => {
    const given = joined(rules("keep", { o: HASH }), rules("keep", { o: ONLY_OBJECTS }));
    expect(rewritten('{"o":{"x":1,"y":2},"p":1}', given)).toBe('{"p":1}');
  });

  it("throws rather than leaves unchanged where it is no object", () => {
    const rewrite = lineRewriter(rules(DROP, {}));
    const broken = ["", "[]", "{\u00a0}", ...'{ {"a {"a": {"a":[1 {"a":1 {x} {"a":"b\\" {"a":1}x'.split(" ")];
    for (const text of broken) expect(() => rewrite(text), text).toThrow("not a JSON object");
  });

  it("throws where a field is to be hashed without a salt", () => {
    expect(() => lineRewriter(rules("keep", { a: HASH }))('{"a":1}')).toThrow("there is no salt");
  });
});

describe("a schema under rules", () => {
  const inner = rules("keep", { a: DROP });
  const list: JsonSchema = { type: "array", items: { properties: { a: {}, b: { type: "string" } } } };

  it.each<[what: string, rule: FieldRule, schema: JsonSchema, leaving: JsonSchema | undefined]>([
    ["a field that stays", "keep", { type: "integer" }, { type: "integer" }],
    ["a dropped field", DROP, { type: "integer" }, undefined],
    ["a hashed number", HASH, { type: ["null", "integer"], enum: [1] }, { type: ["null", "string"] }],
    [
      "a hashed date",
      HASH,
      { type: "string", format: "date", title: "T", description: "D" },
      { type: ["null", "string"], title: "T", description: "D" },
    ],
    [
      "a hashed list",
      HASH,
      { type: ["null", "array"], items: { type: "integer" } },
      { type: ["null", "array"], items: { type: ["null", "string"] } },
    ],
    ["a list of objects", inner, list, { ...list, items: { properties: { b: { type: "string" } } } }],
    [
      "an object",
      inner,
      { required: ["a", "b"], properties: { a: {}, b: {} } },
      { required: ["b"], properties: { b: {} } },
    ],
  ])("leaves of %s what its rows have", (_, rule, schema, leaving) => {
    const given = rules("keep", { f: rule });
    const whole: JsonSchema = { type: "object", required: ["f"], properties: { f: schema } };
    expect(schemaUnder(given, whole, "leaving")).toEqual({
      ...{ type: "object", required: leaving === undefined ? [] : ["f"] },
      properties: leaving === undefined ? {} : { f: leaving },
    });
    const rewrite = lineRewriter(given, { hash: () => "0" });
    const isValid = AJV.compile(schemaUnder(given, whole, "leaving"));
    for (const value of [1, null, "2026-01-02", [1], [{ a: 1, b: "x" }], { a: 1, b: 2 }])
      if (AJV.validate(schema, value))
        expect(isValid(JSON.parse(rewrite(JSON.stringify({ f: value })))), JSON.stringify(value)).toBe(true);
  });

  it("takes any value of arriving rows in the fields that do not leave as they came", () => {
    const schema: JsonSchema = {
      properties: { a: { type: "integer" }, h: { type: "string" }, id: { type: "string" } },
    };
    const given = rules("keep", { a: DROP, h: HASH, gone: DROP });
    expect(schemaUnder(given, schema, "arriving")).toEqual({
      properties: { a: {}, h: {}, gone: {}, id: { type: "string" } },
    });
  });
});

describe("a catalog that was made before the settings", () => {
  it.each<[what: string, schema: JsonSchema, isMistyped: boolean]>([
    ["a text", { type: ["null", "string"] }, false],
    ["anything", {}, false],
    ["a list of lists of texts", { type: "array", items: { items: { type: "string" } } }, false],
    ["a number", { type: "number" }, true],
    ["a text or a number", { type: ["string", "number"] }, true],
    ["a date", { type: "string", format: "date" }, true],
    ["one of some words", { type: "string", enum: ["a"] }, true],
    ["a list of numbers", { type: "array", items: { type: "integer" } }, true],
    ["an object", { type: "object" }, true],
  ])("is judged by what it says a hashed field is: %s", (_, schema, isMistyped) => {
    const given = rules("keep", { h: HASH, o: rules("keep", { h: HASH }) });
    const conflicts = catalogConflicts(
      { properties: { h: schema, o: { items: { properties: { h: schema } } } } },
      given,
    );
    expect(conflicts).toEqual({ mistyped: isMistyped ? ["h", "o.h"] : [], dropped: [] });
  });

  it("is content with a hashed field that another set of rules drops", () => {
    const schema = { properties: { a: { type: "integer" }, n: { properties: { h: { type: "integer" } } } } };
    const given = joined(rules("keep", { a: HASH, n: rules("keep", { h: HASH }) }), rules(DROP, {}));
    expect(catalogConflicts(schema, given)).toEqual({ mistyped: [], dropped: ["a", "n"] });
  });

  it("names dropped fields, nested ones too", () => {
    const given = rules("keep", { a: DROP, n: rules("keep", { b: DROP }) });
    const schema = { properties: { a: {}, c: {}, n: { items: { properties: { b: {} } } } } };
    expect(catalogConflicts(schema, given)).toEqual({ mistyped: [], dropped: ["a", "n.b"] });
  });
});
