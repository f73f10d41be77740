import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { objectOf, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import type { ManifestFile } from "./manifest.ts";
import type { Taken } from "./window-files.ts";

/** How many bytes of new rows, and how many of the newest files, are worth a look. */
const MOST_NEW = 4 * 1024 * 1024;
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Whether a folder holds the rows of some parts already, each as the newest of its key: whoever reads the folder would learn
 * nothing of them. A file that was moved, changed or removed holds nothing. Neither does a full refresh, whose folder not
 * everyone reads, nor what is older, which a script of docs/erasure.md removes.
 */
export async function holdsRows(
  folder: string,
  manifest: readonly ManifestFile[],
  stream: string,
  taken: readonly Taken[],
): Promise<boolean> {
  const [field = ""] = STREAMS.find(({ name }) => name === stream)?.primaryKey ?? [];
  const keyOf = (line: string): unknown => objectOf(tryParseJson(line))[field];
  const wanted = new Map<unknown, string>();
  const isSmall = taken.reduce((sum, { files: [file] }) => sum + (file?.bytes ?? 0), 0) <= MOST_NEW;
  for (const { part } of isSmall ? taken : []) {
    for (const line of rowsIn(await readFile(join(folder, stream, part)))) {
      const key = keyOf(line);
      if (typeof key !== "string" || (wanted.get(key) ?? line) !== line) return false;
      wanted.set(key, line);
    }
  }
  let left = MOST_BYTES;
  for (const { file, bytes } of filesOf(stream, manifest).toReversed()) {
    if (wanted.size === 0) break;
    if (file.includes("/full-")) return false;
    left -= bytes;
    const content = left < 0 ? undefined : await readFile(join(folder, file)).catch(() => undefined);
    if (content?.length !== bytes) return false;
    for (const line of rowsIn(content).toReversed()) {
      const key = keyOf(line);
      if ((wanted.get(key) ?? line) !== line) return false;
      wanted.delete(key);
    }
  }
  return isSmall && wanted.size === 0;
}

/** Whether the newest folder of a stream, which is read from the start each time, is still there and holds the same bytes. */
export async function holdsFolder(
  folder: string,
  manifest: readonly ManifestFile[],
  stream: string,
  taken: readonly Taken[],
): Promise<boolean> {
  const contents = taken.flatMap(({ files }) => files);
  const all = filesOf(stream, manifest);
  const last = dirname(all.at(-1)?.file ?? "");
  const newest = all.filter(({ file }) => dirname(file) === last);
  if (!last.includes("/full-") || newest.length !== contents.length) return false;
  for (const [nth, { file, bytes, sha256 }] of newest.entries()) {
    const found = await stat(join(folder, file)).catch(() => undefined);
    if (sha256 !== contents[nth]?.sha256 || found?.size !== bytes) return false;
  }
  return true;
}

const filesOf = (stream: string, manifest: readonly ManifestFile[]): readonly ManifestFile[] =>
  manifest.filter(({ file }) => file.startsWith(`${stream}/`));

/** The lines of a file, which is compressed if it begins as such. */
const rowsIn = (content: Buffer): readonly string[] =>
  (content[0] === 0x1f ? gunzipSync(content) : content).toString("latin1").split("\n").slice(0, -1);
