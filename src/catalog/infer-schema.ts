import { isObject, type JsonObject, kindOf } from "../base/json.ts";
import { isInstant } from "../base/time.ts";
import { type JsonSchema, TIMESTAMP } from "./schema.ts";

/** The fields of deeper objects are not named. */
const MAX_DEPTH = 5;
/** A nested object with more names is a map, and its fields are not named. */
const MAX_NESTED_FIELDS = 200;
/** The schema names at most this number of fields, the most frequent first. */
const MAX_FIELDS = 1000;
/** The program counts at most this number of names. */
const MAX_COUNTED = 20_000;

/**
 * Adds the fields of the records to the declared schema, with types that later records will hardly contradict.
 * Excludes names that platforms cannot store. If names differ only by case, the declared or most frequent name remains.
 */
export function inferSchema(declared: JsonSchema, records: readonly Readonly<JsonObject>[]): JsonSchema {
  const known = new Set(Object.keys(declared.properties ?? {}).map(folded));
  const found = fieldsOf(records, MAX_FIELDS).filter(([name]) => !known.has(folded(name)));
  return {
    ...declared,
    properties: { ...declared.properties, ...schemasOf(found, 1) },
    additionalProperties: true,
  };
}

type Field = readonly [name: string, values: readonly unknown[]];

const byName = ([a]: Field, [b]: Field): number => (a < b ? -1 : 1);

/** The most frequent fields, at most `limit`, in order of their names. No two names differ only by case. */
function fieldsOf(records: readonly Readonly<JsonObject>[], limit: number): readonly Field[] {
  const values = new Map<string, unknown[]>();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      if (!isFieldName(name) || value === undefined) continue;
      const known = values.get(name);
      if (known !== undefined) known.push(value);
      else if (values.size < MAX_COUNTED) values.set(name, [value]);
    }
  }
  const rising = [...values].sort((a, b) => a[1].length - b[1].length || byName(a, b));
  const byFold = new Map(rising.map((field) => [folded(field[0]), field]));
  const commonest = [...byFold.values()].sort(([, a], [, b]) => b.length - a.length);
  return commonest.slice(0, limit).sort(byName);
}

/** The schema of a field. @param depth the number of names in the path of the field */
export function schemaOf(values: readonly unknown[], depth = 1): JsonSchema {
  const present = values.filter((value) => value !== null);
  const kinds = new Set(present.map(kindOf));
  const [kind = "string", another] = kinds;
  if (another !== undefined) return {};
  const type = ["null", kind];
  switch (kind) {
    case "string":
      return kinds.size > 0 && present.every((text) => isInstant(String(text))) ? TIMESTAMP : { type };
    case "array":
      return { type, ...itemsOf(present.flat()) };
    case "object":
      return { type, ...propertiesIn(present.filter(isObject), depth), additionalProperties: true };
    default:
      return { type };
  }
}

/** The schemas of inner fields. Without `properties`, a catalog selects the whole field as one value. */
function propertiesIn(objects: readonly JsonObject[], depth: number): Pick<JsonSchema, "properties"> {
  if (depth >= MAX_DEPTH) return {};
  const fields = fieldsOf(objects, MAX_NESTED_FIELDS + 1);
  return fields.length > MAX_NESTED_FIELDS ? {} : { properties: schemasOf(fields, depth + 1) };
}

function itemsOf(elements: readonly unknown[]): Pick<JsonSchema, "items"> {
  const kinds = new Set(elements.filter((element) => element !== null).map(kindOf));
  const [kind, another] = kinds;
  if (kind === undefined || another !== undefined || kind === "object" || kind === "array") return {};
  return { items: { type: ["null", kind] } };
}

const schemasOf = (fields: readonly Field[], depth: number): Record<string, JsonSchema> =>
  Object.fromEntries(fields.map(([name, values]) => [name, schemaOf(values, depth)]));

/** Whether a schema can contain a field (see inferSchema). @param others the names of the other fields */
export const isNameable = (name: string, others: Iterable<string>): boolean =>
  isFieldName(name) && ![...others].some((other) => folded(other) === folded(name));

const isFieldName = (name: string): boolean =>
  name !== "" && name !== "__proto__" && !name.includes("\0") && !/\p{Surrogate}/u.test(name);

const folded = (name: string): string => name.toLowerCase();
