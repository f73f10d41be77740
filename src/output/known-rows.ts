import { createHash } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { objectOf, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import type { Lines } from "../sync/event.ts";
import { namesIn, numberOf } from "./folder-state.ts";

export type RowFilter = (lines: Lines) => Lines;

/** The largest number of bytes of rows that a run compares. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Returns a function that removes known rows: rows that are equal to the newest row of their key in the files. A missing
 * file ends the search, because it may have had a newer row of the key. @param newest the number of the newest file
 */
export async function unknownRows(folder: string, stream: string, newest: number): Promise<RowFilter> {
  const key = STREAMS.find(({ name }) => name === stream)?.primaryKey[0] ?? "";
  const keyOf = (line: string): unknown => objectOf(tryParseJson(line))[key];
  const known = new Map<unknown, string>();
  const files = new Map((await namesIn(folder)).map((name) => [numberOf(name), name]));
  let left = MAX_BYTES;
  for (let number = newest; number > 0; number -= 1) {
    const name = files.get(number);
    const text = name?.includes(".jsonl") ? await readRows(join(folder, name), left) : undefined;
    if (text === undefined) break;
    left -= text.length;
    for (const line of text.split("\n").toReversed()) {
      const value = keyOf(line);
      if (typeof value === "string" && !known.has(value)) known.set(value, line);
    }
  }
  const isUnknown = (line: string): boolean => {
    const value = keyOf(line);
    if (known.get(value) === line) return false;
    known.delete(value);
    return true;
  };
  return (lines) => (known.size === 0 ? lines : lines.filter(isUnknown));
}

/** The text of a file of rows; undefined: the file is gone or too large. */
async function readRows(path: string, maxBytes: number): Promise<string | undefined> {
  try {
    if ((await stat(path)).size > maxBytes) return undefined;
    const bytes = await readFile(path);
    const rows = path.endsWith(".gz") ? gunzipSync(bytes, { maxOutputLength: maxBytes }) : bytes;
    return rows.toString("latin1");
  } catch {
    return undefined;
  }
}

/** Whether the newest name in the folder of a stream is a folder with equal bytes. @param paths of files */
export async function isNewestFolder(folder: string, paths: readonly string[]): Promise<boolean> {
  const [newest = ""] = (await namesIn(folder)).toSorted((one, other) => numberOf(other) - numberOf(one));
  if (!newest.startsWith("full-")) return false;
  const names = (await namesIn(join(folder, newest))).sort();
  try {
    return (await digestOf(names.map((name) => join(folder, newest, name)))) === (await digestOf(paths));
  } catch {
    return false;
  }
}

/** The digest of all bytes of files, in the order of the paths. */
async function digestOf(paths: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const path of paths)
    for await (const bytes of (await open(path)).createReadStream()) hash.update(bytes);
  return hash.digest("hex");
}
