import { createHash } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { objectOf, tryParseJson } from "../base/json.ts";
import { STREAMS } from "../catalog/streams.ts";
import type { Lines } from "../sync/event.ts";
import { type NamedPart, namesIn, numberOf } from "./folder-state.ts";

/** How many bytes of rows are compared. */
const MAX_BYTES = 16 * 1024 * 1024;
/** How many bytes of a file are read at once. */
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

/** Whether the newest that a stream has published is a folder with the same bytes. @param parts names of files in `folder` */
export async function isNewestFolder(
  folder: string,
  parts: readonly Pick<NamedPart, "part">[],
): Promise<boolean> {
  const newest = byNumber(await namesIn(folder)).at(-1) ?? "";
  if (!newest.startsWith("full-")) return false;
  const names = byNumber(await namesIn(join(folder, newest)));
  const [one, other] = [parts.map(({ part }) => part), names.map((name) => join(newest, name))];
  const digests = [one, other].map((paths) => digestOf(paths.map((path) => join(folder, path))));
  return await Promise.all(digests).then(
    ([ours, theirs]) => ours === theirs,
    () => false,
  );
}

const byNumber = (names: readonly string[]): readonly string[] =>
  names.toSorted((one, other) => numberOf(one) - numberOf(other));

/** The digest of all bytes of some files, in this order. */
async function digestOf(paths: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  for (const path of paths) {
    const file = await open(path, "r");
    try {
      for (;;) {
        const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(CHUNK_BYTES) });
        if (bytesRead === 0) break;
        hash.update(buffer.subarray(0, bytesRead));
      }
    } finally {
      await file.close();
    }
  }
  return hash.digest("hex");
}
