import { quoted } from "../base/json.ts";
import { plural } from "../base/text.ts";
import type { FieldSchema, RowFacts } from "../sync/event.ts";

/** Names beyond this many are not counted: they come from outside. */
const MOST_DRIFT_NAMES = 1_000;
/** Names that the report says. */
const MOST_SAID = 50;

/** Facts that are counted without a name, and what is said of them. */
const COUNTED = {
  withoutKey: (rows: number) => `no key in ${plural(rows, "row")}`,
  unreadable: (rows: number) =>
    `a cursor that no rule can read in ${plural(rows, "row")}, which count as rows without a date`,
  replaced: (halves: number) => `halves of surrogate pairs replaced by U+FFFD: ${halves}`,
};

const COUNTED_NAMES = Object.keys(COUNTED) as (keyof typeof COUNTED)[];

/** Adds up what the rows of one stream taught, for the events and the report that say so. */
export class Drift {
  readonly #newFields = new Map<string, number>();
  readonly #contradictions = new Map<string, number>();
  readonly #counts = { withoutKey: 0, unreadable: 0, replaced: 0 };

  /** Takes facts in; returns the new fields among them that no facts before had, undefined if there are none. */
  add(facts: RowFacts): Readonly<Record<string, FieldSchema>> | undefined {
    const added: [string, FieldSchema][] = [];
    for (const [name, { rows, schema }] of facts.newFields) {
      if (!this.#newFields.has(name) && this.#newFields.size >= MOST_DRIFT_NAMES) continue;
      if (!this.#newFields.has(name)) added.push([name, schema]);
      this.#newFields.set(name, (this.#newFields.get(name) ?? 0) + rows);
    }
    for (const [name, rows] of facts.contradictions)
      this.#contradictions.set(name, (this.#contradictions.get(name) ?? 0) + rows);
    for (const name of COUNTED_NAMES) this.#counts[name] += facts[name];
    return added.length === 0 ? undefined : Object.fromEntries(added);
  }

  /** Returns a warning about the rows of a stream, without any value: one text or none. */
  report(stream: string): readonly string[] {
    const clauses = [
      ...said(
        this.#newFields,
        (name, rows) =>
          `new field ${name} in ${plural(rows, "row")}, which is lost where the catalog lacks it`,
      ),
      ...said(
        this.#contradictions,
        (name, rows) => `${name} is not of its declared type in ${plural(rows, "row")}`,
      ),
      ...COUNTED_NAMES.flatMap((name) => (this.#counts[name] > 0 ? [COUNTED[name](this.#counts[name])] : [])),
    ];
    return clauses.length === 0
      ? []
      : [`The rows of "${stream}" differ from its schema: ${clauses.join("; ")}`];
  }
}

/** A clause for each field, the first ones only. */
function said(fields: ReadonlyMap<string, number>, clause: (name: string, rows: number) => string): string[] {
  const clauses = [...fields].slice(0, MOST_SAID).map(([name, rows]) => clause(quoted(name), rows));
  const left = fields.size - clauses.length;
  if (left === 0) return clauses;
  return [
    ...clauses,
    `${plural(left, "more field")}${fields.size >= MOST_DRIFT_NAMES ? ", and others that are not counted" : ""}`,
  ];
}
