import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compactJson, elementTexts, memberText, memberTexts } from "../../../src/base/json-text.ts";
import { fromLatin1, toLatin1 } from "../../../src/base/text.ts";

describe("an answer of the service, taken apart without a parser", () => {
  it("gives each row as it was written, integers of any size included", () => {
    const spaces = fc.constantFrom("", " ", "\n", "\r\n\t ");
    const row = fc.record({
      id: fc.string({ unit: "grapheme" }),
      big: fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
      other: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 4 }), spaces, (rows, gap) => {
        const texts = rows.map(
          ({ id, big, other }) =>
            `{${gap}"id":${JSON.stringify(id)},"big"${gap}:${big}${gap},"other":[${JSON.stringify(other)}]}`,
        );
        const body = `{"data":"first","pagination":{"data":[1]},${gap}"d\\u0061ta":${gap}[${texts.join(`,${gap}`)}${gap}]}`;
        expect(elementTexts(toLatin1(body), "data").map(fromLatin1)).toEqual(texts);
      }),
      { numRuns: 20 },
    );
  });

  it.each<[json: string, texts: readonly string[]]>([
    ['{"a":1,"b":"x","a":{"a":2}}', ["1", '{"a":2}']],
    ['{"b":"x"}', []],
    [" { } ", []],
    ["[1]", []],
    ['\t{\n"\\u0061" :\r-1.5E+3 , "b":[ {"a":3} ] }', ["-1.5E+3"]],
    ['{"a":[1,"]",{"b":"}"}],"c":null}', ['[1,"]",{"b":"}"}]']],
    ['{"a":"\\"","a":"\\\\"}', ['"\\""', '"\\\\"']],
  ])("%s repeats one name with the values %j: the last one counts", (json, texts) => {
    expect(memberTexts(json, "a")).toEqual(texts);
    expect(memberText(json, "a")).toBe(texts.at(-1));
  });

  it("is an error where it is no JSON", () => {
    for (const json of ['{"a":1', '{"a"', '{"a":}', '{"a":1;"b":2}', '{"a":"', "{a:1}", '{"a":\u00a0}'])
      expect(() => memberTexts(json, "a"), json).toThrow("not a JSON object");
    for (const list of ["[1 2]", "[,1]", "[1;2]", "[*]"])
      expect(() => elementTexts(`{"l":${list}}`, "l"), list).toThrow("not a JSON object");
  });
});

describe("compactJson()", () => {
  it("writes what JSON.stringify writes, and numbers as they are written", () => {
    expect(compactJson(" [ 1.50 , 12345678901234567890 ] ")).toBe("[1.50,12345678901234567890]");
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(compactJson(toLatin1(JSON.stringify(value, null, 2)))).toBe(toLatin1(JSON.stringify(value)));
      }),
      { numRuns: 20 },
    );
  });
});
