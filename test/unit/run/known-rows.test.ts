import { createHash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { holdsFolder, holdsRows } from "../../../src/run/known-rows.ts";
import type { ManifestFile } from "../../../src/run/manifest.ts";
import type { Taken } from "../../../src/run/window-files.ts";
import { tempDir } from "../../support/temp-dir.ts";

const MIB = 1024 * 1024;
const row = (id: string, note: string | number = ""): string => `${JSON.stringify({ id, note })}\n`;

describe("known rows", () => {
  let folder = "";
  const manifest: ManifestFile[] = [];
  beforeEach(async () => {
    folder = await tempDir();
    manifest.length = 0;
  });

  const put = async (file: string, content: string | Buffer): Promise<ManifestFile> => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
    const sha256 = createHash("sha256").update(content).digest("hex");
    const { length } = Buffer.from(content);
    return { file, bytes: length, sha256, rows: 1 };
  };
  const published = async (file: string, content: string | Buffer): Promise<void> => {
    manifest.push(await put(file, content));
  };
  const taken = async (...contents: (string | Buffer)[]): Promise<readonly Taken[]> =>
    Promise.all(
      contents.map(async (content, nth) => {
        const part = `.new-${nth}.part`;
        return { part, files: [await put(`people/${part}`, content)] };
      }),
    );
  const knows = async (...contents: (string | Buffer)[]): Promise<boolean> =>
    holdsRows(folder, manifest, "people", await taken(...contents));

  it("are those of which a folder holds the same as the newest of their key", async () => {
    await published("people/1.jsonl", row("a", 1) + row("b", 1) + row("c", 1));
    await published("people/2.jsonl.gz", gzipSync(row("a", 2) + row("d", 1) + row("d", 2)));
    await published("companies/3.jsonl", row("a", 3));
    expect(await knows(row("b", 1))).toBe(true);
    expect(await knows(row("a", 2) + row("b", 1), row("c", 1))).toBe(true);
    expect(await knows(gzipSync(row("a", 2)))).toBe(true);
    expect(await knows()).toBe(true);
    // An older row of the key, another row, a new key, two rows of a key.
    expect(await knows(row("a", 1))).toBe(false);
    expect(await knows(row("d", 1))).toBe(false);
    expect(await knows(row("b", 2))).toBe(false);
    expect(await knows(row("b", 1) + row("e", 1))).toBe(false);
    expect(await knows(row("b", 1) + row("b", 2))).toBe(false);
    expect(await knows(row("b", 2), row("b", 1))).toBe(false);
    expect(await knows(row("b", 1), row("b", 1))).toBe(true);
    expect(await knows(`${JSON.stringify({ id: 7 })}\n`)).toBe(false);
    expect(await knows("no JSON\n")).toBe(false);
  });

  it("are none in files that were changed or removed, or in a full refresh", async () => {
    await published("people/1.jsonl", row("a"));
    await published("people/2.jsonl", row("b"));
    await writeFile(join(folder, "people/1.jsonl"), row("a") + row("c"));
    expect([await knows(row("b")), await knows(row("a"))]).toEqual([true, false]);
    await rm(join(folder, "people/2.jsonl"));
    expect(await knows(row("b"))).toBe(false);
    await published("people/full-1/1.jsonl", row("a"));
    expect(await knows(row("a"))).toBe(false);
    await published("people/3.jsonl", row("a"));
    expect(await knows(row("a"))).toBe(true);
  });

  it("are looked for where that is quick", async () => {
    await published("people/1.jsonl", row("a"));
    await published("people/2.jsonl", row("b", "x".repeat(16 * MIB - 100)));
    expect(await knows(row("a"))).toBe(true);
    await published("people/3.jsonl", row("c", "x".repeat(100)));
    expect([await knows(row("c", "x".repeat(100))), await knows(row("a"))]).toEqual([true, false]);
    const exact = row("d", "x".repeat(4 * MIB - row("d", "").length));
    await published("people/4.jsonl", exact);
    expect(await knows(exact)).toBe(true);
    expect(await knows(exact, row("c", "x".repeat(100)))).toBe(false);
  });

  it("of a folder that is read from the start are there if all of its files are", async () => {
    const [one, two] = [row("a"), row("b")];
    const holds = async (...contents: string[]): Promise<boolean> =>
      holdsFolder(folder, manifest, "people", await taken(...contents));
    await published("people/full-1/1.jsonl", two);
    expect([await holds(two), await holds(one), await holds()]).toEqual([true, false, false]);
    await published("people/full-2/1.jsonl", one);
    await published("people/full-2/2.jsonl", two);
    await published("companies/full-9/2.jsonl", two);
    expect([await holds(one, two), await holds(two), await holds(two, one), await holds(one)]).toEqual([
      ...[true, false, false, false],
    ]);
    await writeFile(join(folder, "people/full-2/2.jsonl"), `${two}\n`);
    expect(await holds(one, two)).toBe(false);
    await rm(join(folder, "people/full-2/2.jsonl"));
    expect(await holds(one, two)).toBe(false);
    await published("people/3.jsonl", one);
    expect(await holds(one)).toBe(false);
  });
});
