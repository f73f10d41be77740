import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asciiJson, splice } from "../../../src/protocol/language.ts";

describe("asciiJson()", () => {
  it("means the same value in ASCII characters only", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const text = asciiJson(value);
        expect(text).toMatch(/^[\x20-\x7e]*$/);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("replaces lone surrogates, and only those", () => {
    expect(JSON.parse(asciiJson("a\ud800b\udc00"))).toBe("a\ufffdb\ufffd");
    expect(JSON.parse(asciiJson("\ud83d\ude00"))).toBe("\ud83d\ude00");
    expect(JSON.parse(asciiJson("\\ud800 \\\ud800"))).toBe("\\ud800 \\\ufffd");
  });

  it("indents when asked", () => {
    expect(asciiJson({ a: "é" }, 2)).toBe('{\n  "a": "\\u00e9"\n}');
  });
});

describe("splice()", () => {
  it("puts head and tail around each line", () => {
    expect(splice("<", ">", ["a", "b"])).toBe("<a><b>");
    expect(splice("<", ">", [])).toBe("");
  });
});
