import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { printable, printableLines, quoted, tryParseJson, valueAt } from "../../../src/base/json.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

describe("JSON of a stranger", () => {
  it("says what JSON.parse says", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        expect(tryParseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each<[what: string, text: string]>([
    ["that is none", "{nonsense"],
    ["with a text that does not end", `"${"x".repeat(2_000)}`],
    ["of 1,001 lists", nested(1_001)],
    ["of 1,001 objects", `${'{"a":'.repeat(1_001)}1${"}".repeat(1_001)}`],
    ["of five million levels", "[".repeat(5_000_000)],
    ["that is deep behind two million characters", `[${"1,".repeat(1_000_000)}${nested(1_000)}]`],
  ])("%s is undefined, and does not end the process", (_, text) => {
    expect(tryParseJson(text)).toBeUndefined();
  });

  it("may have a thousand levels, and any brackets in strings or side by side", () => {
    expect(JSON.stringify(tryParseJson(nested(1_000)))).toHaveLength(2_000);
    const text = JSON.stringify(["[".repeat(5_000), `"${"{".repeat(5_000)}\\`, "\\".repeat(2_001)]);
    expect(tryParseJson(text)).toEqual(JSON.parse(text));
    expect(tryParseJson(`[${"[],".repeat(5_000)}[]]`)).toHaveLength(5_001);
  });

  it.each<[path: readonly string[], found: unknown]>([
    [["l", "1", "x"], 7],
    [["l", "length"], undefined],
    [["toString"], undefined],
    [["n", "x"], undefined],
  ])("has at %j what it says itself: %j", (path, found) => {
    expect(valueAt({ l: [0, { x: 7 }], s: "text", n: null }, path)).toEqual(found);
  });
});

describe("a text of a stranger in a message", () => {
  const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u;

  it("has no control characters and no marks of direction", () => {
    const codes = Array.from({ length: 0xd800 }, (_, code) => code).concat(0xfeff);
    const text = codes.map((code) => String.fromCharCode(code));
    const shown = [text.map(quoted), text.map((one) => printable(one)), text.map(printableLines)];
    for (const [nth, lines] of shown.entries())
      expect(lines.filter((line) => UNSEEN.test(nth === 2 ? line.replace(/[\n\t]/, "") : line))).toEqual([]);
    expect(printableLines("a\n\tb\r\u001b[2J\u202ec")).toBe("a\n\tb\\u000d\\u001b[2J\\u202ec");
    expect(quoted("é😀 漢")).toBe('"é😀 漢"');
  });

  it("has at most 200 characters", () => {
    expect(quoted("x".repeat(200))).toBe(`"${"x".repeat(200)}"`);
    expect([quoted, printable].map((show) => show("x".repeat(201)).replace(/"/g, ""))).toEqual([
      ...[`${"x".repeat(200)}…`, `${"x".repeat(200)}…`],
    ]);
  });
});
