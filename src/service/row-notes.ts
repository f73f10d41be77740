import { fromLatin1 } from "../base/text.ts";
import { isNameable, schemaOf } from "../catalog/infer-schema.ts";
import type { FieldSchema } from "../sync/event.ts";

/** Fields beyond this many are not named: their names come from outside. */
const MOST_NEW_FIELDS = 1_000;

/** The facts that the rows of a stream teach as they arrive, counted in rows. A row that arrives twice counts twice. */
export class RowNotes {
  /** Fields that the schema does not name, each with the schema of its first value. */
  readonly newFields = new Map<string, { rows: number; readonly schema: FieldSchema }>();
  /** Fields that no schema can name. */
  readonly unnameable = new Set<string>();
  /** Fields whose values contradict the schema. */
  readonly contradictions = new Map<string, number>();
  withoutKey = 0;
  /** Rows with a cursor that no rule can read. */
  unreadable = 0;
  /** Halves of surrogate pairs that were replaced by U+FFFD. */
  replaced = 0;

  /** @param field its name @param named the fields that the schema names; all names are latin1-decoded */
  addNewField(field: string, value: unknown, named: Iterable<string>): void {
    const name = fromLatin1(field);
    const known = this.newFields.get(name);
    if (known !== undefined) known.rows += 1;
    else if (this.newFields.size + this.unnameable.size < MOST_NEW_FIELDS && !this.unnameable.has(name)) {
      const others = [...Array.from(named, fromLatin1), ...this.newFields.keys()];
      if (isNameable(name, others)) this.newFields.set(name, { rows: 1, schema: schemaOf([value]) });
      else this.unnameable.add(name);
    }
  }

  /** @param field its name, latin1-decoded */
  addContradiction(field: string): void {
    const name = fromLatin1(field);
    this.contradictions.set(name, (this.contradictions.get(name) ?? 0) + 1);
  }
}
