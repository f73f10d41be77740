import { createReadStream } from "node:fs";
import { ConfigError } from "../errors.ts";
import { reasonOf } from "../files/reason.ts";

/**
 * Reads the texts of a file of items: one on each line, or a CSV file with the column.
 * @param each is told of each text and its line, from 1
 * @throws ConfigError for a file that cannot be read
 */
export async function readItemFile(
  path: string,
  column: string,
  each: (text: string, line: number) => void,
): Promise<void> {
  let place: number | undefined;
  let line = 0;
  const take = (raw: string): void => {
    line += 1;
    const text = line === 1 ? raw.replace(/^\uFEFF/, "") : raw;
    const at = line === 1 ? cellsOf(text).findIndex((name) => name.trim().toLowerCase() === column) : -1;
    if (at >= 0) place = at;
    else each(place === undefined ? text : (cellsOf(text)[place] ?? ""), line);
  };
  try {
    for await (const text of textLines(path)) for (const one of text) take(one);
  } catch (cause) {
    throw new ConfigError(`Cannot read the file of items "${path}": ${reasonOf(cause)}`, { cause });
  }
}

/** The lines of a file, many at once. */
async function* textLines(path: string): AsyncGenerator<readonly string[]> {
  let rest = "";
  for await (const piece of createReadStream(path, "utf8")) {
    const lines = `${rest}${piece}`.split(/\r?\n/);
    rest = lines.pop() ?? "";
    yield lines;
  }
  if (rest !== "") yield [rest];
}

const CELL = /(?:^|[,;\t])(?:\s*"((?:[^"]|"")*)"|([^,;\t]*))/g;

/** The cells of a line of CSV; quotes hide separators. */
function cellsOf(line: string): readonly string[] {
  return [...line.matchAll(CELL)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? "");
}
