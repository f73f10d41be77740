import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { cellsOf, textLines } from "../../../src/output/files/csv.ts";
import { tempDir } from "../../support/temp-dir.ts";

describe("cellsOf()", () => {
  it.each([
    ["a,b;c\td", ["a", "b", "c", "d"]],
    [",,", ["", "", ""]],
    [' "a" , "b,c" ;"d""e"', ["a", "b,c", 'd"e']],
    ['"a\tb;c,d",e', ["a\tb;c,d", "e"]],
    ["a b , c", ["a b ", " c"]],
    ['a"b"c,d', ['a"b"c', "d"]],
    ['a\t\t"b"', ["a", "", "b"]],
    ['\t"b;c"', ["", "b;c"]],
  ])("of %j are %j", (line, cells) => {
    expect(cellsOf(line)).toEqual(cells);
  });
});

describe("textLines()", () => {
  it.each(["list.csv", "list.csv.gz"])("reads each line of %s, whatever ends it", async (name) => {
    const path = join(await tempDir(), name);
    const linesOf = async (text: string, encoding?: BufferEncoding): Promise<readonly string[]> => {
      const bytes = Buffer.from(text, "utf8");
      writeFileSync(path, name.endsWith(".gz") ? gzipSync(bytes) : bytes);
      const lines: string[] = [];
      for await (const some of textLines(path, encoding)) lines.push(...some);
      return lines;
    };
    expect(await linesOf("a\r\nb\n\nc")).toEqual(["a", "b", "", "c"]);
    expect(await linesOf("a\rb\n")).toEqual(["a\rb"]);
    expect(await linesOf("")).toEqual([]);
    expect(await linesOf("\n")).toEqual([""]);
    expect(await linesOf("\u00e9\n", "latin1")).toEqual(["\u00c3\u00a9"]);
    const many = Array.from({ length: 30_000 }, (_, nth) => `line \u00e9 ${nth}`);
    expect(await linesOf(many.join("\n"))).toEqual(many);
  });
});
