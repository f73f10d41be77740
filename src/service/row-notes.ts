import { fromLatin1 } from "../base/text.ts";
import { inferSchema } from "../catalog/infer-schema.ts";
import type { FieldSchema, RowFacts } from "../sync/event.ts";

/** Fields beyond this many are not named: their names come from outside. */
const MOST_NEW_FIELDS = 1_000;

/** Collects the facts about the rows of a batch, until the batch leaves. Names come latin1-decoded, as in a row. */
export class RowNotes {
  #notes: ReturnType<typeof noNotes> | undefined;

  /** Adds a field that the schema does not name. Its schema is that of the first value. */
  addNewField(name: string, value: unknown): void {
    const { newFields } = this.#begun();
    const known = newFields.get(name);
    if (known !== undefined) known.rows += 1;
    else if (newFields.size < MOST_NEW_FIELDS)
      newFields.set(name, { rows: 1, schema: schemaOf(name, value) });
  }

  addContradiction(name: string): void {
    const { contradictions } = this.#begun();
    contradictions.set(name, (contradictions.get(name) ?? 0) + 1);
  }

  addWithoutKey(): void {
    this.#begun().withoutKey += 1;
  }

  addReplaced(): void {
    this.#begun().replaced += 1;
  }

  /** The facts since the last call; undefined if there are none. */
  take(): RowFacts | undefined {
    const notes = this.#notes;
    if (notes === undefined) return undefined;
    this.#notes = undefined;
    const contradictions = withTextNames(notes.contradictions);
    return { ...notes, newFields: withTextNames(notes.newFields), contradictions };
  }

  #begun(): ReturnType<typeof noNotes> {
    this.#notes ??= noNotes();
    return this.#notes;
  }
}

const noNotes = () => ({
  newFields: new Map<string, { rows: number; schema: FieldSchema }>(),
  contradictions: new Map<string, number>(),
  withoutKey: 0,
  replaced: 0,
  // Counted later, by the pass.
  unreadable: 0,
  suppressed: 0,
});

/** `{}` for a name that no platform can hold. */
function schemaOf(name: string, value: unknown): FieldSchema {
  const { properties = {} } = inferSchema({ type: "object" }, [{ [name]: value }]);
  return Object.hasOwn(properties, name) ? (properties[name] as FieldSchema) : {};
}

const withTextNames = <Value>(facts: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> =>
  new Map([...facts].map(([name, value]) => [fromLatin1(name), value]));
