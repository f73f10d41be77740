import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { printable, printableLines, tryParseJson } from "../src/json.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("tryParseJson()", () => {
  it("says what JSON.parse says", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        expect(tryParseJson(text)).toEqual(JSON.parse(text));
      }),
    );
    for (const text of ["{nonsense", `"${"x".repeat(2_000)}`]) expect(tryParseJson(text)).toBeUndefined();
  });

  it("takes a thousand levels, and no more", () => {
    expect(JSON.stringify(tryParseJson(nested(1_000)))).toHaveLength(2_000);
    expect(tryParseJson(nested(1_001))).toBeUndefined();
    expect(tryParseJson(`${'{"a":'.repeat(1_001)}1${"}".repeat(1_001)}`)).toBeUndefined();
    expect(tryParseJson("[".repeat(5_000_000))).toBeUndefined();
    expect(tryParseJson(`[${"1,".repeat(1_000_000)}${nested(1_000)}]`)).toBeUndefined();
  });

  it("does not count brackets in strings, whatever is escaped in them, nor those side by side", () => {
    const text = JSON.stringify(["[".repeat(5_000), `"${"{".repeat(5_000)}\\`, "\\".repeat(2_001), "x"]);
    expect(tryParseJson(text)).toEqual(JSON.parse(text));
    const wide = `[${"[],".repeat(5_000)}[]]`;
    expect(tryParseJson(wide)).toHaveLength(5_001);
  });
});

describe("printable()", () => {
  it("leaves nothing that moves a cursor, ends a line or turns a direction", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(printable(text)).not.toMatch(/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
      }),
    );
    expect(printable(`\u001b]0;x\u0007${"y".repeat(300)}`)).toMatch(/^\\u001b\]0;x\\u0007y{194}…$/);
  });
});

describe("printableLines()", () => {
  it("keeps lines and tabs, and escapes all else", () => {
    expect(printableLines("a\n\tb\r\u001b[2J\u202ec")).toBe("a\n\tb\\u000d\\u001b[2J\\u202ec");
  });
});
