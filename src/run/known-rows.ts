import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { STREAMS } from "../catalog/streams.ts";
import type { PartContent } from "../files/part.ts";
import { objectOf, tryParseJson } from "../json.ts";
import type { ManifestFile } from "./manifest.ts";

/** How many bytes of the newest files are worth a look. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Whether a folder holds these rows already, each as the newest of its key: whoever reads the folder would learn nothing of
 * them. A file that was moved, changed or removed holds nothing, and not everyone reads the folders of full refreshes.
 * @param text lines as they stand in files, one byte a character
 */
export async function holdsRows(
  folder: string,
  manifest: readonly ManifestFile[],
  stream: string,
  text: string,
): Promise<boolean> {
  const [field = ""] = STREAMS.find(({ name }) => name === stream)?.primaryKey ?? [];
  const keyOf = (line: string): unknown => objectOf(tryParseJson(line))[field];
  const wanted = new Map<unknown, string>();
  for (const line of rowsIn(text)) {
    const key = keyOf(line);
    if (typeof key !== "string" || (wanted.get(key) ?? line) !== line) return false;
    wanted.set(key, line);
  }
  let left = MOST_BYTES;
  for (const { file, bytes } of filesOf(stream, manifest).toReversed()) {
    if (wanted.size === 0) break;
    left -= bytes;
    const content = left < 0 ? undefined : await readFile(join(folder, file)).catch(() => undefined);
    if (content?.length !== bytes) return false;
    const lines = rowsIn((file.endsWith(".gz") ? gunzipSync(content) : content).toString("latin1"));
    for (const line of lines.toReversed()) {
      const key = keyOf(line);
      if ((wanted.get(key) ?? line) !== line) return false;
      if (!file.includes("/full-")) wanted.delete(key);
    }
  }
  return wanted.size === 0;
}

/** Whether the newest folder of a stream, which is read from the start each time, is still there and holds the same bytes. */
export async function holdsFolder(
  folder: string,
  manifest: readonly ManifestFile[],
  stream: string,
  contents: readonly PartContent[],
): Promise<boolean> {
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

const rowsIn = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");
