import { ConfigError } from "../base/errors.ts";
import { cellsOf, endsInQuotes, separatorAt, textLines } from "../output/files/csv.ts";
import { reasonOf } from "../output/files/reason.ts";

/**
 * Reads the texts of a file of items: one on each line, or a CSV file with the column.
 * @param each gets each text and the line on which it begins, from 1
 * @throws ConfigError for a file that cannot be read, and for CSV without the column, whose cells may be anything, or with
 *   a cell that does not end
 */
export async function readItemFile(
  path: string,
  column: string,
  each: (text: string, line: number) => void,
): Promise<void> {
  /** Null: each line is a text. */
  let place: number | null | undefined;
  let separators: string | undefined;
  let [line, first, open] = [0, 0, ""];
  const take = (raw: string): void => {
    line += 1;
    const bare = line === 1 ? raw.replace(/^\uFEFF/, "") : raw;
    if (open === "") {
      if (bare.trim() === "") return;
      first = line;
    }
    const text = `${open}${bare}`;
    open = place !== null && endsInQuotes(open, bare, separators) ? `${text}\n` : "";
    if (open !== "") return;
    if (place === undefined) {
      const names = columnNames(text);
      if (names.includes(column)) {
        separators = separatorAt(text, names.indexOf(column));
        place = columnNames(text, separators).indexOf(column);
        return;
      }
      if (names.length > 1) throw lacking(path, first, column);
      place = null;
    }
    each(place === null ? text : (cellsOf(text, separators)[place] ?? ""), first);
  };
  try {
    for await (const text of textLines(path)) for (const one of text) take(one);
    if (open !== "") throw unclosed(path, first);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`Cannot read the file of items "${path}": ${reasonOf(cause)}`, { cause });
  }
}

/** Tools that flatten records write `company.domain` for the column `domain`. */
const columnNames = (header: string, separators?: string): readonly string[] =>
  cellsOf(header, separators).map((name) => name.trim().toLowerCase().replace(/^.*\./, ""));

const unclosed = (path: string, line: number): ConfigError =>
  new ConfigError(
    `Cannot use the file of items "${path}": line ${line} begins a cell with a quote that nothing closes. Add the quote, or remove it`,
  );

const lacking = (path: string, line: number, column: string): ConfigError =>
  new ConfigError(
    `Cannot use the file of items "${path}": line ${line} has several cells, so this is CSV, and has no column "${column}". ` +
      `Name a column "${column}", or write one item on each line`,
  );
