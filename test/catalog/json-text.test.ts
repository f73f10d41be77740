import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RowNotes } from "../../src/api/row-notes.ts";
import { RowParser } from "../../src/api/rows.ts";
import { compactJson, elementTexts } from "../../src/catalog/json-text.ts";
import { fromLatin1, toLatin1 } from "../../src/latin1.ts";

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
