import type { FieldRule, FieldRules } from "./field-rules.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

/** The schema of what the rules leave of a value. */
export function privateSchema(schema: JsonSchema, rule: FieldRule): JsonSchema {
  if (rule === "keep") return schema;
  if ("kind" in rule) return hashedSchema(schema);
  const dropped = (name: string): boolean => isDrop(rule.fields.get(name) ?? rule.others);
  return withInner(
    schema,
    (name, property) =>
      dropped(name) ? undefined : privateSchema(property, rule.fields.get(name) ?? rule.others),
    (items) => privateSchema(items, rule),
  );
}

const isDrop = (rule: FieldRule): boolean => rule !== "keep" && "kind" in rule && rule.kind !== "hash";

/** A list stays a list, of digests. */
function hashedSchema({ title, description, type, items }: JsonSchema): JsonSchema {
  const words = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
  if (![type].flat().includes("array")) return { ...words, type: ["null", "string"] };
  return { ...words, type: ["null", "array"], ...(items !== undefined && { items: hashedSchema(items) }) };
}

/** A schema that takes any value in the fields that do not leave as they came, and knows the names of the dropped. */
export function arrivingSchema(schema: JsonSchema, rules: FieldRules): JsonSchema {
  const known = opened(schema, rules);
  const dropped = [...rules.fields].flatMap(([name, rule]) => (isDrop(rule) ? [[name, {}] as const] : []));
  return { ...known, properties: { ...known.properties, ...Object.fromEntries(dropped) } };
}

function opened(schema: JsonSchema, rule: FieldRule): JsonSchema {
  if (rule === "keep") return schema;
  if ("kind" in rule) return {};
  return withInner(
    schema,
    (name, property) => opened(property, rule.fields.get(name) ?? rule.others),
    (items) => opened(items, rule),
  );
}

/** A schema with other fields and elements; a field for which `field` returns undefined goes. */
function withInner(
  schema: JsonSchema,
  field: (name: string, property: JsonSchema) => JsonSchema | undefined,
  element: (items: JsonSchema) => JsonSchema,
): JsonSchema {
  const { properties, items, required } = schema;
  const fields = Object.entries(properties ?? {}).flatMap(([name, property]) => {
    const inner = field(name, property);
    return inner === undefined ? [] : [[name, inner] as const];
  });
  const kept = Object.fromEntries(fields);
  return {
    ...schema,
    ...(required !== undefined && { required: required.filter((name) => Object.hasOwn(kept, name)) }),
    ...(properties !== undefined && { properties: kept }),
    ...(items !== undefined && { items: element(items) }),
  };
}

/** What a catalog says of fields that the config changes. `mistyped`: hashed, but no text there; `dropped`: named all the same. */
export type CatalogConflicts = { readonly mistyped: readonly string[]; readonly dropped: readonly string[] };

export function catalogConflicts(schema: JsonSchema, rules: FieldRules): CatalogConflicts {
  const found = [...conflictsIn(schema, rules, [])];
  const named = (kind: "hash" | "drop"): readonly string[] =>
    found.flatMap((conflict) => (conflict.kind === kind ? [conflict.path.join(".")] : []));
  return { mistyped: named("hash"), dropped: named("drop") };
}

type Conflict = { readonly kind: "hash" | "drop"; readonly path: readonly string[] };

function* conflictsIn(schema: JsonSchema, rule: FieldRule, path: readonly string[]): Generator<Conflict> {
  if (rule === "keep") return;
  if ("kind" in rule) {
    if (rule.kind !== "hash") yield { kind: "drop", path };
    else if (!takesDigests(schema)) yield { kind: "hash", path };
    return;
  }
  if (schema.items !== undefined) yield* conflictsIn(schema.items, rule, path);
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    yield* conflictsIn(property, rule.fields.get(name) ?? rule.others, [...path, name]);
  }
}

function takesDigests({ type, items, format, enum: words }: JsonSchema): boolean {
  const kinds = [type ?? []].flat();
  return (
    kinds.every((kind) => ["null", "string", "array"].includes(kind)) &&
    format === undefined &&
    words === undefined &&
    (items === undefined || takesDigests(items))
  );
}
