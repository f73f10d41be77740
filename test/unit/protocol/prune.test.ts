import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutNuls } from "../../../src/protocol/prune.ts";

function cleaned(line: string): [text: string, count: number] {
  let count = 0;
  return [withoutNuls(line, () => count++), count];
}

describe("withoutNuls()", () => {
  it("replaces escaped NULs and no escaped backslash before u0000", () => {
    expect(cleaned('{"a":"x\\u0000\\u0000"}')).toEqual(['{"a":"x\\ufffd\\ufffd"}', 2]);
    expect(cleaned('{"a":"\\\\u0000"}')).toEqual(['{"a":"\\\\u0000"}', 0]);
    expect(cleaned('{"a":"\\\\\\u0000"}')).toEqual(['{"a":"\\\\\\ufffd"}', 1]);
  });

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
