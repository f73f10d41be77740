import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type FieldAction,
  type FieldRule,
  type FieldRules,
  lineRewriter,
  mergeRules,
  schemaUnder,
} from "../../../src/catalog/field-rules.ts";
import type { JsonSchema } from "../../../src/catalog/schema.ts";
import { asRead, rawLine } from "../../support/events.ts";
import { runs } from "../../support/runs.ts";

const DROP: FieldAction = { kind: "drop", setting: "test" };
const HASH: FieldAction = { kind: "hash", setting: "test" };

const rules = (others: FieldRule, fields: Record<string, FieldRule>): FieldRules => ({
  others,
  fields: new Map(Object.entries(fields)),
});

/** Tells what was hashed. */
const hash = (bytes: string): string => `#${Buffer.from(bytes, "latin1").toString("hex")}`;

const hashed = (text: string): string => `#${Buffer.from(text, "utf8").toString("hex")}`;

const rewritten = (json: string, given: FieldRules): string =>
  asRead(lineRewriter(given, { hash })(rawLine(json)));

/** What the rules mean, on values. */
function model(value: unknown, rule: FieldRule): unknown {
  if (rule === "keep") return value;
  if ("kind" in rule) return digest(value);
  if (Array.isArray(value)) return value.map((element) => model(element, rule));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, member]) => {
    const inner = rule.fields.get(name) ?? rule.others;
    return inner !== "keep" && "kind" in inner && inner.kind === "drop" ? [] : [[name, model(member, inner)]];
  });
  return Object.fromEntries(entries);
}

function digest(value: unknown): unknown {
  if (value === null) return null;
  if (Array.isArray(value)) return value.map(digest);
  return hashed(typeof value === "string" ? value : JSON.stringify(value));
}

/** Without the spaces between tokens. Texts are compared: JSON.parse of Node 24 and 26 mixes up names like "\\"" and "\\\\". */
const compact = (json: string): string => json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");

const NAMES = fc.constantFrom("a", "b", "é", "😀", '"', "\\", "\u0001");
const { object: OBJECTS } = fc.letrec((tie) => ({
  object: fc.dictionary(NAMES, tie("value")),
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown>(null, true, 0, -1.5e300, ""),
    fc.string({ unit: "grapheme" }),
    fc.array(tie("value")),
    tie("object"),
  ),
}));
const { given: RULES } = fc.letrec<{ given: FieldRules; rule: FieldRule }>((tie) => ({
  given: fc
    .record({
      others: fc.constantFrom<FieldRule>("keep", DROP, HASH),
      fields: fc.dictionary(NAMES, tie("rule")),
    })
    .map(({ others, fields }) => rules(others, fields)),
  rule: fc.oneof({ maxDepth: 3 }, fc.constantFrom<FieldRule>("keep", DROP, HASH), tie("given")),
}));

