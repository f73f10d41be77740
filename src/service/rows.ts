import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, quoted } from "../base/json.ts";
import { type SchemaCheck, schemaCompiler } from "../base/json-schema.ts";
import { compactJson, memberText, memberTexts } from "../base/json-text.ts";
import { fromLatin1, toLatin1 } from "../base/text.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/service.ts";
import { toRawLine } from "./decode.ts";
import { LinePattern, type SuppressionGroups } from "./fast-match.ts";
import { RowNotes } from "./row-notes.ts";

/** Fields that one function checks. V8 optimizes no longer function: see SHORT_FUNCTIONS in main.ts. */
const FIELDS_AT_ONCE = 6;

/** How rows of a stream are distinguished and checked. */
export type RowRules = {
  readonly key: string;
  readonly cursor: string | null;
  /** The declared schema of the rows; null: any row obeys it. */
  readonly schema: JsonSchema | null;
  readonly suppression?: SuppressionGroups | undefined;
  /** Takes the facts that the rows teach; absent: new ones. */
  readonly notes?: RowNotes;
};

/** How rows are checked as they arrive. */
export type RowCheck = Pick<RowRules, "schema" | "notes">;

/**
 * Turns lines and values into rows. A usual line is known by one regular expression; any other is parsed and compared
 * with the schema. A row that contradicts the schema is still a row; the notes say what it taught.
 */
export class RowParser {
  readonly key: string;
  readonly notes: RowNotes;
  readonly #cursor: string | null;
  readonly #pattern: LinePattern;
  /** The declared fields by their latin1-decoded names. */
  readonly #fields: ReadonlyMap<string, JsonSchema>;
  readonly #accepts: (row: Readonly<JsonObject>) => boolean;
  /** Compiles a schema once. */
  readonly #compile: Compile;
  /** Whether a field that the schema does not name is new. */
  readonly #closed: boolean;
  readonly #suppression: RowRules["suppression"];

  constructor({ key, cursor, schema, suppression, notes = new RowNotes() }: RowRules) {
    this.key = key;
    this.notes = notes;
    this.#suppression = suppression;
    this.#cursor = cursor;
    this.#compile = schemaCompiler({ fill: false });
    const fields = Object.entries(schema?.properties ?? {});
    this.#fields = new Map(fields.map(([name, field]) => [toLatin1(name), field]));
    this.#accepts = checkOfAll(this.#compile, this.#fields);
    this.#closed = schema !== null;
    this.#pattern = new LinePattern(this.#fields, key, cursor, suppression);
  }

  /** The row of a usual line; undefined for a line that has to be parsed. */
  match(line: string): Row | undefined {
    return this.#pattern.match(line);
  }

  /** The row of a parsed line. */
  parse(raw: RawLine, value: Readonly<JsonObject>): Row {
    const isSuppressed = this.#suppression?.fields.some((field) =>
      memberTexts(raw, field).some((json) => this.#suppression?.hasJson(field, json)),
    );
    if (isSuppressed !== true) this.#compare(value);
    const key = keyText(raw, this.key, value[this.key]);
    if (key === "" && isSuppressed !== true) this.notes.withoutKey += 1;
    return { raw, key, cursor: this.#cursor === null ? null : cursorText(value[this.#cursor]), isSuppressed };
  }

  /**
   * The row of an element of a list, written as an export writes it, so that keys and cursors compare.
   * @param text the JSON of an object, as latin1
   */
  parseElement(text: string): Row {
    const raw = toRawLine(compactJson(text), this.notes);
    return this.parse(raw, JSON.parse(raw));
  }

  /** Records that are no rows of an export, such as the results of jobs, as lines. */
  toLines(records: readonly Readonly<JsonObject>[]): readonly RawLine[] {
    return records.map((record) => {
      const raw = toRawLine(toLatin1(JSON.stringify(record)), this.notes);
      this.#compare(JSON.parse(raw));
      return raw;
    });
  }

  #compare(row: Readonly<JsonObject>): void {
    if (this.#accepts(row) && (!this.#closed || this.#knows(row))) {
      this.#pattern.learn(Object.keys(row));
      return;
    }
    for (const [name, value] of Object.entries(row)) {
      const schema = this.#fields.get(name);
      if (schema === undefined) this.notes.addNewField(name, value, this.#fields.keys());
      else if (!this.#compile(schema)(value)) this.notes.addContradiction(name);
    }
  }

  /** Whether the schema names every field of a row. In ajv the lookup of each name would cost more than the rest of a check. */
  #knows(row: Readonly<JsonObject>): boolean {
    for (const name in row) if (!this.#fields.has(name)) return false;
    return true;
  }
}

/** A text, or the digits of a number. */
function cursorText(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : null;
}

/**
 * The JSON of a key as latin1, with its escapes resolved, so that 1 is not "1" and no integer is rounded. Empty for a row
 * without a key: null, an empty text, a boolean, a list and an object tell nothing apart.
 */
function keyText(raw: RawLine, name: string, value: unknown): string {
  const written = (): string => memberText(raw, fromLatin1(name)) ?? "null";
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : written();
  if (typeof value !== "string" || value === "") return "";
  // Escapes of a latin1-decoded line mean other characters than its bytes.
  const text = raw.includes("\\u") ? toLatin1(String(JSON.parse(fromLatin1(written())))) : value;
  return JSON.stringify(text);
}

type Compile = (schema: object) => SchemaCheck;

/** One check of all fields, in parts: the compiler also calls itself once a field. */
function checkOfAll(
  compile: Compile,
  fields: ReadonlyMap<string, JsonSchema>,
): (row: Readonly<JsonObject>) => boolean {
  const entries = [...fields];
  const checks: SchemaCheck[] = [];
  for (let at = 0; at < entries.length; at += FIELDS_AT_ONCE)
    checks.push(checkOf(compile, entries.slice(at, at + FIELDS_AT_ONCE)));
  return (row) => checks.every((check) => check(row));
}

/**
 * The check of some fields.
 * @throws ConfigError for a schema that is none: it may come from a catalog, as any JSON
 */
function checkOf(
  compile: Compile,
  fields: readonly (readonly [name: string, schema: JsonSchema])[],
): SchemaCheck {
  try {
    const properties = Object.fromEntries(fields);
    // The compiler looks at a schema only where a row asks for it.
    if (Object.values(properties).every((schema) => isObject(schema) || typeof schema === "boolean"))
      return compile({ type: "object", properties });
  } catch {
    // Said below.
  }
  const names = fields.map(([name]) => quoted(fromLatin1(name))).join(", ");
  throw new ConfigError(
    `Cannot use the catalog: a schema among those of ${names} is not one. Discover again`,
  );
}
