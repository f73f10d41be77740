import { Ajv } from "ajv";
import { isObject } from "../../src/json.ts";
import { type Node, type Rule, rule, schemaAt, schemasIn, typesOf } from "./json-schema.ts";

const streamsOf = (catalog: unknown): Node[] => {
  const { streams } = schemaAt(catalog);
  return (Array.isArray(streams) ? streams : []).map(schemaAt);
};

const eachStream = (id: string, says: string, isBroken: (stream: Node) => boolean): Rule =>
  rule(id, says, (catalog) =>
    streamsOf(catalog)
      .filter(isBroken)
      .map(({ name }) => String(name)),
  );

const eachSchema = (id: string, says: string, isBroken: (schema: Node) => boolean): Rule =>
  rule(id, says, (catalog) =>
    streamsOf(catalog).flatMap(({ name, json_schema }) =>
      [...schemasIn(json_schema)]
        .filter(({ schema }) => isBroken(schema))
        .map(({ path }) => `${String(name)}${path}`),
    ),
  );

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

const keysOf = ({ source_defined_primary_key: key }: Node): unknown[] => list(key).flat();

const propertyOf = ({ json_schema }: Node, name: unknown): unknown =>
  new Map(Object.entries(schemaAt(schemaAt(json_schema).properties))).get(String(name));

const TYPES = ["null", "string", "number", "integer", "boolean", "object", "array"];
const AIRBYTE_TYPES: Readonly<Record<string, string>> = {
  timestamp_with_timezone: "string",
  timestamp_without_timezone: "string",
  integer: "number",
};

/** All but CD9, which compares two catalogs. */
export const CATALOG_RULES: readonly Rule[] = [
  rule("CD1", "there is a stream", (catalog) => (streamsOf(catalog).length > 0 ? [] : ["no streams"])),
  rule("CD2", "names are unique", (catalog) => {
    const names = streamsOf(catalog).map(({ name }) => String(name));
    return names.filter((name, index) => names.indexOf(name) !== index);
  }),
  eachStream("CD3", "each schema is valid draft-07", ({ json_schema }) => {
    return !new Ajv({ strict: false }).validateSchema(isObject(json_schema) ? json_schema : {});
  }),
  eachStream("CD4", "cursor and key are in the schema", (stream) => {
    const names = [...keysOf(stream), ...list(stream.default_cursor_field)];
    return names.some((name) => propertyOf(stream, name) === undefined);
  }),
  eachSchema("CD5", "no $ref, allOf or not", (schema) => {
    return ["$ref", "allOf", "not"].some((word) => word in schema);
  }),
  eachStream("CD6", "each stream has a sync mode", ({ supported_sync_modes }) => {
    return list(supported_sync_modes).length === 0;
  }),
  eachSchema("CD7", "additionalProperties is true where it is given", ({ additionalProperties = true }) => {
    return additionalProperties !== true;
  }),
  eachStream("CD8", "keys are scalars", (stream) => {
    const types = keysOf(stream).flatMap((name) => typesOf(schemaAt(propertyOf(stream, name))));
    return types.some((type) => type === "object" || type === "array");
  }),
  eachSchema("CD10", "types and formats are those that platforms know", (schema) => {
    const { airbyte_type: airbyte, format } = schema;
    const types = typesOf(schema);
    return (
      types.some((type) => !TYPES.includes(String(type))) ||
      (airbyte !== undefined && !types.includes(AIRBYTE_TYPES[String(airbyte)])) ||
      (format !== undefined && !["date", "date-time", "time"].includes(String(format)))
    );
  }),
  eachStream("CD11", "each stream has a primary key", (stream) => keysOf(stream).length === 0),
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