describe("lineRewriter()", () => {
  it("keeps what it keeps to the byte", () => {
    const given = rules(DROP, { id: "keep", name: "keep", n: "keep" });
    const json =
      '{ "id" : 9007199254740993 , "x": {"a":"}\\"{"}, "name":"a\\u00e9é😀\\\\", "y":[[],["]"]],"n":1.50e3 }';
    expect(rewritten(json, given)).toBe('{ "id" : 9007199254740993, "name":"a\\u00e9é😀\\\\","n":1.50e3 }');
    expect(rewritten(json, rules("keep", { z: DROP, x: rules("keep", {}) }))).toBe(json);
  });

  it("knows a name however it is spelt, and however often it stands there", () => {
    const given = rules("keep", { é: DROP, "😀": DROP, 'q"': DROP, "": DROP });
    const json = '{"é":1,"\\u00e9":2,"\\ud83d\\ude00":3,"😀":4,"q\\"":5,"":6,"é":7,"e":8}';
    expect(rewritten(json, given)).toBe('{"e":8}');
  });

  it("steps into objects and lists, and hands on what is neither", () => {
    const given = rules("keep", { a: rules("keep", { b: DROP, c: rules(DROP, {}) }) });
    expect(rewritten('{"a":{"b":1,"c":{"d":1},"e":2}}', given)).toBe('{"a":{"c":{},"e":2}}');
    expect(rewritten('{"a":null}', given)).toBe('{"a":null}');
    expect(rewritten('{"a":[{"b":1},[ {"b":2,"e":3} ],4],"b":1}', given)).toBe(
      '{"a":[{},[ {"e":3} ],4],"b":1}',
    );
  });

  it("hashes what a value says and not how it is spelt, save for numbers", () => {
    const given = rules("keep", { h: HASH });
    const of = (json: string): unknown => JSON.parse(rewritten(`{"h":${json}}`, given)).h;
    expect(of('"é/"')).toBe(hashed("é/"));
    expect(of('"\\u00e9\\/"')).toBe(hashed("é/"));
    expect(of("9007199254740993")).toBe(hashed("9007199254740993"));
    expect(of("true")).toBe(hashed("true"));
    expect(of("null")).toBeNull();
    expect(of('[ "a", null, [1], {"b": "\\u00e9"} ]')).toEqual([
      hashed("a"),
      null,
      [hashed("1")],
      hashed('{"b":"é"}'),
    ]);
    expect(of('{ "n" : 1.50 , "s" : "\\u0022 " }')).toBe(hashed('{"n":1.50,"s":"\\" "}'));
  });

  it("tells what it did, and where", () => {
    const told: unknown[] = [];
    const given = rules("keep", { a: rules({ kind: "withhold", setting: "x" }, { b: "keep" }), h: HASH });
    const acted = (action: FieldAction, path: readonly string[]): void => {
      told.push([action.kind, path.join(".")]);
    };
    lineRewriter(given, { hash, acted })('{"a":[{"b":1,"c":2}],"h":1}');
    expect(told).toEqual([
      ["withhold", "a.c"],
      ["hash", "h"],
    ]);
  });

  it("agrees with the same rules on the parsed value, for any JSON object", () => {
    const spaces = fc.constantFrom(undefined, 1, "\t");
    fc.assert(
      fc.property(OBJECTS, RULES, spaces, (value, rule, space) => {
        const json = JSON.stringify(value, null, space);
        expect(compact(rewritten(json, rule))).toBe(JSON.stringify(model(value, rule)));
      }),
      { numRuns: runs(250, 1000) },
    );
  });

  it.each<[string, FieldRules, string]>([
    ["the first field", rules("keep", { a: DROP }), '{"b":"\\",\\"a\\":\\"","c":[null,"}"],"d":-1.5}'],
    ["the last field", rules("keep", { d: DROP }), '{"a":1,"b":"\\",\\"a\\":\\"","c":[null,"}"]}'],
    ["neighbours", rules("keep", { b: DROP, c: DROP }), '{"a":1,"d":-1.5}'],
    [
      "neighbours before one that is not there",
      rules("keep", { c: DROP, d: DROP }),
      '{"a":1,"b":"\\",\\"a\\":\\""}',
    ],
    ["the last ones", rules("keep", { b: DROP, c: DROP, d: DROP, e: DROP }), '{"a":1}'],
    ["all but one", rules(DROP, { c: "keep" }), '{"c":[null,"}"]}'],
    ["everything", rules(DROP, {}), "{}"],
    ["nothing", rules("keep", { c: rules(DROP, {}), x: DROP, e: DROP }), ""],
    [
      "and hashes",
      rules("keep", { b: HASH, c: HASH, d: DROP }),
      `{"a":1,"b":"${hashed('","a":"')}","c":[null,"${hashed("}")}"]}`,
    ],
  ])("cuts %s of a usual row as it would token by token", (_, given, expected) => {
    const line = '{"a":1,"b":"\\",\\"a\\":\\"","c":[null,"}"],"d":-1.5}';
    const told: string[] = [];
    const acted = (_action: FieldAction, path: readonly string[]): void => void told.push(...path);
    const rewrite = lineRewriter(given, { hash, acted });
    const cut = rewrite(line, ["a", "b", "c", "d", "e"]);
    expect(cut).toBe(expected || line);
    const toldByCut = told.splice(0);
    expect(rewrite(line)).toBe(cut);
    expect(toldByCut).toEqual(told);
  });

  it("throws rather than loops on what is no object", () => {
    const rewrite = lineRewriter(rules(DROP, {}));
    for (const text of [
      "",
      "{",
      '{"a',
      '{"a":',
      '{"a":[1',
      '{"a":1',
      "{x}",
      '{"a":"b\\"',
      "[]",
      '{"a":1}x',
      "{\u00a0}",
    ]) {
      expect(() => rewrite(text), text).toThrow("no JSON object");
    }
  });
});

