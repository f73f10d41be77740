import { isObject, type JsonObject } from "../../src/json.ts";

/** An object schema, or nothing. */
export const schemaAt = (value: unknown): JsonObject => (isObject(value) ? value : {});

/** Every schema below `properties`, `items` and `oneOf` of one, with its path; the schema itself first. */
export function* schemasIn(schema: unknown, path = ""): Generator<{ path: string; schema: JsonObject }> {
  if (!isObject(schema)) return;
  yield { path, schema };
  const { properties, items, oneOf } = schema;
  for (const [name, inner] of Object.entries(schemaAt(properties)))
    yield* schemasIn(inner, `${path}/${name}`);
  yield* schemasIn(items, `${path}/[]`);
  for (const [index, inner] of (Array.isArray(oneOf) ? oneOf : []).entries()) {
    yield* schemasIn(inner, `${path}/oneOf${index}`);
  }
}

/** The types of a schema, null left out. */
export function typesOf({ type }: JsonObject): unknown[] {
  return (Array.isArray(type) ? type : type === undefined ? [] : [type]).filter((name) => name !== "null");
}
