import { ConfigError } from "../base/errors.ts";
import { type ItemKind, normalizeItem } from "../config/items.ts";
import { type Cut, readCells } from "../output/files/csv.ts";

const COLUMNS: Readonly<Record<ItemKind, RegExp>> = {
  domain: /^(?:compan(?:y|ies))?domains?(?:names?)?$/,
  email: /^emails?(?:address(?:es)?)?$/,
};

/** Words of the names of columns. Domains have been named after many of them, but hardly after two. */
const WORDS = new Set(
  (
    "account accounts address attributes business companies company contact contacts customer customers data domain domains " +
    "email emails field fields fqdn homepage host hostname id item items keyword lead leads name names organisation organization " +
    "organizations people person primary properties record records result results row rows site source text url user users value " +
    "web website work"
  ).split(" "),
);

/**
 * Reads the texts of a file of items: one on each line, or CSV or JSON lines with the column.
 * @param each gets each text and the line on which it begins, from 1
 * @throws ConfigError for a file that cannot be read, and for one with several columns that lacks this one
 */
export async function readItemFile(
  path: string,
  kind: ItemKind,
  each: (text: string, line: number) => void,
): Promise<void> {
  const name = `file of items "${path}"`;
  const guess = (cuts: readonly Cut[]) => {
    const [best] = cuts as [Cut];
    const list = cuts.find(({ names }) => names.length === 1);
    const isList = list?.separator !== "" && best.names.filter((one) => one.trim() !== "").length === 1;
    if (list === undefined || !isList)
      return `has no column "${kind}". Name one column "${kind}", or write one item on each line`;
    const isHeader = isName(list.names[0] ?? "");
    // A domain may be named like a column: it is not bought, but a person reads of it.
    if (isHeader && normalizeItem(kind, list.names[0] ?? "") !== null) each("the name of a column", 1);
    return { ...list, places: [0], isHeader };
  };
  for await (const found of readCells({ name, path, columns: [COLUMNS[kind]], isList: true, guess }))
    for (const {
      cells: [text],
      line,
    } of found) {
      if (typeof text === "string") each(text, line);
      else if (text !== undefined && text !== null)
        throw new ConfigError(`Cannot use the ${name}: line ${line} has no text as "${kind}"`);
    }
}

const isName = (text: string): boolean =>
  text
    .replace(/([a-z])(?=[A-Z])/g, "$1 ")
    .split(/[^a-z]+/i)
    .filter((word) => word !== "")
    .every((word) => WORDS.has(word.toLowerCase()));