describe("mergeRules()", () => {
  const WITHHOLD: FieldAction = { kind: "withhold", setting: "catalog" };
  const DESELECT: FieldAction = { kind: "drop", setting: "catalog" };
  const { rule: SELECTION } = fc.letrec<{ rule: FieldRule; given: FieldRules }>((tie) => ({
    given: fc.dictionary(NAMES, tie("rule")).map((fields) => rules(WITHHOLD, fields)),
    rule: fc.oneof({ maxDepth: 3 }, fc.constantFrom<FieldRule>("keep", DESELECT), tie("given")),
  }));
  const SELECTIONS = fc.dictionary(NAMES, SELECTION).map((fields) => rules(WITHHOLD, fields));

  /** A row under rules, one after the other, and what they told: settings that acted, and names that were withheld. */
  function under(json: string, ...each: readonly FieldRules[]): readonly unknown[] {
    const told = new Set<string>();
    const acted = ({ kind, setting }: FieldAction, path: readonly string[]): void => {
      if (setting !== "catalog") told.add(setting);
      if (kind === "withhold") told.add(JSON.stringify(path));
    };
    const line = each.reduce(
      (text, one) => lineRewriter(one, { hash, acted })(text),
      rawLine(json) as string,
    );
    return [compact(asRead(line)), [...told].sort()];
  }

  it("does and tells in one pass what privacy and then a selection do in two", () => {
    const everywhere = rules("keep", { a: { ...DROP, setting: "a" }, b: { ...HASH, setting: "b" } });
    const endless: FieldRules = Object.assign(everywhere, { others: everywhere });
    fc.assert(
      fc.property(OBJECTS, fc.oneof(RULES, fc.constant(endless)), SELECTIONS, (value, privacy, selection) => {
        const json = JSON.stringify(value);
        const merged = mergeRules(privacy, selection);
        expect(merged && under(json, merged)).toEqual(under(json, privacy, selection));
      }),
      { numRuns: runs(250, 1000) },
    );
  });

  it("is the one where there is no other", () => {
    const given = rules("keep", { a: DROP });
    expect([mergeRules(given, null), mergeRules(null, given), mergeRules(null, null)]).toEqual([
      ...[given, given, null],
    ]);
  });
});

