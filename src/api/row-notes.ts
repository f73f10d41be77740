import { fromLatin1 } from "../latin1.ts";
import type { FieldSchema, RowFacts } from "../streams/event.ts";
import { inferSchema } from "./infer-schema.ts";

/** Fields beyond this many are not named: their names come from outside. */
const MOST_NAMES = 1_000;

/** Collects what the rows of one batch teach, until the batch leaves. Names come latin1-decoded, as they stand in a row. */
export class RowNotes {
  #newFields = new Map<string, { rows: number; schema: FieldSchema }>();
  #contradictions = new Map<string, number>();
  #withoutKey = 0;
  #replaced = 0;
  #isEmpty = true;

  /** A field that the schema does not name; its schema is that of the first value. */
  addNewField(name: string, value: unknown): void {
    const known = this.#newFields.get(name);
    if (known !== undefined) {
      known.rows += 1;
      return;
    }
    if (this.#newFields.size >= MOST_NAMES) return;
    this.#newFields.set(name, { rows: 1, schema: schemaOf(name, value) });
    this.#isEmpty = false;
  }

  addContradiction(name: string): void {
    this.#contradictions.set(name, (this.#contradictions.get(name) ?? 0) + 1);
    this.#isEmpty = false;
  }

  addWithoutKey(): void {
    this.#withoutKey += 1;
    this.#isEmpty = false;
  }

  addReplaced(): void {
    this.#replaced += 1;
    this.#isEmpty = false;
  }

  /** The facts since the last call; undefined if there are none. */
  take(): RowFacts | undefined {
    if (this.#isEmpty) return undefined;
    const facts = {
      newFields: withTextNames(this.#newFields),
      contradictions: withTextNames(this.#contradictions),
      withoutKey: this.#withoutKey,
      replaced: this.#replaced,
      // A cursor is read only where it decides on proof.
      unreadable: 0,
    };
    this.#newFields = new Map();
    this.#contradictions = new Map();
    this.#withoutKey = 0;
    this.#replaced = 0;
    this.#isEmpty = true;
    return facts;
  }
}

/** `{}` for a name that no platform can hold. */
function schemaOf(name: string, value: unknown): FieldSchema {
  const { properties = {} } = inferSchema({ type: "object" }, [{ [name]: value }]);
  return Object.hasOwn(properties, name) ? (properties[name] as FieldSchema) : {};
}

const withTextNames = <Value>(facts: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> =>
  new Map([...facts].map(([name, value]) => [fromLatin1(name), value]));
