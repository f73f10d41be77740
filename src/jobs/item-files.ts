import type { ItemKind } from "../config/items.ts";
import { type Cut, readCells } from "../output/files/csv.ts";
import { unusable } from "../output/files/open-text.ts";

/** The names of the column of items, in lower case and without signs. */
const COLUMNS: Readonly<Record<ItemKind, RegExp>> = {
  domain: /^(?:compan(?:y|ies))?domains?(?:names?)?$/,
  email: /^emails?(?:address(?:es)?)?$/,
};

/** Words of column names. An entry of only these words is reported and not bought. */
const WORDS = (
  "account accounts address attributes business companies company contact contacts customer customers data domain domains " +
  "email emails field fields fqdn homepage host hostname id item items keyword lead leads name names organisation organization " +
  "organizations people person primary properties record records result results row rows site source text url user users value " +
  "web website work"
).split(" ");

/**
 * Reads the texts of a file of items: plain lines, or the column of CSV or JSON lines.
 * @param each gets each text and the line where it begins, from 1 @throws ConfigError for an unusable file
 */
export async function readItemFile(
  path: string,
  kind: ItemKind,
  each: (text: string, line: number) => void,
): Promise<void> {
  const name = `file of items "${path}"`;
  const guess = (cuts: readonly Cut[]) => {
    const list = cuts.find(({ names }) => names.length === 1);
    const isList = cuts.every(({ names }) => names.filter((one) => one.trim() !== "").length <= 1);
    if (isList && list !== undefined && list.separator !== "")
      return { ...list, places: [0], isHeader: false };
    const item = kind === "domain" ? "host" : "address";
    return `has no column "${kind}". Name a column "${kind}", or write one ${item} per line`;
  };
  for await (const found of readCells({ name, path, columns: [[kind, COLUMNS[kind]]], isList: true, guess }))
    for (const row of found) {
      const [text] = row.cells;
      if (typeof text === "string") each(isName(text) ? "the name of a column" : text, row.line);
      else if (text !== undefined && text !== null)
        throw unusable(name, `line ${row.line} has a value for "${kind}" that is not text`);
    }
}

/** Whether a text is the name of a column. Names of columns contain no `@`. */
function isName(text: string): boolean {
  const words = text.replace(/([a-z])(?=[A-Z])/g, "$1 ").split(/[^\p{L}\p{N}@]+/u);
  return /\p{L}/u.test(text) && words.every((word) => word === "" || WORDS.includes(word.toLowerCase()));
}