describe("schemaUnder()", () => {
  const SCHEMA: JsonSchema = {
    $schema: "s",
    type: "object",
    required: ["id", "a", "h"],
    properties: {
      id: { type: "string", title: "Id" },
      a: { type: "integer" },
      h: { type: ["null", "string"], format: "date", title: "T", description: "D", enum: ["x"] },
      list: {
        type: ["null", "array"],
        items: { type: "object", properties: { a: {}, b: { type: "string" } } },
      },
      texts: { type: "array", items: { type: "integer", title: "I" } },
      mixed: { type: ["string", "array"], description: "M", items: {} },
      open: { type: "object" },
      bare: { type: "array" },
      deep: { type: "object", required: ["x"], properties: { x: { type: "string" }, y: { type: "null" } } },
    },
  };
  const inner = rules("keep", { a: DROP, x: { ...DROP, kind: "withhold" }, y: HASH });
  const GIVEN: Readonly<Record<string, FieldRules>> = {
    "drops and hashes": rules("keep", { a: DROP, h: HASH, texts: HASH, mixed: HASH, gone: DROP, open: HASH }),
    "what is in objects and lists": rules("keep", {
      list: inner,
      deep: inner,
      open: inner,
      bare: inner,
      id: inner,
    }),
    "nothing but two fields": rules({ ...DROP, kind: "withhold" }, { id: "keep", deep: "keep" }),
    "hashes of everything": rules(HASH, {}),
    "rules for others": rules(inner, { h: "keep" }),
  };

  it("is what golden/schemas-under-rules.txt says", async () => {
    const parts = Object.entries(GIVEN).flatMap(([name, given]) =>
      (["leaving", "arriving"] as const).map(
        (view) => `# ${name}, ${view}\n${JSON.stringify(schemaUnder(given, SCHEMA, view), null, 1)}\n`,
      ),
    );
    await expect(parts.join("\n")).toMatchFileSnapshot("../../golden/schemas-under-rules.txt");
  });

  it("is the schema itself where there are no rules", () => {
    expect(schemaUnder(null, SCHEMA, "leaving")).toBe(SCHEMA);
    expect(schemaUnder(null, SCHEMA, "arriving")).toBe(SCHEMA);
    expect(schemaUnder(rules("keep", { a: DROP }), {}, "leaving")).toEqual({});
    expect(schemaUnder(rules("keep", { a: DROP }), {}, "arriving")).toEqual({ properties: { a: {} } });
  });
});

describe("mergeRules(), pair by pair", () => {
  const WITHHOLD: FieldAction = { kind: "withhold", setting: "catalog" };
  const inner = rules("keep", { x: DROP });
  const open = { ...inner, onlyObjects: true };
  const other = rules(WITHHOLD, { y: "keep" });

  it.each<[string, FieldRule, FieldRule, FieldRule]>([
    ["keep and keep", "keep", "keep", "keep"],
    ["drop and keep", DROP, "keep", DROP],
    ["keep and withhold", "keep", WITHHOLD, WITHHOLD],
    ["hash and keep", HASH, "keep", HASH],
    ["hash and withhold", HASH, WITHHOLD, { ...HASH, kind: "withhold" }],
    ["drop and withhold", DROP, WITHHOLD, DROP],
    ["hash and rules", HASH, other, HASH],
    ["drop and rules", DROP, other, DROP],
    ["rules and withhold", inner, WITHHOLD, { ...WITHHOLD, inside: inner }],
    ["rules and keep", inner, "keep", inner],
    ["keep and rules", "keep", other, other],
    ["rules and rules", inner, other, rules(WITHHOLD, { x: DROP, y: "keep" })],
    [
      "rules for objects alone and rules",
      open,
      other,
      { ...rules(WITHHOLD, { x: DROP, y: "keep" }), onlyObjects: true },
    ],
    [
      "rules and rules for objects alone",
      inner,
      { ...other, onlyObjects: true },
      { ...rules(WITHHOLD, { x: DROP, y: "keep" }), onlyObjects: true },
    ],
  ])("%s", (_, privacy, selection, merged) => {
    const [a, b] = [rules("keep", { f: privacy }), rules("keep", { f: selection })];
    expect(mergeRules(a, b)).toEqual(rules("keep", { f: merged }));
    expect(mergeRules(rules(privacy, {}), rules(selection, {}))?.others).toEqual(merged);
    expect(mergeRules(rules(privacy, {}), rules("keep", { f: selection }))?.fields.get("f")).toEqual(merged);
    expect(mergeRules(rules("keep", { f: privacy }), rules(selection, {}))?.fields.get("f")).toEqual(merged);
  });
});

