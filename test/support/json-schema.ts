import { isObject } from "../../src/json.ts";

type Keyword =
  | ("type" | "properties" | "items" | "oneOf" | "required" | "enum" | "const" | "minimum" | "maximum")
  | ("pattern" | "format" | "additionalProperties" | "airbyte_secret" | "airbyte_type" | "order" | "group")
  | ("groups" | "display_type" | "advanced_auth" | "streams" | "name" | "id" | "json_schema")
  | ("default_cursor_field" | "supported_sync_modes" | "source_defined_primary_key");

/** A node of an untrusted spec or catalog. */
export type Node = { readonly [keyword in Keyword]?: unknown };

/** An object schema, or nothing. */
export const schemaAt = (value: unknown): Node => (isObject(value) ? value : {});

/** Every schema below `properties`, `items` and `oneOf` of one, with its path; the schema itself first. */
export function* schemasIn(schema: unknown, path = ""): Generator<{ path: string; schema: Node }> {
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
export function typesOf({ type }: Node): unknown[] {
  return (Array.isArray(type) ? type : type === undefined ? [] : [type]).filter((name) => name !== "null");
}

/** A rule of Airbyte's acceptance tests: what it finds wrong with a specification or a discovered catalog. */
export type Rule = {
  readonly id: string;
  readonly says: string;
  readonly broken: (whole: unknown) => string[];
};

export const rule = (id: string, says: string, broken: Rule["broken"]): Rule => ({ id, says, broken });
