import { ConfigError } from "../base/errors.ts";
import { hasNuls, withoutNuls } from "../base/json-text.ts";
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
import { driftOf } from "./drift.ts";

/**
 * Warns of a catalog that names dropped fields, and throws ConfigError for one that types hashed fields so that the
 * destination could not take their digests.
 */
export function* catalogWarnings(
  stream: string,
  schema: JsonSchema | null,
  privacy: FieldFilter,
): Generator<Event> {
  if (schema === null) return;
  const { mistyped, dropped } = catalogConflicts(schema, privacy.rules(stream));
  if (mistyped.length > 0) {
    throw new ConfigError(
      `Cannot read the stream "${stream}": the catalog types ${quotedNames(mistyped)} as it was before hash_fields named it, ` +
        `and a digest is a text. ${REFRESH}`,
    );
  }
  if (dropped.length > 0) {
    yield warning(
      `The catalog of "${stream}" names ${quotedNames(dropped)}, which the config removes. ${REFRESH}`,
    );
  }
}

/** Field names in one warning. */
const MOST_NAMED = 1000;

/**
 * Rewrites a stream's events before anything else sees them. Rows leave as the config and a Singer catalog let
 * them, and what they taught becomes events: new fields before the batch that has them, warnings before the end.
 * Throws ConfigError for rows of a stream whose fields a Singer catalog could not know.
 * @param selection what a Singer catalog lets out; undefined: the platform speaks another language
 * @param notes what the rows taught so far
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
      if (names.size < MOST_NAMED) names.add(path.join("."));
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
          // The row as it came is searched, because searching a text that was just put together would copy it.
          return hasNuls(line) ? withoutNuls(leaving, replaced) : leaving;
        };
  return function* (event) {
    if (event.kind === "records") {
      notes.unreadable += event.unreadable ?? 0;
      if (event.lines.length === 0 && !event.suppressed) return;
      // A Singer catalog is the complete list of fields: nothing is added to it.
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
      const texts = [
        ...driftOf(stream, notes, leaves),
        ...fieldWarnings(stream, [...withheld], "the catalog does not name, so they were removed", BY_HAND),
        ...fieldWarnings(stream, nameless, "no catalog can name", NO_NAMES),
      ];
      if (nuls > 0)
        texts.push(
          `The rows of "${stream}" contain NUL characters, which SQL targets cannot store: ${nuls} replaced by U+FFFD`,
        );
      yield* texts.map(warning);
    }
    yield event;
  };
}

const REFRESH =
  "Discover again and use the new catalog: refresh the source's schema in Airbyte, run with --refresh-catalog in Meltano";

const BY_HAND = `${REFRESH}. If it does not find them, add them to the catalog by hand: in Meltano with the extra "schema"`;
/** Discovering again would not help. */
const NO_NAMES =
  "Their names are empty or reserved, or differ from others only by case. Only read --output and read --format jsonl keep them";

const fieldWarnings = (
  stream: string,
  names: readonly string[],
  which: string,
  advice: string,
): readonly string[] =>
  names.length === 0
    ? []
    : [`The rows of "${stream}" have fields that ${which}: ${quotedNames(names)}. ${advice}`];

/** Rules for a stream without a catalog: all leaves that a SCHEMA can name. */
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
