import { Ajv } from "ajv";
import { isObject } from "../../src/json.ts";
import { type Node, schemaAt, schemasIn, typesOf } from "./json-schema.ts";

/** A rule of Airbyte's acceptance tests: what it finds wrong with a discovered catalog. */
export type CatalogRule = {
  readonly id: string;
  readonly says: string;
  readonly broken: (catalog: unknown) => string[];
};

const streamsOf = (catalog: unknown): Node[] => {
  const { streams } = schemaAt(catalog);
  return (Array.isArray(streams) ? streams : []).map(schemaAt);
};

const eachStream =
  (isBroken: (stream: Node) => boolean) =>
  (catalog: unknown): string[] =>
    streamsOf(catalog)
      .filter(isBroken)
      .map(({ name }) => String(name));

const eachSchema =
  (isBroken: (schema: Node) => boolean) =>
  (catalog: unknown): string[] =>
    streamsOf(catalog).flatMap(({ name, json_schema }) =>
      [...schemasIn(json_schema)]
        .filter(({ schema }) => isBroken(schema))
        .map(({ path }) => `${String(name)}${path}`),
    );

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const propertyOf = ({ json_schema }: Node, name: unknown): unknown =>
  new Map(Object.entries(schemaAt(schemaAt(json_schema).properties))).get(String(name));

const TYPES = ["null", "string", "number", "integer", "boolean", "object", "array"];
const AIRBYTE_TYPES: Readonly<Record<string, string>> = {
  timestamp_with_timezone: "string",
  timestamp_without_timezone: "string",
  integer: "number",
};

/** All but CD9, which compares two catalogs. */
export const CATALOG_RULES: readonly CatalogRule[] = [
  {
    id: "CD1",
    says: "there is a stream",
    broken: (catalog) => (streamsOf(catalog).length > 0 ? [] : ["no streams"]),
  },
  {
    id: "CD2",
    says: "names are unique",
    broken: (catalog) => {
      const names = streamsOf(catalog).map(({ name }) => String(name));
      return names.filter((name, index) => names.indexOf(name) !== index);
    },
  },
  {
    id: "CD3",
    says: "each schema is valid draft-07",
    broken: eachStream(
      ({ json_schema }) =>
        !new Ajv({ strict: false }).validateSchema(isObject(json_schema) ? json_schema : {}),
    ),
  },
  {
    id: "CD4",
    says: "cursor and key are in the schema",
    broken: eachStream((stream) =>
      [...list(stream.source_defined_primary_key).flat(), ...list(stream.default_cursor_field)].some(
        (name) => propertyOf(stream, name) === undefined,
      ),
    ),
  },
  {
    id: "CD5",
    says: "no $ref, allOf or not",
    broken: eachSchema((schema) => ["$ref", "allOf", "not"].some((word) => word in schema)),
  },
  {
    id: "CD6",
    says: "each stream has a sync mode",
    broken: eachStream(({ supported_sync_modes }) => list(supported_sync_modes).length === 0),
  },
  {
    id: "CD7",
    says: "additionalProperties is true where it is given",
    broken: eachSchema(({ additionalProperties = true }) => additionalProperties !== true),
  },
  {
    id: "CD8",
    says: "keys are scalars",
    broken: eachStream((stream) =>
      list(stream.source_defined_primary_key)
        .flat()
        .some((name) =>
          typesOf(schemaAt(propertyOf(stream, name))).some((type) => type === "object" || type === "array"),
        ),
    ),
  },
  {
    id: "CD10",
    says: "types and formats are those that platforms know",
    broken: eachSchema((schema) => {
      const { airbyte_type: airbyte, format } = schema;
      const types = typesOf(schema);
      return (
        types.some((type) => !TYPES.includes(String(type))) ||
        (airbyte !== undefined && !types.includes(AIRBYTE_TYPES[String(airbyte)])) ||
        (format !== undefined && !["date", "date-time", "time"].includes(String(format)))
      );
    }),
  },
  {
    id: "CD11",
    says: "each stream has a primary key",
    broken: eachStream(({ source_defined_primary_key }) => list(source_defined_primary_key).length === 0),
  },
];

/** CD9: what a connection made with the previous catalog would lose. */
export function catalogBreaks(previous: unknown, current: unknown): string[] {
  const now = new Map(streamsOf(current).map((stream) => [stream.name, stream]));
  return streamsOf(previous).flatMap((stream) => {
    const next = now.get(stream.name);
    const name = String(stream.name);
    if (next === undefined) return [`${name} was removed`];
    const fixed = (["default_cursor_field", "source_defined_primary_key"] as const).filter(
      (key) => JSON.stringify(stream[key]) !== JSON.stringify(next[key]),
    );
    const after = new Map([...schemasIn(next.json_schema)].map(({ path, schema }) => [path, schema]));
    const fields = [...schemasIn(stream.json_schema)].filter(({ path, schema }) => {
      const { type, format } = after.get(path) ?? { type: "removed" };
      return JSON.stringify([type, format]) !== JSON.stringify([schema.type, schema.format]);
    });
    return [
      ...fixed.map((key) => `${name} has another ${key}`),
      ...fields.map(({ path }) => `${name}${path} changed`),
    ];
  });
}
