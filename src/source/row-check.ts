import { fromLatin1, toLatin1 } from "../latin1.ts";
import { type SchemaCheck, schemaCompiler } from "../schema-checks.ts";
import type { FieldSchema } from "../sync/event.ts";
import { inferSchema } from "./infer.ts";
import type { JsonSchema } from "./schema.ts";

type Row = Readonly<Record<string, unknown>>;

/**
 * Compares rows with their stream's schema: what contradicts it is passed on all the same, counted, and reported at the
 * end of the stream by field and number, never by value. The one compiled check says yes to nearly every row; only a
 * row that it refuses is looked at field by field.
 */
export class RowCheck {
  readonly #stream: string;
  /** The declared fields by their latin1-decoded names. */
  readonly fields: ReadonlyMap<string, JsonSchema>;
  readonly #accepts: SchemaCheck;
  readonly #compile: (schema: object) => SchemaCheck;
  /** The checks of single fields, compiled when the first row is refused. */
  readonly #checks = new Map<string, SchemaCheck>();
  /** Whether a field that the schema does not name is news. */
  readonly #closed: boolean;
  readonly #added = new Map<string, { rows: number; schema: FieldSchema; told: boolean }>();
  readonly #contradicting = new Map<string, number>();
  #keyless = 0;
  #replaced = 0;
  #news = false;

  /** @param schema null: nothing is known of the rows, so that nothing contradicts it */
  constructor(stream: string, schema: JsonSchema | null) {
    this.#stream = stream;
    this.#compile = schemaCompiler({ fill: false });
    const fields = Object.entries(schema?.properties ?? {});
    this.fields = new Map(fields.map(([name, field]) => [toLatin1(name), field]));
    this.#accepts = this.#compile({ type: "object", properties: Object.fromEntries(this.fields) });
    this.#closed = schema !== null;
  }

  /** Looks at a row whose text is latin1-decoded UTF-8; returns whether nothing is to be said of it. */
  note(row: Row): boolean {
    if (this.#accepts(row) && (!this.#closed || this.#knows(row))) return true;
    for (const [name, value] of Object.entries(row)) {
      if (!this.fields.has(name)) this.#noteAdded(name, value);
      else if (!this.#checkOf(name)(value))
        this.#contradicting.set(name, (this.#contradicting.get(name) ?? 0) + 1);
    }
    return false;
  }

  #checkOf(name: string): SchemaCheck {
    const check = this.#checks.get(name) ?? this.#compile(this.fields.get(name) ?? {});
    this.#checks.set(name, check);
    return check;
  }

  noteKeyless(): void {
    this.#keyless += 1;
  }

  noteReplaced(): void {
    this.#replaced += 1;
  }

  /** Fields that the schema lacks and that have not been told yet. */
  takeAdded(): Readonly<Record<string, FieldSchema>> | undefined {
    if (!this.#news) return undefined;
    this.#news = false;
    const added: Record<string, FieldSchema> = {};
    for (const [name, field] of this.#added) {
      if (!field.told) added[fromLatin1(name)] = field.schema;
      field.told = true;
    }
    return added;
  }

  /** What a person should know about the rows of this stream; undefined if nothing. */
  report(): string | undefined {
    const lines = [
      ...[...this.#added].map(
        ([name, { rows }]) =>
          `new field "${fromLatin1(name)}" in ${rowsOf(rows)}, which is lost where the catalog lacks it`,
      ),
      ...[...this.#contradicting].map(
        ([name, rows]) => `"${fromLatin1(name)}" is not of its declared type in ${rowsOf(rows)}`,
      ),
      ...(this.#keyless > 0 ? [`no key in ${rowsOf(this.#keyless)}`] : []),
      ...(this.#replaced > 0 ? [`halves of surrogate pairs replaced by U+FFFD: ${this.#replaced}`] : []),
    ];
    return lines.length === 0
      ? undefined
      : `The rows of "${this.#stream}" differ from its schema: ${lines.join("; ")}`;
  }

  /** Whether the schema names every field of a row. Asks ajv nothing, whose lookup of each name costs more than the rest of its check. */
  #knows(row: Row): boolean {
    for (const name in row) if (!this.fields.has(name)) return false;
    return true;
  }

  #noteAdded(name: string, value: unknown): void {
    const known = this.#added.get(name);
    if (known !== undefined) {
      known.rows += 1;
      return;
    }
    const inferred = inferSchema({ type: "object" }, [{ [name]: value }]).properties?.[name] ?? {};
    this.#added.set(name, { rows: 1, schema: inferred as FieldSchema, told: false });
    this.#news = true;
  }
}

const rowsOf = (rows: number): string => `${rows} row${rows === 1 ? "" : "s"}`;
