import type { FileHandle } from "node:fs/promises";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { objectOf, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import type { Lines } from "../sync/event.ts";
import { namesIn, numberOf } from "./folder-state.ts";

/** How many bytes of rows are compared. */
const MAX_BYTES = 16 * 1024 * 1024;
/** How many bytes of two files are compared at once. */
const CHUNK_BYTES = 1024 * 1024;

/** The newest row of each key in the newest files of a stream. */
export class KnownRows {
  readonly #rows = new Map<unknown, string>();
  readonly #key: string;

  private constructor(stream: string) {
    this.#key = STREAMS.find(({ name }) => name === stream)?.primaryKey[0] ?? "";
  }

  /**
   * Reads files from the newest one down, as long as none is missing: one that is gone may have had a newer row.
   * @param newest the number of the newest file
   */
  static async read(folder: string, stream: string, newest: number): Promise<KnownRows> {
    const known = new KnownRows(stream);
    const files = new Map((await namesIn(folder)).map((name) => [numberOf(name), name]));
    let left = MAX_BYTES;
    for (let number = newest; number > 0; number -= 1) {
      const name = files.get(number);
      const text = name?.includes(".jsonl") ? await readRows(join(folder, name), left) : undefined;
      if (text === undefined) break;
      left -= text.length;
      for (const line of text.split("\n").toReversed()) known.#add(line);
    }
    return known;
  }

  /** The rows that the files do not have as the newest of their keys. */
  without(lines: Lines): Lines {
    if (this.#rows.size === 0) return lines;
    return lines.filter((line) => {
      const key = this.#keyOf(line);
      if (this.#rows.get(key) === line) return false;
      this.#rows.delete(key);
      return true;
    });
  }

  #add(line: string): void {
    const key = this.#keyOf(line);
    if (typeof key === "string" && !this.#rows.has(key)) this.#rows.set(key, line);
  }

  #keyOf(line: string): unknown {
    return objectOf(tryParseJson(line))[this.#key];
  }
}

/** The text of a file of rows; undefined if it is gone or has more bytes than are allowed. */
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

/** Whether the newest that a stream has published is a folder with the same files, byte for byte. @param paths of the others */
export async function isNewestFolder(folder: string, paths: readonly string[]): Promise<boolean> {
  const newest = (await namesIn(folder)).reduce((a, b) => (numberOf(b) > numberOf(a) ? b : a), "");
  if (!newest.startsWith("full-")) return false;
  const names = (await namesIn(join(folder, newest))).sort((a, b) => numberOf(a) - numberOf(b));
  if (names.length !== paths.length) return false;
  for (const [nth, path] of paths.entries())
    if (!(await areSame(path, join(folder, newest, names[nth] ?? "")))) return false;
  return true;
}

/** Whether two files have the same bytes. */
async function areSame(...paths: readonly [string, string]): Promise<boolean> {
  const files: FileHandle[] = [];
  try {
    for (const path of paths) files.push(await open(path, "r"));
    for (;;) {
      const [one, other] = await Promise.all(
        files.map((file) => file.read({ buffer: Buffer.alloc(CHUNK_BYTES) })),
      );
      if (one === undefined || other === undefined || one.bytesRead !== other.bytesRead) return false;
      if (one.bytesRead === 0) return true;
      if (!one.buffer.equals(other.buffer)) return false;
    }
  } catch {
    return false;
  } finally {
    for (const file of files) await file.close();
  }
}
