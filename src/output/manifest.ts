import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ConfigError } from "../base/errors.ts";
import { isObject, tryParseJson } from "../base/json.ts";
import { plural } from "../base/text.ts";
import type { PartContent } from "./files/part.ts";
import { codeOf, reasonOf } from "./files/reason.ts";
import { replaceFile } from "./files/replace.ts";

/** A published file, as `manifest.json` in the folder of `read --output` names it. */
export type ManifestFile = PartContent & {
  /** Its path in the folder, such as `people/20260122T030405Z-000000001.jsonl`. */
  readonly file: string;
};

export const manifestPath = (folder: string): string => join(folder, "manifest.json");

export function isManifestFile(value: unknown): value is ManifestFile {
  if (!isObject(value)) return false;
  const { file, rows, bytes, sha256 } = value;
  const isNamed = typeof file === "string" && /^[a-z_]+(?:\/[\w-][\w.-]*){1,2}$/.test(file);
  return isNamed && Number.isSafeInteger(rows) && Number.isSafeInteger(bytes) && typeof sha256 === "string";
}

/** What a folder's manifest names, oldest first; nothing where there is none. Throws ConfigError for a damaged one. */
export async function readManifest(folder: string): Promise<readonly ManifestFile[]> {
  const path = manifestPath(folder);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw new ConfigError(`Cannot read the manifest "${path}": ${reasonOf(cause)}`, { cause });
  });
  if (text === undefined) return [];
  const value = tryParseJson(text);
  if (isObject(value) && value["sample"] !== undefined)
    throw new ConfigError(
      `Cannot use the folder "${folder}": it holds a sample of read --limit. Choose another`,
    );
  const files = isObject(value) && value["version"] === 1 ? value["files"] : undefined;
  if (Array.isArray(files) && files.every(isManifestFile)) return files;
  throw new ConfigError(`Cannot use the manifest "${path}": it is not one that this program wrote`);
}

/**
 * Adds files to a folder's manifest, without those that they replace, and returns all of them. A file that is there already is not
 * added again.
 * @param replaced the paths of those that they replace
 * @param sample how many rows of each stream they hold at most; undefined: all
 */
export async function extendManifest(
  folder: string,
  known: readonly ManifestFile[],
  more: readonly ManifestFile[],
  replaced: readonly string[],
  sample: number | undefined,
): Promise<readonly ManifestFile[]> {
  const names = new Set(known.map(({ file }) => file));
  const added = more.filter(({ file }) => !names.has(file));
  const kept = known.filter(({ file }) => !replaced.includes(file));
  if (added.length === 0 && kept.length === known.length) return known;
  const files = [...kept, ...added];
  const lines = files.map((file) => JSON.stringify(file)).join(",\n");
  await replaceFile(
    manifestPath(folder),
    `{"version":1,${sample === undefined ? "" : `"sample":${sample},`}"files":[\n${lines}\n]}\n`,
  );
  return files;
}

/**
 * Checks that the folder of a finished run holds every file that was published in it, byte for byte. Throws ConfigError.
 * @param expected how many files the folder's state knows; undefined: a version without manifests wrote it
 */
export async function checkManifest(folder: string, expected: unknown): Promise<void> {
  const files = await readManifest(folder);
  const refuse = (what: string, why: string): never => {
    const advice =
      "Read this shard again into an empty folder, or name its state.json to merge the state alone";
    throw new ConfigError(`Cannot merge "${folder}": ${what} ${why}. ${advice}`);
  };
  if (typeof expected === "number" && files.length < expected)
    refuse("manifest.json", `names ${files.length} of ${plural(expected, "file")} that the state knows`);
  for (const { file, bytes, sha256 } of files) {
    const path = join(folder, file);
    const found = await stat(path).catch((error: unknown) =>
      refuse(file, `is not there: ${reasonOf(error)}`),
    );
    if (found.size !== bytes) refuse(file, `has ${found.size} bytes instead of ${bytes}`);
    const hash = createHash("sha256");
    await pipeline(createReadStream(path), hash).catch((error: unknown) =>
      refuse(file, `cannot be read: ${reasonOf(error)}`),
    );
    if (hash.digest("hex") !== sha256) refuse(file, "has other content than the run wrote");
  }
}
