import type { StreamSpec } from "../catalog/streams.ts";
import type { FieldAction, FieldRule, FieldRules } from "./field-rules.ts";

/** One entry of `only_fields`. `stream`: null for all; `path`: names from there on, `*` at its end for a complete object. */
export type OnlyEntry = { readonly stream: string | null; readonly path: readonly string[] };

/** Whether an entry narrows a stream. */
export const concerns = ({ stream }: Pick<OnlyEntry, "stream">, { name }: StreamSpec): boolean =>
  stream === null || stream === name;

const NOT_NAMED: FieldAction = { kind: "drop", setting: "only_fields" };

/**
 * What `only_fields` lets out of the rows of a stream; null: no entry concerns it, and everything leaves. Keys and cursors
 * always leave. A name stands for a value that is no object; of an object only what is named inside leaves.
 */
export function onlyRules(entries: readonly OnlyEntry[], spec: StreamSpec): FieldRules | null {
  const paths = entries.flatMap((entry) => (concerns(entry, spec) ? [entry.path] : []));
  const rule = paths.length === 0 ? "keep" : ruleOf(paths);
  if (rule === "keep") return null;
  const needed = [...spec.primaryKey, ...(spec.cursorField === null ? [] : [spec.cursorField])];
  const kept = needed.map((name): [string, FieldRule] => [name, "keep"]);
  return { others: NOT_NAMED, fields: new Map([...rule.fields, ...kept]) };
}

/** @param paths what is named, from here on; an empty one names the value that stands here */
function ruleOf(paths: readonly (readonly string[])[]): "keep" | FieldRules {
  if (paths.some(([name]) => name === "*")) return "keep";
  const names = new Set(paths.flatMap(([name]) => name ?? []));
  const fields = [...names].map((name): [string, FieldRule] => [
    name,
    ruleOf(paths.filter(([first]) => first === name).map(([, ...rest]) => rest)),
  ]);
  const onlyObjects = !paths.some(({ length }) => length === 0);
  return { others: NOT_NAMED, fields: new Map(fields), onlyObjects };
}
