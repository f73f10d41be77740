import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutNuls } from "../../../src/base/json-text.ts";
import { asciiJson } from "../../../src/protocol/language.ts";

/** Characters that a line of ASCII cannot hold as they are. */
const CHARACTER = fc.constantFrom(...'aé😀\u2028\u0085\u007f\u0000"\\\n');

describe("asciiJson()", () => {
  it("means the same value in ASCII characters only", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: CHARACTER }), (value) => {
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
});

function cleaned(line: string): [text: string, count: number] {
  let count = 0;
  return [withoutNuls(line, () => count++), count];
}

describe("withoutNuls()", () => {
  it("changes the value exactly where it has a NUL", () => {
    const text = fc.string({ unit: fc.constantFrom("\u0000", "\\", "u0000", '"', "a", "\n") });
    fc.assert(
      fc.property(text, (value) => {
        const [line, count] = cleaned(JSON.stringify(value));
        expect(JSON.parse(line)).toBe(value.replaceAll("\u0000", "\ufffd"));
        expect(count).toBe(value.split("\u0000").length - 1);
      }),
    );
  });
});
