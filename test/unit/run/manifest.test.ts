import { createHash } from "node:crypto";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  checkManifest,
  extendManifest,
  isManifestFile,
  manifestPath,
  readManifest,
} from "../../../src/run/manifest.ts";
import { tempDir } from "../../support/temp-dir.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const entry = (name: string, text = "{}\n") => ({
  ...{ file: `people/${name}`, rows: text.split("\n").length - 1 },
  ...{ bytes: text.length, sha256: sha256(text) },
});
const [ONE, TWO, THREE] = ["1.jsonl", "2.jsonl", "3.jsonl"].map((name) => entry(name)) as [
  ReturnType<typeof entry>,
  ReturnType<typeof entry>,
  ReturnType<typeof entry>,
];

describe("isManifestFile()", () => {
  it.each([
    ["people/20260122T030405Z-000000001.jsonl", true],
    ["company_lookups/full-000000009/20260122T030405Z-000000010.jsonl.gz", true],
    ["people/_a", true],
    ["/etc/passwd", false],
    ["people", false],
    ["people/", false],
    ["people/../x", false],
    ["people/.hidden", false],
    ["people/a/b/c", false],
    ["people/a/.b", false],
    ["People/a", false],
    ["../people/a", false],
    ["people/a b", false],
    ["people/a\n", false],
  ])("a file named %j: %s", (file, isOne) => {
    expect(isManifestFile({ ...ONE, file })).toBe(isOne);
  });

  it.each([
    null,
    [],
    "x",
    { ...ONE, file: 1 },
    { ...ONE, rows: 0.5 },
    { ...ONE, bytes: "1" },
    { ...ONE, sha256: 1 },
  ])("no file: %j", (value) => expect(isManifestFile(value)).toBe(false));
});

describe("readManifest()", () => {
  const reading = async (text: string) => {
    const folder = await tempDir();
    await writeFile(manifestPath(folder), text);
    return readManifest(folder);
  };

  it("is nothing where there is none, and every file in its order where there is one", async () => {
    expect(await readManifest(await tempDir())).toEqual([]);
    expect(await reading(JSON.stringify({ version: 1, files: [TWO, ONE] }))).toEqual([TWO, ONE]);
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["another version", JSON.stringify({ version: 2, files: [ONE] })],
    ["no list", JSON.stringify({ version: 1, files: {} })],
    ["an entry of another form", JSON.stringify({ version: 1, files: [ONE, { ...ONE, rows: null }] })],
  ])("refuses %s", async (_, text) => {
    await expect(reading(text)).rejects.toThrow(
      /^Cannot use the manifest ".*manifest\.json": it is not one that this program wrote$/,
    );
  });

  it("refuses a sample, and says why it cannot read one that is a folder", async () => {
    await expect(reading(JSON.stringify({ version: 1, sample: 5, files: [ONE] }))).rejects.toThrow(
      /^Cannot use the folder ".*": it holds a sample of read --limit\. Choose another$/,
    );
    const folder = await tempDir();
    await mkdir(manifestPath(folder));
    await expect(readManifest(folder)).rejects.toThrow(
      /^Cannot read the manifest ".*manifest\.json": it is a folder$/,
    );
  });
});

describe("extendManifest()", () => {
  const textOf = async (folder: string) => await readFile(manifestPath(folder), "utf8");

  it("adds what is new behind what stays, one a line, and takes out what is replaced", async () => {
    const folder = await tempDir();
    const files = await extendManifest(folder, [ONE, TWO], [TWO, THREE], [ONE.file], undefined);
    expect(files).toEqual([TWO, THREE]);
    const lines = [TWO, THREE].map((file) => JSON.stringify(file)).join(",\n");
    expect(await textOf(folder)).toBe(`{"version":1,"files":[\n${lines}\n]}\n`);
    expect(await readManifest(folder)).toEqual([TWO, THREE]);
  });

  it.each([
    ["nothing is new", [ONE, TWO], [TWO], [], false],
    ["what is replaced is not there", [ONE], [], [TWO.file], false],
    ["one is replaced by nothing", [ONE, TWO], [], [TWO.file], true],
    ["one is new", [ONE], [TWO], [], true],
  ] as const)("writes only what differs: %s", async (_, known, more, replaced, isWritten) => {
    const folder = await tempDir();
    const files = await extendManifest(folder, known, more, replaced, undefined);
    expect(files === known).toBe(!isWritten);
    expect(
      await textOf(folder).then(
        () => true,
        () => false,
      ),
    ).toBe(isWritten);
  });

  it("says of a sample how many rows it holds at most", async () => {
    const folder = await tempDir();
    await extendManifest(folder, [], [ONE], [], 7);
    expect(JSON.parse(await textOf(folder))).toEqual({ version: 1, sample: 7, files: [ONE] });
  });
});

describe("checkManifest()", () => {
  /** A folder with two files of a manifest, as a finished run leaves it, and one of them changed. */
  const folderWith = async (text: string | undefined): Promise<string> => {
    const folder = await tempDir();
    await mkdir(join(folder, "people"));
    await writeFile(join(folder, ONE.file), "{}\n");
    if (text !== undefined) await writeFile(join(folder, TWO.file), text);
    await writeFile(manifestPath(folder), JSON.stringify({ version: 1, files: [ONE, TWO] }));
    return folder;
  };
  const ADVICE =
    "Read this shard again into an empty folder, or name its state.json to merge the state alone";

  it.each([undefined, 0, 1, 2, "3"])(
    "passes a folder that holds all of them, where %j are known",
    async (known) => {
      await expect(checkManifest(await folderWith("{}\n"), known)).resolves.toBeUndefined();
    },
  );

  it.each([
    ["that is shorter", "{}", `${TWO.file} has 2 bytes instead of 3. ${ADVICE}`],
    ["that is longer", "{}\n\n", `${TWO.file} has 4 bytes instead of 3. ${ADVICE}`],
    ["with other bytes", "[]\n", `${TWO.file} has other content than the run wrote. ${ADVICE}`],
    ["that is gone", undefined, `${TWO.file} is not there: there is no such file or folder. ${ADVICE}`],
  ])("refuses a file %s", async (_, text, why) => {
    const folder = await folderWith(text);
    await expect(checkManifest(folder, 2)).rejects.toThrow(`Cannot merge "${folder}": ${why}`);
  });

  it("refuses a file that cannot be read", async () => {
    const folder = await folderWith(undefined);
    await mkdir(join(folder, TWO.file));
    const { size: bytes } = await stat(join(folder, TWO.file));
    await writeFile(manifestPath(folder), JSON.stringify({ version: 1, files: [{ ...TWO, bytes }] }));
    await expect(checkManifest(folder, 1)).rejects.toThrow(
      `Cannot merge "${folder}": ${TWO.file} cannot be read: it is a folder. ${ADVICE}`,
    );
  });

  it("refuses a manifest that names fewer files than the state knows", async () => {
    const folder = await folderWith("{}\n");
    await expect(checkManifest(folder, 3)).rejects.toThrow(
      `Cannot merge "${folder}": manifest.json names 2 of 3 files that the state knows. ${ADVICE}`,
    );
  });
});
