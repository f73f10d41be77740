import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { ConfigError, ConnectorError, OutputError } from "../base/errors.ts";
import { isObject, tryParseJson } from "../base/json.ts";
import { plural, toLatin1 } from "../base/text.ts";
import { instant } from "../base/time.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";
import { textLines } from "../output/files/csv.ts";
import { Part, type PartContent } from "../output/files/part.ts";
import { reasonOf } from "../output/files/reason.ts";
import { syncFolder } from "../output/files/replace.ts";
import {
  type FolderFiles,
  fileName,
  newPartName,
  publishAll,
  recover,
  startName,
  visibleFiles,
} from "../output/folder-state.ts";
import { StateFile } from "../output/state-file.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";

export type CompactOptions = {
  /** Of `read --output`. */
  readonly folder: string;
  /** Keeps only the newest row of each key; otherwise rows of one key and cursor are one. */
  readonly newest: boolean;
};

/**
 * Makes one file of all that a stream has in a folder, as one commit, which the next run finishes if this one is killed.
 * Throws ConfigError, OutputError, and TransientError while another run uses the folder.
 */
export async function compactOutput(options: CompactOptions, runtime: Runtime): Promise<number> {
  const { folder } = options;
  const path = join(folder, "state.json");
  if (!existsSync(path))
    throw new ConfigError(`Cannot compact "${folder}": it has no state.json, so no read --output wrote it`);
  const state = await StateFile.open(path, runtime);
  try {
    let files = await recover(folder, state.saved.rest["output"]);
    for (const spec of STREAMS) {
      const names = await visibleFiles(folder, spec.name);
      const merged = await mergedPart(options, spec, names, runtime);
      if (merged === undefined) continue;
      const { name, ...now } = await replaceFiles(folder, spec.name, names, merged, files, state);
      files = now;
      const before = `${plural(names.length, "file")} with ${plural(merged.rows, "row")}`;
      const after = `${name} with ${plural(merged.content.rows, "row")}`;
      await write(runtime.stdout, toLatin1(`${spec.name}: ${before} became ${after}\n`));
    }
    return 0;
  } catch (cause) {
    runtime.signal.throwIfAborted();
    if (cause instanceof ConnectorError) throw cause;
    throw new OutputError(`Cannot compact "${folder}": ${reasonOf(cause)}`, { cause });
  } finally {
    await state.release();
  }
}

/** Puts a finished part in the place of some files of a stream. Throws OutputError, and the system's errors as they are. */
export async function replaceFiles(
  folder: string,
  stream: string,
  names: readonly string[],
  { part, content, ...form }: Merged,
  { numbers: last, manifest: known }: FolderFiles,
  state: StateFile,
): Promise<FolderFiles & { readonly name: string }> {
  const number = (last.get(stream) ?? 0) + 1;
  const numbers = new Map(last).set(stream, number);
  const name = fileName(form, number);
  const files = [{ file: `${stream}/${name}`, ...content }];
  const pending = [{ stream, part: basename(part.path), name, files, replaces: names }];
  const left = known.filter(({ file }) => !names.some((old) => file === `${stream}/${old}`));
  let isCovered = false;
  try {
    await syncFolder(join(folder, stream));
    const output = { numbers: Object.fromEntries(numbers), pending, files: left.length + 1 };
    await state.replace({ output }, () => {
      isCovered = true;
    });
  } finally {
    // Once the new state may have taken effect, the next run decides by the state that it finds.
    if (!isCovered) await part.discard();
  }
  const manifest = await publishAll(folder, pending, known);
  await syncFolder(join(folder, stream));
  return { numbers, manifest, name };
}

/** A finished part, and how many rows the files in whose place it comes had. */
type Merged = { readonly part: Part; readonly content: PartContent; readonly rows: number } & Name;
type Name = Parameters<typeof fileName>[0];

/** What is worth a place instead of the files: a finished part; undefined: nothing to merge. */
async function mergedPart(
  { folder, newest }: CompactOptions,
  spec: StreamSpec,
  names: readonly string[],
  { clock, signal }: Runtime,
): Promise<Merged | undefined> {
  const paths = names.map((name) => join(folder, spec.name, name));
  const { rows, dropped } = await superseded(paths, spec, newest, signal);
  if (names.length < 2 && dropped.size === 0) return undefined;
  const start = startName(clock.now());
  const gzip = names.at(-1)?.endsWith(".gz") === true;
  const part = new Part(join(folder, spec.name, newPartName(start)), gzip);
  try {
    let row = 0;
    for (const path of paths) {
      for await (const lines of textLines(path, "latin1")) {
        signal.throwIfAborted();
        const kept = lines.filter(() => !dropped.has(row++));
        await part.append(kept.map((line) => `${line}\n`).join(""), kept.length);
      }
    }
    return { part, content: await part.seal(), rows, start, gzip };
  } catch (error) {
    await part.discard();
    throw error;
  }
}

/** The rows, numbered over all files, in whose place a newer row of the same files stands. */
async function superseded(
  paths: readonly string[],
  { primaryKey, cursorField }: StreamSpec,
  newest: boolean,
  signal: AbortSignal,
): Promise<{ readonly rows: number; readonly dropped: ReadonlySet<number> }> {
  const best = new Map<string, readonly [at: number, row: number]>();
  const dropped = new Set<number>();
  let rows = 0;
  for (const path of paths) {
    for await (const lines of textLines(path)) {
      signal.throwIfAborted();
      for (const line of lines) {
        const value = tryParseJson(line);
        if (!isObject(value))
          throw new ConfigError(`Cannot compact "${path}": it has a line that is no JSON object`);
        const row = rows++;
        const keys = primaryKey.map((field) => value[field] ?? null);
        if (keys.includes(null)) continue;
        const cursor = cursorField === null ? null : (value[cursorField] ?? null);
        const at = instant(String(cursor)) || Number.NEGATIVE_INFINITY;
        const key = JSON.stringify(newest ? keys : [...keys, cursor]);
        const [bestAt, bestRow] = best.get(key) ?? [at, row];
        if (bestRow !== row) dropped.add(at < bestAt ? row : bestRow);
        if (at >= bestAt) best.set(key, [at, row]);
      }
    }
  }
  return { rows, dropped };
}
