import type { ParseResult, Parser } from "papaparse";
import { isObject, tryParseJson } from "../../base/json.ts";
import { plural } from "../../base/text.ts";
import { piecesOf, unusable } from "./open-text.ts";

/** The cells of one row in the wanted columns, and the number (from 1) of its first line. */
export type Cells = { readonly cells: readonly unknown[]; readonly line: number };

/** The cells of the first line for one separator. `places`: the places of the wanted columns; -1: there is no such column. */
export type Cut = {
  readonly separator: string;
  readonly names: readonly string[];
  readonly places: readonly number[];
};

export type FedFile = {
  /** The name in messages, such as `table "x"`. */
  readonly name: string;
  readonly path: string;
  /** The wanted columns: a name (lower case letters and digits), or else a pattern that exactly one column of the file matches. */
  readonly columns: readonly (readonly [name: string, other: RegExp])[];
  /** Whether the file may be a list, whose lines can contain commas. */
  readonly isList: boolean;
  /** Finds the columns of a file that does not name them; a text: the problem. @param cuts the cut with most columns first */
  readonly guess: (cuts: readonly Cut[]) => (Cut & { readonly isHeader: boolean }) | string;
};

const SEPARATORS = [",", ";", "\t", "|"];
/** The separator of a list. No file contains this character, so a line has one cell. */
const NONE = "\u001f";
/** The separators of formats without quotes: psql, MySQL and Redshift write quotes as plain characters. */
const WITHOUT_QUOTES = new Set([NONE, "\t", "|"]);
/** The largest number of characters in a line. An open quote would join all later lines. */
const LONGEST_LINE = 8_000_000;

/** Finds the cells of all whole lines of a text. Returns the length of these lines. @param isLast the file has no more text */
type Take = (text: string, isLast: boolean, found: Cells[]) => number;

/** A cell of CSV, in quotes if its text needs them. */
export const csvCell = (text: string): string =>
  /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** Reads columns of a CSV file (commas, semicolons, tabs, bars) or of JSON lines. Throws ConfigError. */
export async function* readCells(file: FedFile): AsyncGenerator<readonly Cells[]> {
  const { Parser } = (await import("papaparse")).default;
  let rest = "";
  let take: Take | undefined;
  for await (const { text, isLast } of piecesOf(file.name, file.path)) {
    rest += text;
    const hasLine = isLast || rest.trimStart().includes("\n") || rest.length >= LONGEST_LINE / 100;
    if (take === undefined && !hasLine) continue;
    const found: Cells[] = [];
    try {
      take ??= takeOf(file, rest, Parser);
      rest = rest.slice(take(rest, isLast, found));
    } finally {
      yield found;
    }
  }
}

function takeOf(file: FedFile, head: string, Papa: typeof Parser): Take {
  const end = head.includes("\n") ? "\n" : "\r";
  const text = head.replace(/^\s*[\r\n]/, "");
  const [first = ""] = text.split(end, 1);
  if (first.trim() === "") throw unusable(file.name, EMPTY);
  return first.trimStart().startsWith("{") && isObject(parseRow(first))
    ? fromJson(file, end)
    : fromCsv(file, text, end, Papa);
}

function fromCsv(file: FedFile, head: string, newline: "\n" | "\r", Papa: typeof Parser): Take {
  const [first = ""] = head.split(newline, 1);
  const parserOf = (separator: string, isPlain: boolean) => {
    // The parser reads a quote after a space as text, so the separator includes the space.
    const delimiter = first.includes(`${separator} "`) && !isPlain ? `${separator} ` : separator;
    return new Papa({ delimiter, newline, ...(isPlain ? { fastMode: true } : {}) });
  };
  const cuts = (file.isList ? [NONE, ...SEPARATORS] : SEPARATORS).map((separator) => {
    const parser = parserOf(separator, WITHOUT_QUOTES.has(separator));
    const { data }: ParseResult<string[]> = parser.parse(head, 0, false);
    return cutOf(file, separator, data[0] ?? []);
  });
  const layout = layoutOf(file, cuts);
  if (typeof layout === "string") throw unusable(file.name, `its first line ${layout}`);
  const { separator, places, isHeader } = layout;
  const isPlain = WITHOUT_QUOTES.has(separator) && !(separator === NONE && isHeader);
  const parser = parserOf(separator, isPlain);
  const cellOf = isPlain ? unquoted : (cell?: string) => cell;
  const advice = `${isPlain ? "Write CSV with commas" : "Put a cell that contains a separator in quotes"}, and remove footers`;
  let [line, least, most] = [1, 0, 0];
  return (text, isLast, found) => {
    const { data, errors, meta }: ParseResult<string[]> = parser.parse(text, 0, !isLast);
    for (const [nth, row] of data.entries()) {
      if (nth === errors[0]?.row) throw unusable(file.name, `line ${line} ${OPEN_QUOTE}`);
      const begins = line;
      line += 1;
      for (const cell of row) if (cell.includes(newline)) line += cell.split(newline).length - 1;
      row.push((row.pop() ?? "").replace(/\r$/, ""));
      if (row.length === 1 && !isFilled(row[0])) continue;
      const isFirst = most === 0;
      if (isFirst) [least, most] = [isHeader ? row.findLastIndex(isFilled) + 1 : row.length, row.length];
      if (row.length < least || (row.length > most && row.slice(most).some(isFilled))) {
        const counts = `${plural(row.length, "cell")}, and the first line ${least}`;
        throw unusable(file.name, `line ${begins} has ${counts}. ${advice}`);
      }
      if (!(isFirst && isHeader))
        found.push({ line: begins, cells: places.map((place) => cellOf(row[place])) });
    }
    if (text.length - meta.cursor > LONGEST_LINE) throw unusable(file.name, `line ${line} ${OPEN_QUOTE}`);
    return meta.cursor;
  };
}

