import { ConfigError } from "../base/errors.ts";
import { quoted } from "../base/json.ts";
import { hasNuls, withoutNuls } from "../base/json-text.ts";
import { plural } from "../base/text.ts";
import {
  catalogConflicts,
  type FieldFilter,
  type FieldRules,
  isDrop,
  KEEP_ALL,
  type Rewrite,
  ruleFor,
  schemaUnder,
  unlisted,
} from "../catalog/field-rules.ts";
import { isNameable } from "../catalog/infer-schema.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import type { RowNotes } from "../service/row-notes.ts";
import { type Event, type RawLine, warning } from "../sync/event.ts";

/**
 * Warns about a catalog that names removed fields.
 * @throws ConfigError if the catalog gives a hashed field another type than text, because a destination would refuse the digest
 */
export function* catalogWarnings(stream: string, schema: JsonSchema | null, privacy: FieldFilter) {
  if (schema === null) return;
  const { mistyped, dropped } = catalogConflicts(schema, privacy.rules(stream));
  if (mistyped.length > 0)
    throw new ConfigError(
      `Cannot read the stream "${stream}": the catalog types ${quotedNames(mistyped)} as it was before hash_fields named it, ` +
        `and a digest is a text. ${REFRESH}`,
    );
  const text = `The catalog of "${stream}" names ${quotedNames(dropped)}, which the config removes. ${REFRESH}`;
  if (dropped.length > 0) yield warning(text);
}

/** The maximum number of field names in one warning. */
const MAX_NAMED = 1000;

/**
 * Rewrites the events of a stream: removes and hashes fields of rows, and adds events about new fields and warnings.
 * New fields precede the batch that contains them. Warnings precede the end.
 * @param selection the fields that a Singer catalog selects; undefined: the platform is not Singer
 * @param notes facts about the rows so far
 * @throws ConfigError for rows of a stream that had no rows when its Singer catalog was made
 */
export function outgoing(
  stream: string,
  privacy: FieldFilter,
  selection: Selection | undefined,
  notes: RowNotes,
): (event: Event) => Generator<Event> {
  const [withheld, unnameable] = [new Set<string>(), new Set<string>()];
  const rules = privacy.rules(stream);
  const leaves = (name: string): boolean => !isDrop(ruleFor(name, rules));
  let [announced, refused, nuls] = [0, 0, 0];
  const rewriterBy = (chosen: FieldRules | undefined): Rewrite | null =>
    privacy.rewriter(stream, chosen, (path, among) => {
      const names = isNameable(path.at(-1) ?? "", among) ? withheld : unnameable;
      if (names.size < MAX_NAMED) names.add(path.join("."));
    });
  let rewriter = rewriterBy(selection?.rules);
  const replaced = (): void => {
    nuls += 1;
  };
  const rewrite: Rewrite | null =
    selection === undefined
      ? rewriter
      : (line, names) => {
          const leaving = rewriter === null ? line : rewriter(line, names);
          // The search is in the original row, because V8 copies a concatenated text before it searches the text.
          return hasNuls(line) ? withoutNuls(leaving, replaced) : leaving;
        };
  return function* (event) {
    if (event.kind === "records") {
      notes.unreadable += event.unreadable ?? 0;
      if (event.lines.length === 0 && !event.suppressed) return;
      // A Singer catalog that lists its fields gets no new fields.
      const isOpen = (selection?.rules ?? KEEP_ALL) === KEEP_ALL;
      if (isOpen && selection !== undefined && notes.unnameable.size > refused) {
        refused = notes.unnameable.size;
        rewriter = rewriterBy(allBut(notes.unnameable));
      }
      if (isOpen && notes.newFields.size > announced) {
        const fields = [...notes.newFields].slice(announced).filter(([name]) => leaves(name));
        announced = notes.newFields.size;
        const properties = Object.fromEntries(fields.map(([name, { schema }]) => [name, schema]));
        const { properties: added = {} } = schemaUnder(rules, { properties }, "leaving");
        if (Object.keys(added).length > 0) yield { kind: "fields", stream, added };
      }
      if (event.lines.length > 0 && selection?.isComplete === false) throw unsampled(stream);
      yield rewrite === null
        ? event
        : { ...event, lines: event.lines.map((line, nth) => rewrite(line, event.names?.[nth]) as RawLine) };
      return;
    }
    if (event.kind === "close") {
      const nameless = selection === undefined ? [...notes.unnameable].filter(leaves) : [...unnameable];
      const drift = driftOf(notes, leaves);
      const texts = [
        drift !== "" && `differ from its schema: ${drift}`,
        withheld.size > 0 &&
          `have fields that the catalog does not name, so they were removed: ${quotedNames([...withheld])}. ${BY_HAND}`,
        nameless.length > 0 && `have fields that no catalog can name: ${quotedNames(nameless)}. ${NO_NAMES}`,
        nuls > 0 && `contain NUL characters, which SQL targets cannot store: ${nuls} replaced by U+FFFD`,
      ];
      for (const text of texts) if (text !== false) yield warning(`The rows of "${stream}" ${text}`);
    }
    yield event;
  };
}

/** The maximum number of fields of one kind in the warning about differences. */
const MAX_LISTED = 50;

/** The differences between rows and their schema, without values. @param leaves whether the output contains a field */
function driftOf(notes: RowNotes, leaves: (name: string) => boolean): string {
  const { newFields, contradictions, withoutKey, unreadable, replaced } = notes;
  const added = [...newFields].filter(([name]) => leaves(name));
  const clauses = [
    ...firstOf(added.map(([name, { rows }]) => `new field ${quoted(name)} in ${plural(rows, "row")}${LOST}`)),
    ...firstOf(
      [...contradictions].map(([name, rows]) => `${quoted(name)} ${MISTYPED} ${plural(rows, "row")}`),
    ),
    withoutKey > 0 && `no key in ${plural(withoutKey, "row")}`,
    unreadable > 0 &&
      `a cursor that no rule can read in ${plural(unreadable, "row")}, which count as rows without a date`,
    replaced > 0 && `halves of surrogate pairs replaced by U+FFFD: ${replaced}`,
  ];
  return clauses.filter((clause) => clause !== false).join("; ");
}

const LOST = ", which is lost if the catalog does not have it";
const MISTYPED = "has another type than declared in";

const firstOf = (clauses: readonly string[]): readonly string[] =>
  clauses.length <= MAX_LISTED
    ? clauses
    : [...clauses.slice(0, MAX_LISTED), "more fields that are not named here"];

const REFRESH =
  "Discover again and use the new catalog: refresh the source's schema in Airbyte, run with --refresh-catalog in Meltano";

const BY_HAND = `${REFRESH}. If it does not find them, add them to the catalog by hand: in Meltano with the extra "schema"`;
const NO_NAMES =
  "Their names are empty or reserved, or differ from others only by case. Only read --output and read --format jsonl keep them";

/** The rules for a stream without a catalog: keep all fields that a SCHEMA can name. @param names the other fields */
const allBut = (names: ReadonlySet<string>): FieldRules => ({
  defaultRule: "keep",
  fields: new Map([...names].map((name) => [name, unlisted([name])])),
});

const quotedNames = (names: readonly string[]): string =>
  names.map((name) => JSON.stringify(name)).join(", ");

const unsampled = (stream: string): ConfigError =>
  new ConfigError(
    `Cannot read the stream "${stream}": when the catalog was made the stream had no rows, or was not on the key's plan, ` +
      `so that the catalog does not name its fields. ${REFRESH}`,
  );
