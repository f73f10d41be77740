import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, quoted } from "../base/json.ts";
import { type SchemaCheck, schemaCompiler } from "../base/json-schema.ts";
import { compactJson, memberText, memberTexts } from "../base/json-text.ts";
import { fromLatin1, toLatin1 } from "../base/text.ts";
import type { JsonSchema } from "../catalog/schema.ts";
import type { RawLine } from "../sync/event.ts";
import type { Row } from "../sync/service.ts";
import { toRawLine } from "./decode.ts";
import { LinePattern, type MatchRules } from "./fast-match.ts";
import { RowNotes } from "./row-notes.ts";

/** The number of fields that one function checks. V8 does not optimize longer functions: see SHORT_FUNCTIONS in main.ts. */
const FIELDS_AT_ONCE = 6;

/** The rules that find the key of a row and check its fields. */
export type RowRules = MatchRules & {
  /** The declared schema of the rows; null: any row is correct. */
  readonly schema: JsonSchema | null;
  /** Collects facts about the rows; absent: new notes. */
  readonly notes?: RowNotes;
};

/** The rules by which arriving rows are checked. */
export type RowCheck = Pick<RowRules, "schema" | "notes">;

/**
 * Turns lines and values into rows. One regular expression matches usual lines; other lines are parsed and compared with the schema.
 * A row that contradicts the schema is still a row, and the notes count the contradiction.
 */
export class RowParser {
  readonly key: string;
  readonly notes: RowNotes;
  readonly #cursor: string | null;
  readonly #pattern: LinePattern;
  /** The declared fields by their latin1-decoded names. */
  readonly #fields: ReadonlyMap<string, JsonSchema>;
  readonly #accepts: (row: Readonly<JsonObject>) => boolean;
  readonly #compile: Compile;
  /** Whether the parser notes fields that the schema does not name as new fields. */
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
    this.#pattern = new LinePattern(this.#fields, { key, cursor, suppression });
  }

  /** The row of a usual line; undefined for other lines, which must be parsed. */
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

  /** The row of an element of a list, with JSON like an export, so that keys and cursors are comparable. @param text JSON as latin1 */
  parseElement(text: string): Row {
    const raw = toRawLine(compactJson(text), this.notes);
    return this.parse(raw, JSON.parse(raw));
  }

  /** The lines of records that do not come from an export (results of jobs). */
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

  /** Whether the schema names every field of a row. ajv would need more time for this than for the rest of the check. */
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
 * The JSON of a key as latin1 without escapes, so that 1 is not "1" and no integer is rounded.
 * Empty for a value that cannot distinguish rows: null, an empty text, a boolean, a list or an object.
 */
function keyText(raw: RawLine, name: string, value: unknown): string {
  const written = (): string => memberText(raw, fromLatin1(name)) ?? "null";
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : written();
  if (typeof value !== "string" || value === "") return "";
  // An escape in a latin1-decoded line means a Unicode character, so the text is decoded to UTF-8 and back.
  const text = raw.includes("\\u") ? toLatin1(String(JSON.parse(fromLatin1(written())))) : value;
  return JSON.stringify(text);
}

type Compile = (schema: object) => SchemaCheck;

/** The check of all fields, in parts, because the compiler calls itself for each field. */
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

/** The check of some fields. @throws ConfigError for a wrong schema, because a catalog may contain any JSON */
function checkOf(
  compile: Compile,
  fields: readonly (readonly [name: string, schema: JsonSchema])[],
): SchemaCheck {
  try {
    const properties = Object.fromEntries(fields);
    // Here the compiler ignores values that are not schemas, until a row has the field. So the values are checked first.
    if (Object.values(properties).every((schema) => isObject(schema) || typeof schema === "boolean"))
      return compile({ type: "object", properties });
  } catch {
    // The error below names the fields.
  }
  const names = fields.map(([name]) => quoted(fromLatin1(name))).join(", ");
  throw new ConfigError(`Cannot use the catalog: one of the schemas of ${names} is wrong. Discover again`);
}
