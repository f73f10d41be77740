import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  endOfString,
  isDeeperThan,
  isObject,
  kindOf,
  objectOf,
  printable,
  printableLines,
  quoted,
  tryParseJson,
  valueAt,
} from "../../src/json.ts";

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

describe("what is escaped in a message", () => {
  /** The characters of the first plane that a text shows as escapes, as ranges. */
  function escapedBy(show: (text: string) => string): string[] {
    const ranges: [number, number][] = [];
    for (let code = 0; code < 0xd800; code++) {
      const character = String.fromCharCode(code);
      if (!show(`a${character}b`).includes(`a\\u${code.toString(16).padStart(4, "0")}b`)) continue;
      const last = ranges.at(-1);
      if (last?.[1] === code - 1) last[1] = code;
      else ranges.push([code, code]);
    }
    return ranges.map((range) => range.map((code) => code.toString(16)).join("-"));
  }

  it("is what breaks a line, moves the cursor, shows nothing or turns the direction", () => {
    const others = ["ad-ad", "61c-61c", "200b-200f"];
    // JSON has short escapes for a few.
    const controls = ["0-7", "b-b", "e-1f", "7f-9f"];
    expect(escapedBy(quoted)).toEqual([...controls, ...others, "2028-202f", "2060-206f"]);
    expect(escapedBy(printableLines)).toEqual(["0-8", "b-1f", "7f-9f", ...others, "2028-202e", "2060-206f"]);
    for (const show of [quoted, printableLines]) expect(show("a\ufeffb")).toContain("a\\ufeffb");
    expect(quoted('"\n\t\\')).toBe('"\\"\\n\\t\\\\"');
  });

  it("is no more than 200 characters of the text", () => {
    expect(quoted("x".repeat(200))).toBe(`"${"x".repeat(200)}"`);
    expect(quoted("x".repeat(201))).toBe(`"${"x".repeat(200)}…"`);
    expect(printable("x".repeat(201))).toBe(`${"x".repeat(200)}…`);
  });
});

describe("values of JSON", () => {
  it("are of one kind each", () => {
    const values = [null, [], {}, "x", 1, true];
    expect(values.map(kindOf)).toEqual(["null", "array", "object", "string", "number", "boolean"]);
    expect([...values, undefined].filter(isObject)).toEqual([{}]);
    expect([...values, { a: 1 }, undefined].map(objectOf)).toEqual([{}, {}, {}, {}, {}, {}, { a: 1 }, {}]);
  });

  it.each([
    [[], { a: 1 }],
    [["a"], undefined],
    [["a", "b"], undefined],
    [["l", "1", "x"], 7],
    [["l", "2"], undefined],
    [["l", "x"], undefined],
    [["l", "length"], undefined],
    [["s", "0"], undefined],
    [["toString"], undefined],
    [["n", "x"], undefined],
  ])("are found at %j", (path, found) => {
    const value = { l: [0, { x: 7 }], s: "text", n: null };
    expect(valueAt(path.length === 0 ? { a: 1 } : value, path)).toEqual(found);
  });

  it("are as deep as their lists and objects", () => {
    const deep = [0, { a: [[]], b: 1 }];
    expect([0, 1, 2, 3, 4, 5].map((levels) => isDeeperThan(levels, deep))).toEqual([
      ...[true, true, true, true],
      ...[false, false],
    ]);
    for (const flat of [null, "x", 1, undefined]) expect(isDeeperThan(0, flat)).toBe(false);
    expect([isDeeperThan(0, []), isDeeperThan(0, {}), isDeeperThan(1, [])]).toEqual([true, true, false]);
  });
});

describe("endOfString()", () => {
  it.each([
    ['""', 0, 1],
    ['"ab"c"', 0, 3],
    ['x"ab"', 1, 4],
    ['"a\\"b"', 0, 5],
    ['"a\\\\"b"', 0, 4],
    ['"\\\\\\""', 0, 5],
    ['"abc', 0, -1],
    ['"abc\\"', 0, -1],
  ])("of %s from %i is %i", (text, start, end) => expect(endOfString(text, start)).toBe(end));
});
