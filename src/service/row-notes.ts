import { fromLatin1 } from "../base/text.ts";
import { inferSchema, isNameable } from "../catalog/infer-schema.ts";
import type { FieldSchema } from "../sync/event.ts";

/** Fields beyond this many are not named: their names come from outside. */
const MOST_NEW_FIELDS = 1_000;

/** The facts that the rows of a stream teach as they arrive, counted in rows. A row that arrives twice counts twice. */
export class RowNotes {
  /** Fields that the schema does not name, each with the schema of its first value; undefined where none can name it. */
  readonly newFields = new Map<string, { rows: number; readonly schema: FieldSchema | undefined }>();
  /** Fields whose values contradict the schema. */
  readonly contradictions = new Map<string, number>();
  withoutKey = 0;
  /** Rows with a cursor that no rule can read. */
  unreadable = 0;
  /** Halves of surrogate pairs that were replaced by U+FFFD. */
  replaced = 0;

  /** @param field its name, latin1-decoded @param named the fields that the schema names */
  addNewField(field: string, value: unknown, named: readonly string[]): void {
    const name = fromLatin1(field);
    const known = this.newFields.get(name);
    if (known !== undefined) known.rows += 1;
    else if (this.newFields.size < MOST_NEW_FIELDS) {
      const schema = isNameable(name, [...named, ...this.newFields.keys()]) ? schemaOf(value) : undefined;
      this.newFields.set(name, { rows: 1, schema });
    }
  }

  /** @param field its name, latin1-decoded */
  addContradiction(field: string): void {
    const name = fromLatin1(field);
    this.contradictions.set(name, (this.contradictions.get(name) ?? 0) + 1);
  }
}

const schemaOf = (value: unknown): FieldSchema =>
  inferSchema({ type: "object" }, [{ value }]).properties?.["value"] ?? {};
