import type { FieldRule, FieldRules } from "./field-rules.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

/** The fields of a catalog that the config changes. `mistyped`: hashed, but no text there; `dropped`: named anyway. */
export function catalogConflicts(schema: JsonSchema, rules: FieldRules) {
  const found = [...conflictsIn(schema, rules, [])];
  const named = (kind: Conflict["kind"]): readonly string[] =>
    found.filter((conflict) => conflict.kind === kind).map(({ path }) => path.join("."));
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