describe("rules for objects alone", () => {
  const given: FieldRules = rules("keep", {
    o: { ...rules("keep", { x: DROP }), onlyObjects: true },
    p: rules("keep", {}),
  });

  it.each([
    ['{"o":{"x":1,"y":2},"p":1}', '{"o":{"y":2},"p":1}'],
    ['{"o":7,"p":7}', '{"o":null,"p":7}'],
    ['{"o":"s"}', '{"o":null}'],
    ['{"o":null}', '{"o":null}'],
    ['{"o":[1,{"x":2},null,[3,{"x":4,"y":5}]],"p":[1]}', '{"o":[null,{},null,[null,{"y":5}]],"p":[1]}'],
    ['{ "o" : true , "p" : false }', '{ "o" : null , "p" : false }'],
  ])("leave of %s: %s", (line, left) => {
    expect(rewritten(line, given)).toBe(left);
  });

  it("leave the same of a usual row, and say nothing of what they withhold", () => {
    const told: unknown[] = [];
    const rewrite = lineRewriter(given, { hash, acted: (...of) => void told.push(of) });
    for (const [line, left] of [
      ['{"a":1,"o":7,"p":7}', '{"a":1,"o":null,"p":7}'],
      ['{"o":[1,null]}', '{"o":[null,null]}'],
      ['{"a":"\\"o\\":1"}', '{"a":"\\"o\\":1"}'],
    ] as const)
      expect(rewrite(line, ["a", "o", "p"])).toBe(left);
    expect(told).toEqual([]);
  });
});

it("lineRewriter() tells of each field of usual rows once, and again for other names", () => {
  const told: string[] = [];
  const given = rules("keep", { a: DROP, b: HASH, é: DROP });
  const rewrite = lineRewriter(given, {
    hash,
    acted: ({ kind }, path) => void told.push(`${kind} ${path.join(".")}`),
  });
  const names = ["a", "b", "\u00c3\u00a9", "c"];
  expect(rewrite('{"b":1,"c":2}', names)).toBe(`{"b":"${hashed("1")}","c":2}`);
  expect(rewrite('{"a":1,"b":1,"c":2}', names)).toBe(`{"b":"${hashed("1")}","c":2}`);
  expect(rewrite('{"a":1,"b":1,"\u00c3\u00a9":3}', names)).toBe(`{"b":"${hashed("1")}"}`);
  expect(told).toEqual(["hash b", "drop a", "drop \u00e9"]);
  expect(rewrite('{"a":1}', ["a"])).toBe("{}");
  expect(rewrite('{"c":[1,"a"]}', ["c"])).toBe('{"c":[1,"a"]}');
  expect(told).toEqual(["hash b", "drop a", "drop \u00e9", "drop a"]);
});

it("lineRewriter() refuses to hash without a salt, and hashes no null", () => {
  const rewrite = lineRewriter(rules("keep", { a: HASH }));
  expect(rewrite('{"a":null,"b":1}')).toBe('{"a":null,"b":1}');
  expect(() => rewrite('{"a":1}')).toThrow("Cannot hash a field: there is no salt");
  expect(rewrite('{"a":[null]}', ["a"])).toBe('{"a":[null]}');
});

it("lineRewriter() tells of what is inside a field that goes, which changes nothing of it", () => {
  const told: string[] = [];
  const inside = rules("keep", { x: HASH, y: DROP });
  const given = rules("keep", { o: { ...DROP, inside }, p: "keep" });
  const rewrite = lineRewriter(given, {
    hash,
    acted: ({ kind }, path) => void told.push(`${kind} ${path.join(".")}`),
  });
  expect(rewrite('{"k":1,"o":{"x":1,"y":2,"z":{"x":3}},"p":2}')).toBe('{"k":1,"p":2}');
  expect(told).toEqual(["drop o", "hash o.x", "drop o.y"]);
  expect(rewrite('{"o":[{"y":1}]}')).toBe("{}");
  expect(told.slice(3)).toEqual(["drop o", "drop o.y"]);
});
