import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ConfigError } from "../../../src/errors.ts";
import { readCatalog, readJson, readText } from "../../../src/files/read.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** What the system says of every file instead of its text. */
const system = vi.hoisted(() => ({ refusal: undefined as string | undefined }));
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const readFile = async (...args: Parameters<typeof real.readFile>) => {
    if (system.refusal !== undefined) throw Object.assign(new Error(), { code: system.refusal });
    return real.readFile(...args);
  };
  return { ...real, readFile };
});

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await tempDir();
  path = join(folder, "config.json");
  system.refusal = undefined;
});

describe("readText()", () => {
  it("follows links and drops a byte order mark", async () => {
    await writeFile(path, "\uFEFFhello");
    await symlink(path, join(folder, "link"));
    expect(await readText("config", join(folder, "link"))).toBe("hello");
  });

  it("says why a file cannot be read", async () => {
    await expect(readText("config", path)).rejects.toThrow(
      `Cannot read the config file "${path}": there is none`,
    );
    await expect(readText("state", folder)).rejects.toThrow("it is a folder");
  });

  it("repeats nothing of a config that stands where its path should", async () => {
    for (const given of ['{"api_key":"hunter2"}', ' \n[ {\n "api_key": "hunter2" } ]']) {
      const error = await readText("config", given).catch((reason: unknown) => reason);
      expect(String(error)).toMatch(/Cannot read the config file: .* not a path, but JSON/);
      expect(inspect(error)).not.toContain("hunter2");
    }
  });
});

describe("readCatalog()", () => {
  it("takes a catalog, and the CATALOG among the messages that discover printed", async () => {
    const catalog = { type: "CATALOG", catalog: { streams: [] } };
    await writeFile(path, JSON.stringify({ streams: [] }, null, 2));
    expect(await readCatalog(path)).toEqual({ streams: [] });
    const log = '{"type":"LOG","log":{"level":"WARN","message":"unusable"}}';
    await writeFile(path, `${log}\n${JSON.stringify(catalog)}\n`);
    expect(await readCatalog(path)).toEqual(catalog);
    await writeFile(path, "{\n  oops");
    await expect(readCatalog(path)).rejects.toThrow("it is not JSON, see line 2, column 3");
  });
});

it.each([
  ['{"type": "CATALOG","a":1}\n{"type":"CATALOG","a":2}', { type: "CATALOG", a: 1 }],
  ['{"type":"LOG"}\r\n \t{"type":\t"CATALOG"}\r\n{"type":"LOG"}', { type: "CATALOG" }],
  ['{"streams":[\n{"x":{"type":"CATALOG"}}]}', { streams: [{ x: { type: "CATALOG" } }] }],
  ['{"x":1,"type":"CATALOG"}', { x: 1, type: "CATALOG" }],
])("readCatalog() takes %j for %j", async (text, catalog) => {
  await writeFile(path, text);
  expect(await readCatalog(path)).toEqual(catalog);
});

it.each([
  ["EACCES", 'permission denied. Run as its owner ("docker run --user")'],
  ["ENOENT", "there is none"],
  ["EIO", "the disk reports an error"],
])("readText() says of %s who can do what", async (refusal, said) => {
  system.refusal = refusal;
  const error = await readText("state", path).catch((reason: unknown) => reason);
  expect((error as Error).message).toBe(`Cannot read the state file "${path}": ${said}`);
  expect(error).toBeInstanceOf(ConfigError);
});

it("readText() says of UTF-16, which PowerShell writes, what to save it as", async () => {
  await writeFile(path, Buffer.from('\uFEFF{"api_key": "x"}', "utf16le"));
  await expect(readText("config", path)).rejects.toThrow(
    `Cannot read the config file "${path}": it is UTF-16, which PowerShell's ">" writes. Save it as UTF-8`,
  );
});

it("readText() drops no byte order mark within a text", async () => {
  await writeFile(path, "a\uFEFFb\uFEFF");
  expect(await readText("config", path)).toBe("a\uFEFFb\uFEFF");
});

describe("readJson()", () => {
  it("names file, line and column of what is no JSON, and quotes nothing of it", async () => {
    await writeFile(path, '{\n  "api_key": "s3cret",\n  "base_url" "x"\n}');
    await expect(readJson("config", path)).rejects.toThrow(
      `Cannot use the config file "${path}": it is not JSON, see line 3, column 14`,
    );
    await writeFile(path, " \n");
    await expect(readJson("config", path)).rejects.toThrow("it is empty");
  });
});

describe("readJson() of what is no JSON", () => {
  it.each([
    ["{", 1, 2],
    ['{"a":1,}', 1, 8],
    ["[1,]", 1, 4],
    ["[1}", 1, 3],
    ['{"a":tru}', 1, 9],
    ["[nul", 1, 5],
    ["nil", 1, 2],
    ["01", 1, 2],
    ["-x", 1, 2],
    ['"a\nb"', 1, 3],
    ['"\\x"', 1, 2],
    ['["a\\u12', 1, 4],
    ["{'a':1}", 1, 2],
    ["{a:1}", 1, 2],
    ["\n\n  # no", 3, 3],
    ["{} {}", 1, 4],
    ['{"a":1 "b":2}', 1, 8],
    ["]", 1, 1],
    ["[1 2", 1, 4],
  ])("names the place in %j: line %i, column %i", async (text, line, column) => {
    await writeFile(path, text);
    const place = `it is not JSON, see line ${line}, column ${column}`;
    await expect(readJson("config", path)).rejects.toThrow(place);
  });
});
