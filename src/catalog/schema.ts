import { isObject } from "../json.ts";
import { readPackageFile } from "../package-file.ts";
import { parseInstant } from "../time.ts";

/** A JSON schema (draft-07), as far as this program reads and writes it. */
export type JsonSchema = {
  readonly $schema?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly airbyte_type?: string;
  readonly additionalProperties?: boolean;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
};

/** The fields that a schema names; none for what is no schema of an object. */
export function propertiesOf(schema: unknown): Readonly<Record<string, JsonSchema>> {
  const { properties } = isObject(schema) ? schema : {};
  if (!isObject(properties)) return {};
  const areObjects = Object.values(properties).every(isObject);
  const entries = Object.entries(properties).map(([name, field]) => [name, isObject(field) ? field : {}]);
  return (areObjects ? properties : Object.fromEntries(entries)) as Record<string, JsonSchema>;
}

/** A nullable date and time with a zone, in the words of every platform. */
export const TIMESTAMP: JsonSchema = {
  type: ["null", "string"],
  format: "date-time",
  airbyte_type: "timestamp_with_timezone",
};

/** Whether a value may stand in a column of timestamps. */
export const isTimestamp = (value: string): boolean => parseInstant(value) !== null;

/** Reads one of the declared schemas. */
export function loadSchema(file: string): JsonSchema {
  return readPackageFile(`schemas/${file}`) as JsonSchema;
}