const isFilled = (cell = ""): boolean => cell.trim() !== "";
const OPEN_QUOTE = "has a cell with an open quote. Close the quote, and write a quote inside quotes twice";

/** The best cut of the first line; a text: the problem. */
function layoutOf(file: FedFile, cuts: Cut[]) {
  const found = ({ places }: Cut): number => places.filter((place) => place >= 0).length;
  const [best] = cuts.sort((a, b) => found(b) - found(a) || b.names.length - a.names.length);
  return best === undefined || best.places.includes(-1) ? file.guess(cuts) : { ...best, isHeader: true };
}

/** Finds columns by name, or by the last part of a name with dots (`person.id`), which some tools write. */
function cutOf({ columns }: FedFile, separator: string, names: readonly string[]): Cut {
  const bare = (name: string): string => name.toLowerCase().replace(/[^a-z\d]/g, "");
  const [full, last] = [names.map(bare), names.map((name) => bare(name.replace(/^[^,;\t|]*\./, "")))];
  const places = columns.map(([name, other]) => {
    const others = full.flatMap((one, at) => (other.test(one) || other.test(last[at] ?? "") ? [at] : []));
    return full.includes(name) || others.length !== 1 ? full.indexOf(name) : (others[0] ?? -1);
  });
  return { separator, names, places };
}

/** A cell without the quotes that some programs add to a format without quotes. */
function unquoted(cell = ""): string {
  const [, inner] = /^\s*"(.*)"\s*$/s.exec(cell) ?? [];
  return inner === undefined ? cell : inner.replaceAll('""', '"');
}

const EMPTY = "it is empty. If that is meant, write a header into it";
const NO_OBJECT = "is not a JSON object. Write one object per line";

function fromJson(file: FedFile, end: string): Take {
  let line = 0;
  let cut: Cut | undefined;
  /** Whether a line named every column. Later lines may lack a column whose value is null. */
  let isNamed = false;
  return (text, isLast, found) => {
    const lines = text.split(end);
    const rest = isLast ? "" : (lines.pop() ?? "");
    for (const one of lines) {
      line += 1;
      if (one.trim() === "") continue;
      const row = parseRow(one);
      if (!isObject(row)) throw unusable(file.name, `line ${line} ${NO_OBJECT}`);
      const keys = Object.keys(row);
      if (cut === undefined || keys.join() !== cut.names.join()) cut = cutOf(file, "", keys);
      isNamed ||= !cut.places.includes(-1);
      const layout = isNamed ? cut : file.guess([cut]);
      if (typeof layout === "string") throw unusable(file.name, `line ${line} ${layout}`);
      const values = Object.values(row);
      found.push({ line, cells: layout.places.map((place) => values[place]) });
    }
    if (rest.length > LONGEST_LINE) throw unusable(file.name, `line ${line + 1} ${NO_OBJECT}`);
    return text.length - rest.length;
  };
}

/** Texts in quotes, and whole numbers that JavaScript rounds. */
const LONG_NUMBERS = /"(?:[^"\\]|\\.)*"|(?<=[:,[\s])-?\d{16,}(?=[,\]}\s])/g;

/** Parses a row. Long whole numbers become texts, to keep their digits. Undefined: the text is not JSON. */
export function parseRow(text: string): unknown {
  if (!/\d{16}/.test(text)) return tryParseJson(text);
  return tryParseJson(text.replace(LONG_NUMBERS, (found) => (found.startsWith('"') ? found : `"${found}"`)));
}
