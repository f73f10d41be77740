import { fromLatin1 } from "../base/text.ts";
import { isNameable, schemaOf } from "../catalog/infer-schema.ts";
import type { FieldSchema } from "../sync/event.ts";

/** The maximum number of new fields that are named, because rows may contain any names. */
const MAX_NEW_FIELDS = 1_000;

/** Facts about the arriving rows of a stream. A row that arrives twice counts twice. */
export class RowNotes {
  /** Fields that the schema does not name, with the schemas of their first values. */
  readonly newFields = new Map<string, { rows: number; readonly schema: FieldSchema }>();
  /** Fields that no schema can name. */
  readonly unnameable = new Set<string>();
  /** Fields whose values contradict the schema. */
  readonly contradictions = new Map<string, number>();
  withoutKey = 0;
  /** The number of rows with a cursor that no rule can read. */
  unreadable = 0;
  /** The number of halves of surrogate pairs that became U+FFFD. */
  replaced = 0;

  /** Counts a row with a new field. @param named the fields that the schema names. All names are latin1-decoded */
  addNewField(field: string, value: unknown, named: Iterable<string>): void {
    const name = fromLatin1(field);
    const known = this.newFields.get(name);
    if (known !== undefined) known.rows += 1;
    else if (this.newFields.size + this.unnameable.size < MAX_NEW_FIELDS && !this.unnameable.has(name)) {
      const others = [...Array.from(named, fromLatin1), ...this.newFields.keys()];
      if (isNameable(name, others)) this.newFields.set(name, { rows: 1, schema: schemaOf([value]) });
      else this.unnameable.add(name);
    }
  }

  /** Counts a row whose field contradicts the schema. @param field its latin1-decoded name */
  addContradiction(field: string): void {
    const name = fromLatin1(field);
    this.contradictions.set(name, (this.contradictions.get(name) ?? 0) + 1);
  }
}
