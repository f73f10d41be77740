import { quoted } from "../base/json.ts";
import { plural } from "../base/text.ts";
import type { RowNotes } from "../service/row-notes.ts";

/** Names of one kind that the warning says. */
const MOST_SAID = 50;

/**
 * Returns a warning about the rows of a stream, without any value: one text or none.
 * @param leaves whether a new field may leave; the others are no news
 */
export function driftOf(
  stream: string,
  { newFields, contradictions, withoutKey, unreadable, replaced }: RowNotes,
  leaves: (name: string) => boolean,
): readonly string[] {
  const found = [...newFields].filter(([name]) => leaves(name));
  const clauses = [
    ...firstOf(
      found.map(
        ([name, { rows }]) =>
          `new field ${quoted(name)} in ${plural(rows, "row")}, which is lost if the catalog does not have it`,
      ),
    ),
    ...firstOf(
      [...contradictions].map(
        ([name, rows]) => `${quoted(name)} has another type than declared in ${plural(rows, "row")}`,
      ),
    ),
    ...(withoutKey > 0 ? [`no key in ${plural(withoutKey, "row")}`] : []),
    ...(unreadable > 0
      ? [`a cursor that no rule can read in ${plural(unreadable, "row")}, which count as rows without a date`]
      : []),
    ...(replaced > 0 ? [`halves of surrogate pairs replaced by U+FFFD: ${replaced}`] : []),
  ];
  if (clauses.length === 0) return [];
  return [`The rows of "${stream}" differ from its schema: ${clauses.join("; ")}`];
}

const firstOf = (clauses: readonly string[]): readonly string[] =>
  clauses.length <= MOST_SAID
    ? clauses
    : [...clauses.slice(0, MOST_SAID), "more fields that are not named here"];
