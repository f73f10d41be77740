import { describe, expect, it } from "vitest";
import { readItemFile } from "../../../src/jobs/item-files.ts";
import { file } from "../../support/cli.ts";

async function read(content: string, column = "domain"): Promise<readonly (readonly [string, number])[]> {
  const found: [string, number][] = [];
  await readItemFile(await file("items.csv", content), column, (text, line) => void found.push([text, line]));
  return found;
}

describe("readItemFile()", () => {
  it.each(["a.example\nb.example\n", "a.example\r\nb.example", "\uFEFFa.example\nb.example"])(
    "reads a text of each line of %j, and numbers the lines from 1",
    async (content) => {
      expect(await read(content)).toEqual([
        ["a.example", 1],
        ["b.example", 2],
      ]);
    },
  );

  it.each([
    ["first", "domain,name\na.example,A\nb.example,B\n"],
    ["in the middle", "name,domain,size\nA,a.example,1\nB,b.example,2\n"],
    [
      "last, in quotes, after a byte order mark",
      '\uFEFF"name";"size";" Domain "\n"A;1";1;a.example\n"B ""2""";2;b.example\n',
    ],
    ["between tabs", "name\tDOMAIN\nA\ta.example\nB\tb.example\n"],
  ])("reads the column of a CSV file that is %s", async (_where, content) => {
    expect(await read(content)).toEqual([
      ["a.example", 2],
      ["b.example", 3],
    ]);
  });

  it.each([
    ["company;domain;revenue\nBoss.example, Other.example;a.example;1,5\nB, Inc.\t;b.example;\n"],
    ['domain;company, and its seat\na.example;A, boss.example\nb.example;, "open;\n'],
    ["company, and its seat\tdomain\nA;other.example, boss.example\ta.example\nB\tb.example\n"],
    ["company,domain\nA; other.example,a.example\nB\tother.example,b.example\n"],
  ])("parts cells as the header does beside the column: %j", async (content) => {
    expect(await read(content)).toEqual([
      ["a.example", 2],
      ["b.example", 3],
    ]);
  });

  it("takes a line break within quotes for a part of its cell, and numbers rows by their first lines", async () => {
    const content =
      '"name, and\nalias",domain,notes\nA,a.example,"was\r\n\nother.example, ""boss.example"", 5"" wide"\n"B\nboss.example,x.example",b.example,\n';
    expect(await read(content)).toEqual([
      ["a.example", 3],
      ["b.example", 6],
    ]);
  });

  it("takes a quote inside a cell that does not begin with one for text", async () => {
    expect(await read('domain,size\na.example,5"\nb.example,6 "big"\n')).toEqual([
      ["a.example", 2],
      ["b.example", 3],
    ]);
  });

  it("refuses a cell that nothing closes, and names the line on which its row begins", async () => {
    await expect(read('domain,notes\na.example,x\nb.example,"open\nother.example,y\n')).rejects.toThrow(
      "line 3 begins a cell with a quote that nothing closes. Add the quote, or remove it",
    );
  });

  it("reads a cell of many lines in one go", async () => {
    const notes = 'a ""word""\n'.repeat(50_000);
    expect(await read(`domain,notes\na.example,"${notes}"\nb.example,\n`)).toEqual([
      ["a.example", 2],
      ["b.example", 50_003],
    ]);
  });

  it("gives an empty text for a row that ends before the column", async () => {
    expect(await read("name,domain\nA\n")).toEqual([["", 2]]);
  });

  it("reads lines and characters whole wherever a piece of the file ends", async () => {
    const lines = Array.from({ length: 40_000 }, (_, nth) => `é${nth}.example`);
    const found = await read(`${lines.join("\n")}\n`);
    expect(found.map(([text]) => text)).toEqual(lines);
  });

  it.each([
    ["after empty lines", "\n \r\nname,domain\nA,a.example\n", ["a.example", 4]],
    ["between empty names", ",domain,\nA,a.example,boss.example\n", ["a.example", 2]],
  ])("reads a header %s", async (_where, content, row) => {
    expect(await read(content)).toEqual([row]);
  });

  it.each([
    "name,manager_email\nA,boss@x.example\n",
    '\uFEFF"name";"e-mail"\nA;boss@x.example\n',
    "\n\nname\tmail\nA\tboss@x.example\n",
    "name,\nA,boss@x.example\n",
    "sep=;\nname;email\nA;boss@x.example\n",
    "a@x.example,boss@x.example\n",
  ])("refuses a first line of several cells without the column: %j", async (content) => {
    await expect(read(content, "email")).rejects.toThrow(/line \d .*has no column "email".*Name a column/);
  });

  it("names the file that it cannot read", async () => {
    await expect(readItemFile("/not/there.csv", "domain", () => {})).rejects.toThrow(
      'Cannot read the file of items "/not/there.csv"',
    );
  });
});
