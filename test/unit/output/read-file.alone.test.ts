import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { beforeEach, describe, expect, it } from "vitest";
import { parseJsonFile, readCatalog, readText, textDecoder } from "../../../src/output/files/read-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "config.json");
});

describe("readText()", () => {
  it("reads what a killed run left of a message, though it ends within a character", async () => {
    await writeFile(path, Buffer.from('{"type":"LOG"}\n{"name":"\u20ac').subarray(0, -1));
    expect(await readText("state", path)).toBe('{"type":"LOG"}\n{"name":"');
  });

  it("does not repeat a config that is given in place of its path", async () => {
    for (const given of ['{"api_key":"hunter2"}', ' \n[ {\n "api_key": "hunter2" } ]']) {
      const error = await readText("config", given).catch((reason: unknown) => reason);
      expect(String(error)).toMatch(/Cannot read the config file: its name is JSON/);
      expect(inspect(error)).not.toContain("hunter2");
    }
  });
});

it("textDecoder() decodes pieces that end within characters, and counts their lines", () => {
  const bytes = Buffer.from("\uFEFFa\u00fc\n\u20ac\u{1F600}\n\uFFFD\0");
  const decode = textDecoder('table "t.csv"');
  const pieces = [...bytes].map((byte) => decode(Buffer.of(byte)));
  expect(pieces.join("") + decode()).toBe("a\u00fc\n\u20ac\u{1F600}\n\uFFFD\0");
  expect(() => decode(Buffer.from("\n\xff\n", "latin1"))).toThrow(
    'Cannot read the table "t.csv": line 4 is not UTF-8',
  );
});

it.each([
  ['{\n  "streams": []\n}', { streams: [] }],
  ['{"type": "CATALOG","a":1}\n{"type":"CATALOG","a":2}', { type: "CATALOG", a: 1 }],
  ['{"type":"LOG"}\r\n \t{"type":\t"CATALOG"}\r\n{"type":"LOG"}', { type: "CATALOG" }],
  ['{"streams":[\n{"x":{"type":"CATALOG"}}]}', { streams: [{ x: { type: "CATALOG" } }] }],
])("readCatalog() takes %j for %j", async (text, catalog) => {
  await writeFile(path, text);
  expect(await readCatalog(path)).toEqual(catalog);
  await writeFile(path, "{\n  oops");
  await expect(readCatalog(path)).rejects.toThrow("it is not JSON, see line 2, column 3");
});

describe("parseJsonFile() of what is no JSON", () => {
  it.each([
    ["{", 1, 2],
    ['"a\nb"', 1, 3],
    ["\n\n  # no", 3, 3],
    ['{"a":1 "b":2}', 1, 8],
  ])("names the place in %j and quotes nothing: line %i, column %i", (text, line, column) => {
    expect(() => parseJsonFile("config", "c.json", text)).toThrow(
      `Cannot use the config file "c.json": it is not JSON, see line ${line}, column ${column}`,
    );
  });
});
