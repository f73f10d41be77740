import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowNotes } from "../../../src/api/row-notes.ts";
import { RowParser } from "../../../src/api/rows.ts";
import {
  compactJson,
  elementTexts,
  memberText,
  memberTexts,
  nameOf,
  skipSpace,
  skipString,
  skipValue,
} from "../../../src/catalog/json-text.ts";
import { fromLatin1, toLatin1 } from "../../../src/latin1.ts";

/** Any JSON value in which integers may have up to 40 digits, as the text of an answer. */
const bigInteger = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
const spaces = fc.constantFrom("", " ", "\n", "\r\n\t ");

/** A text that parses to the string, with some characters as escapes. */
const spelt = (text: string, escaped: boolean): string =>
  escaped
    ? `"${[...text].map((one) => [...Array(one.length).keys()].map((at) => `\\u${one.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")).join("")}"`
    : JSON.stringify(text);

describe("elements of a list as texts", () => {
  it("keep integers of any size, while strings are as JSON.stringify writes them", () => {
    const row = fc.record({
      ...{ id: fc.string({ minLength: 1, unit: "grapheme" }), escaped: fc.boolean() },
      ...{ big: bigInteger, nested: fc.array(bigInteger), space: spaces, other: fc.jsonValue() },
    });
    fc.assert(
      fc.property(fc.array(row), spaces, (rows, space) => {
        const texts = rows.map(
          ({ id, escaped, big, nested, space: gap, other }) =>
            `{${gap}"id":${gap}${spelt(id, escaped)},"big"${gap}:${big}${gap},"nested":[${nested.join(`${gap},`)}],${gap}"other":${JSON.stringify(other)}}`,
        );
        const body = `{"data":"first","pagination":{"data":[1]},${space}"d\\u0061ta":${space}[${texts.join(`,${space}`)}${space}]}${space}`;
        const found = elementTexts(toLatin1(body), "data");
        expect(found.map(fromLatin1)).toEqual(texts);
        const parser = new RowParser({ key: "big", cursor: null, schema: null });
        for (const [nth, text] of found.entries()) {
          const { id = "", big, nested = [], other } = rows[nth] ?? {};
          const { raw, key } = parser.parseElement(text, new RowNotes());
          expect(fromLatin1(raw).replaceAll("\\u2028", "\u2028").replaceAll("\\u2029", "\u2029")).toContain(
            `{"id":${JSON.stringify(id)},"big":${big},"nested":[${nested.join(",")}],"other":`,
          );
          expect(key).toBe(String(big));
          expect(JSON.parse(fromLatin1(raw)).other).toEqual(JSON.parse(JSON.stringify(other)));
        }
      }),
    );
  });

  it("are none where the object has no such list, and those of the last where the name stands twice", () => {
    for (const body of ["[1]", '{"data":null}', '{"data":{"data":[1]}}', "{}", '{"data":[1],"data":2}'])
      expect(elementTexts(body, "data"), body).toEqual([]);
    expect(elementTexts('{"data":[1],"data":[ 2 , {"a":[3]} ]}', "data")).toEqual(["2", '{"a":[3]}']);
  });
});

describe("compact()", () => {
  it("writes what JSON.stringify writes", () => {
    const text = fc
      .jsonValue()
      .map((value) => [JSON.stringify(value, null, 2), JSON.stringify(value)] as const);
    fc.assert(
      fc.property(text, ([pretty, plain]) => {
        expect(compactJson(toLatin1(pretty))).toBe(toLatin1(plain));
      }),
    );
  });

  it("takes a string of ten million escapes", () => {
    const long = `"${"\\n".repeat(10_000_000)}"`;
    expect(compactJson(`[ ${long} ]`).length).toBe(long.length + 2);
  });
});

describe("memberTexts()", () => {
  it.each<[json: string, name: string, texts: readonly string[]]>([
    ['{"a":1,"b":"x","a":{"a":2}}', "a", ["1", '{"a":2}']],
    ['{"b":"x"}', "a", []],
    ["{}", "a", []],
    [" { } ", "a", []],
    ["[1]", "a", []],
    ['"a"', "a", []],
    ["", "a", []],
    ['\t{\n"\\u0061" :\r-1.5E+3 , "b":[ {"a":3} ] }', "a", ["-1.5E+3"]],
    ['{"a":[1,"]",{"b":"}"}],"c":null}', "a", ['[1,"]",{"b":"}"}]']],
    ['{"a":"\\"","a":"\\\\"}', "a", ['"\\""', '"\\\\"']],
    ['{"a":true,"b":false,"c":null}', "c", ["null"]],
    ['{"":0}', "", ["0"]],
    ['{"\u00c3\u00a9":1}', "\u00e9", ["1"]],
  ])("of %s under %j are %j", (json, name, texts) => {
    expect(memberTexts(json, name)).toEqual(texts);
    expect(memberText(json, name)).toBe(texts.at(-1));
  });

  it.each([
    '{"a":1',
    '{"a"',
    '{"a":',
    '{"a":}',
    '{"a":,}',
    '{"a":1;"b":2}',
    '{"a":"',
    '{"a":[1',
    "{a:1}",
    '{"a":1}'.replace("1", "\u00a0"),
    '{\u000b"a":1}',
  ])("throw for %j", (json) => {
    expect(() => memberTexts(json, "a")).toThrow("no JSON object");
  });
});

describe("elementTexts()", () => {
  it.each<[json: string, texts: readonly string[]]>([
    ['{"l":[]}', []],
    ['{"l": [ ] }', []],
    ['{"l":[1]}', ["1"]],
    ['{"l":[ 1 , "a,]" ,[2,[3]], {"b":[4]} , null ]}', ["1", '"a,]"', "[2,[3]]", '{"b":[4]}', "null"]],
    ['{"l":"[1]"}', []],
    ['{"l":1}', []],
  ])("of %s are %j", (json, texts) => {
    expect(elementTexts(json, "l")).toEqual(texts);
  });

  it.each(['{"l":[1 2]}', '{"l":[,1]}', '{"l":[1;2]}', '{"l":[*]}'])("throw for %j", (json) => {
    expect(() => elementTexts(json, "l")).toThrow("no JSON object");
  });
});

describe("compactJson()", () => {
  it.each([
    [' [ 1 , "a b" ,\t{ "c" :\r\n1.50 } ] ', '[1,"a b",{"c":1.50}]'],
    ['"\\u0061\\/\\n"', '"a/\\n"'],
    ['["\\u00e9","\\ud83d\\ude00"]', '["\u00c3\u00a9","\u00f0\u009f\u0098\u0080"]'],
    ['"a\\\\" ', '"a\\\\"'],
    ["", ""],
    ["12345678901234567890", "12345678901234567890"],
  ])("of %j is %j", (json, compact) => {
    expect(compactJson(json)).toBe(compact);
  });
});

it.each([
  ['"abc":1', 0, 5, "abc"],
  ['{"a~ !#[]b":1', 1, 11, "a~ !#[]b"],
  ['"\\u0061"', 0, 8, "a"],
  ['"\u00c3\u00a9"', 0, 4, "\u00e9"],
  ['""', 0, 2, ""],
])("nameOf() says of %j from %i to %i: %j", (text, start, end, name) => {
  expect(nameOf(text, start, end)).toBe(name);
});

it("a value ends where its text does", () => {
  for (const value of [
    "1",
    "-1.5e+3",
    "1E9",
    "true",
    "null",
    '"a\\""',
    "[]",
    "{}",
    '[{"a":"]"}]',
    '{"a":["}"]}',
  ])
    for (const rest of ["", ",", "}", "]", " ", "\t,", "\n}"]) {
      expect(skipValue(`x${value}${rest}`, 1), value + rest).toBe(1 + value.length);
    }
  for (const text of ["", ",", "}", " 1", '"a', "[1", '{"a":"}', "*", "~", "@", "`", "{[}"])
    expect(() => skipValue(text, 0), text).toThrow("no JSON object");
  expect(skipSpace(" \t\r\n1 ", 0)).toBe(4);
  expect(skipSpace("1", 0)).toBe(0);
  expect(skipSpace(" ", 0)).toBe(1);
  for (const sign of ["\u0000", "\u000b", "\u000c", "\u001f", "\u0008"])
    expect(() => skipSpace(sign, 0)).toThrow("no JSON object");
  expect(() => skipString("a", 0)).toThrow("no JSON object");
  expect(skipString('x"a"y', 1)).toBe(4);
});
