import { type FieldAction, type FieldRule, type FieldRules, KEEP_ALL } from "../catalog/field-rules.ts";
import type { StreamSpec } from "../catalog/streams.ts";
import type { Setting } from "./settings.ts";

const NOT_NAMED: FieldAction = { kind: "drop", setting: "only_fields" };

/** The rules of `only_fields` for a stream. Keys and cursors always leave. `*` at the end names a complete object. */
export function onlyRules(settings: readonly Setting[], { primaryKey, cursorField }: StreamSpec): FieldRules {
  const paths = settings.flatMap(({ list, path }) => (list === "only_fields" ? [path] : []));
  const rule = paths.length === 0 ? "keep" : ruleOf(paths);
  if (rule === "keep") return KEEP_ALL;
  const needed = cursorField === null ? primaryKey : [...primaryKey, cursorField];
  const kept = needed.map((name): [string, FieldRule] => [name, "keep"]);
  return { defaultRule: NOT_NAMED, fields: new Map([...rule.fields, ...kept]) };
}

/** @param paths the rest of each path from here on; an empty one names the value itself */
function ruleOf(paths: readonly (readonly string[])[]): "keep" | FieldRules {
  if (paths.some(([name]) => name === "*")) return "keep";
  const names = new Set(paths.flatMap(([name]) => name ?? []));
  const fields = [...names].map((name): [string, FieldRule] => [
    name,
    ruleOf(paths.filter(([first]) => first === name).map(([, ...rest]) => rest)),
  ]);
  const onlyObjects = !paths.some(({ length }) => length === 0);
  return { defaultRule: NOT_NAMED, fields: new Map(fields), onlyObjects };
}
