import { createReadStream } from "node:fs";
import { PassThrough, pipeline } from "node:stream";
import { createGunzip } from "node:zlib";

/**
 * The lines of a text file, many at once. `-` is stdin; a file whose name ends in `.gz` is compressed. Throws the system's
 * errors as they are.
 * @param end what ends a line
 */
export async function* textLines(
  path: string,
  encoding: BufferEncoding = "utf8",
  end: RegExp | string = /\r?\n/,
): AsyncGenerator<readonly string[]> {
  const plain = path.endsWith(".gz") ? createGunzip() : new PassThrough();
  let rest = "";
  const from = path === "-" ? createReadStream("", { fd: 0, autoClose: false }) : createReadStream(path);
  for await (const piece of pipeline(from, plain, () => {}).setEncoding(encoding)) {
    const lines = `${rest}${piece}`.split(end);
    rest = lines.pop() ?? "";
    yield lines;
  }
  if (rest !== "") yield [rest];
}

/** The possible separators of cells. A file uses one of them, and the others are text in it. */
const BETWEEN_CELLS = ",;\t";

/** Made once for each separator of the program's files: a line is matched in less time than its expression is made. */
const CELLS = new Map(
  [BETWEEN_CELLS, ...BETWEEN_CELLS].map((separators) => [
    separators,
    new RegExp(`[${separators}](?: *"((?:[^"]|"")*)"(?!")|([^${separators}]*))`, "g"),
  ]),
);

const matchesIn = (line: string, separators: string): RegExpExecArray[] => [
  ...`${separators.charAt(0)}${line}`.matchAll(CELLS.get(separators) as RegExp),
];

/** The cells of a line of CSV; quotes hide separators. */
export const cellsOf = (line: string, separators: string = BETWEEN_CELLS): readonly string[] =>
  matchesIn(line, separators).map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare ?? "");

/** The separator before a cell of a line, or after the first one; all possible ones if there is no other cell. */
export const separatorAt = (line: string, nth: number): string =>
  matchesIn(line, BETWEEN_CELLS)[Math.max(1, nth)]?.[0].charAt(0) ?? BETWEEN_CELLS;

/**
 * Whether a line of CSV ends within quotes: the line break after it belongs to the cell. Quotes inside a cell that does not
 * begin with one are text.
 * @param open the text before the line in its row, if a cell of it is still open; else empty
 */
export function endsInQuotes(open: string, line: string, separators: string = BETWEEN_CELLS): boolean {
  const quotes = line.split('"').length - 1;
  // Looking at all of a long cell again and again would take for ever.
  if (quotes === 0 || (open !== "" && quotes % 2 === 0)) return open !== "";
  return matchesIn(`${open}${line}`, separators).some(([, , bare = ""]) => bare.trimStart().startsWith('"'));
}

/** A cell of CSV, in quotes where it needs them. */
export const csvCell = (text: string): string =>
  /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
