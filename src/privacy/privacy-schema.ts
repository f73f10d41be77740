import { type JsonSchema, propertiesOf } from "../catalog/schema.ts";
import { type FieldRule, type FieldRules, isDrop, ruleFor } from "./field-rules.ts";

/** The fields of a catalog that the config changes. `mistyped`: hashed, but no text there; `dropped`: named anyway. */
export function catalogConflicts(schema: JsonSchema, rules: FieldRules) {
  const [mistyped, dropped]: [string[], string[]] = [[], []];
  const look = (inner: JsonSchema, rule: FieldRule, path: readonly string[]): void => {
    if (rule === "keep") return;
    if ("kind" in rule) {
      if (isDrop(rule)) dropped.push(path.join("."));
      else if (!takesDigests(inner)) mistyped.push(path.join("."));
      return;
    }
    if (inner.items !== undefined) look(inner.items, rule, path);
    for (const [name, property] of Object.entries(propertiesOf(inner)))
      look(property, ruleFor(name, rule), [...path, name]);
  };
  look(schema, rules, []);
  return { mistyped, dropped };
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
