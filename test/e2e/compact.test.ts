import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { CONNECTOR, run } from "../support/cli.ts";
import { tempDir } from "../support/temp-dir.ts";

type Row = Readonly<Record<string, unknown>>;

const nameOf = (nth: number, end = ""): string => `20260101T00000${nth}Z-00000000${nth}.jsonl${end}`;

/** Compacts a folder that holds files of one stream. Returns what it says and what the folder holds then. */
async function compacted(
  stream: string,
  files: readonly (readonly (Row | string)[])[],
  {
    words = [],
    gzip = [],
    numbers = {},
  }: { words?: readonly string[]; gzip?: readonly number[]; numbers?: object } = {},
) {
  const folder = await tempDir();
  const inner = join(folder, stream);
  mkdirSync(inner);
  for (const [nth, rows] of files.entries()) {
    const text = rows.map((row) => `${typeof row === "string" ? row : JSON.stringify(row)}\n`).join("");
    if (gzip.includes(nth)) writeFileSync(join(inner, nameOf(nth + 1, ".gz")), gzipSync(text));
    else writeFileSync(join(inner, nameOf(nth + 1)), text);
  }
  const state = join(folder, "state.json");
  writeFileSync(state, JSON.stringify({ bookmarks: {}, output: { numbers, pending: [] } }));
  const { code, stdout, stderr } = await run(CONNECTOR, ["output", "compact", ...words, folder]);
  const names = readdirSync(inner).sort();
  const texts = names.map((name) => readFileSync(join(inner, name)));
  const rows = texts.map((bytes, nth) =>
    (names[nth]?.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8"),
  );
  const { output } = JSON.parse(readFileSync(state, "utf8"));
  const said = stdout.replaceAll(/\d{8}T\d{6}Z/g, "TIME");
  return {
    code,
    said,
    stderr,
    names: names.map((name) => name.replace(/^\d+T\d+Z/, "")),
    rows,
    output,
    folder,
  };
}

const at = (id: unknown, day: string | null | undefined, nth: number): Row => ({
  id,
  discoveredAt: day,
  nth,
});
const [OLD, NEW] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];

describe("output compact", () => {
  it.each<[what: string, rows: readonly Row[], kept: readonly number[], newest: readonly number[]]>([
    [
      "of one key and date is the last of them",
      [at("a", OLD, 0), at("b", OLD, 1), at("a", OLD, 2)],
      [1, 2],
      [1, 2],
    ],
    ["of one key is the newest, which comes last", [at("a", OLD, 0), at("a", NEW, 1)], [0, 1], [1]],
    ["of one key is the newest, which comes first", [at("a", NEW, 0), at("a", OLD, 1)], [0, 1], [0]],
    ["has a date before one that has none", [at("a", OLD, 0), at("a", null, 1)], [0, 1], [0]],
    ["has a date behind one that has none", [at("a", undefined, 0), at("a", OLD, 1)], [0, 1], [1]],
    ["without a date is the last of them", [at("a", null, 0), at("a", undefined, 1)], [1], [1]],
    ["spells its date otherwise", [at("a", OLD, 0), at("a", "2026-01-01T00:00:00.000Z", 1)], [0, 1], [1]],
    ["is the newest of three", [at("a", OLD, 0), at("a", NEW, 1), at("a", OLD, 2)], [1, 2], [1]],
    ["has no key", [at(null, OLD, 0), at(undefined, OLD, 1), at(null, OLD, 2)], [0, 1, 2], [0, 1, 2]],
    ["has a number for a key", [at(1, OLD, 0), at("1", OLD, 1), at(1, OLD, 2)], [1, 2], [1, 2]],
  ])("keeps a row that %s", async (_what, rows, kept, newest) => {
    for (const [words, expected] of [
      [[], kept],
      [["--newest"], newest],
    ] as const) {
      // The rows of one file, and each in a file of its own.
      const one = await compacted("people", [rows], { words });
      const each = await compacted(
        "people",
        rows.map((row) => [row]),
        { words },
      );
      const text = expected.map((nth) => `${JSON.stringify(rows[nth])}\n`).join("");
      expect([words, one.rows, each.rows]).toEqual([words, [text], [text]]);
      const [all, left] = [rows.length, expected.length].map((count) =>
        count === 1 ? "1 row" : `${count} rows`,
      );
      const isSame = rows.length === expected.length;
      expect(one.said).toBe(
        isSame ? "" : `people: 1 file with ${all} became TIME-000000002.jsonl with ${left}\n`,
      );
      expect(each.said).toBe(
        `people: ${rows.length} files with ${all} became TIME-00000000${rows.length + 1}.jsonl with ${left}\n`,
      );
    }
  });

  it("tells rows apart by all fields of their key, and by it alone where a stream has no date", async () => {
    const checks = ["a b", "a c", "a b"].map((pair) => ({ email: pair[0], source: pair[2] }));
    expect((await compacted("email_checks", [checks])).rows[0]?.split("\n")).toHaveLength(3);
    const sources = [{ slug: "a", nth: 0 }, { slug: "b" }, { slug: "a", nth: 2 }];
    for (const words of [[], ["--newest"]])
      expect((await compacted("sources", [sources], { words })).rows).toEqual([
        '{"slug":"b"}\n{"slug":"a","nth":2}\n',
      ]);
  });

  it.each<[gzip: readonly number[], end: string]>([
    [[], ""],
    [[0], ""],
    [[1], ".gz"],
    [[0, 1], ".gz"],
  ])(
    "is compressed as the last file is (%j), has the next number, and the bytes as they were",
    async (gzip, end) => {
      const lines = ['{"id": "\u00e9", "n":12345678901234567890}', '{"id":"b"}'];
      const { code, names, rows, output, folder } = await compacted(
        "people",
        lines.map((line) => [line]),
        {
          ...{ gzip, numbers: { people: 7, sources: 3 } },
        },
      );
      expect([code, names, rows]).toEqual([0, [`-000000008.jsonl${end}`], [`${lines.join("\n")}\n`]]);
      expect(output).toMatchObject({ numbers: { people: 8, sources: 3 } });
      const { files } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
      expect(files).toMatchObject([{ file: expect.stringMatching(/^people\/\d+T\d+Z-000000008/), rows: 2 }]);
    },
  );

  it.each(["[1]", "{", "null", ""])("leaves all files as they were for the line %j", async (line) => {
    const { code, said, stderr, names, folder } = await compacted("people", [
      [at("a", OLD, 0)],
      [line, at("b", OLD, 1)],
    ]);
    expect([code, said, names]).toEqual([1, "", ["-000000001.jsonl", "-000000002.jsonl"]]);
    const path = join(folder, "people", nameOf(2));
    expect(stderr).toBe(`Cannot compact "${path}": it has a line that is no JSON object\n`);
    expect(readdirSync(folder).sort()).toEqual(["people", "state.json"]);
  });
});
