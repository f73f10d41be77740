import { isObject, objectOf } from "../base/json.ts";
import { readPackageFile } from "../base/package-file.ts";

/** The part of a JSON schema (draft-07) that this program reads and writes. */
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

/** The fields that a schema names. */
export function propertiesOf(schema: unknown): Readonly<Record<string, JsonSchema>> {
  const properties = objectOf(objectOf(schema)["properties"]);
  if (Object.values(properties).every(isObject)) return properties as Record<string, JsonSchema>;
  return Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, objectOf(field)]));
}

/** The value if it is a schema that names fields. */
export const schemaIn = (value: unknown): JsonSchema | undefined =>
  isObject(value) && isObject(value["properties"]) ? (value as JsonSchema) : undefined;

/** A nullable date and time with a zone, in the words of every platform. */
export const TIMESTAMP: JsonSchema = {
  type: ["null", "string"],
  format: "date-time",
  airbyte_type: "timestamp_with_timezone",
};

/** Reads the declared schema of a stream. */
export const loadSchema = (stream: string): JsonSchema =>
  readPackageFile(`schemas/${stream}.json`) as JsonSchema;
