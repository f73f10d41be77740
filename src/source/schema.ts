import { readFileSync } from "node:fs";
import { parseInstant } from "../timestamp.ts";

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
};

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
  return JSON.parse(readFileSync(new URL(`../../schemas/${file}`, import.meta.url), "utf8"));
}
