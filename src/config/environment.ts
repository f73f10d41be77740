import { resolve } from "node:path";
import { isObject, type JsonObject, tryParseJson, valueAt } from "../base/json.ts";
import { isFile, type SpecProperty, settingsIn, typeOf, VARIABLE_PREFIX, variableOf } from "./spec.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Prefixes of variables. If two prefixes give a setting, the last prefix wins. */
export type Prefixes = readonly string[];

export const OUR_PREFIXES: Prefixes = [VARIABLE_PREFIX];

/** The prefixes for a tap with `--config ENV`. */
export const TAP_PREFIXES: Prefixes = [`TAP_${VARIABLE_PREFIX}`, VARIABLE_PREFIX];

/** Adds variables that are not empty to a draft. `variables`: the variable of each setting and inner setting. */
export function withEnvironment(
  draft: JsonObject,
  environment: Environment,
  prefixes: Prefixes,
): { readonly merged: JsonObject; readonly variables: ReadonlyMap<string, string> } {
  const variables = new Map<string, string>();
  let merged = draft;
  for (const { path, property } of settingsIn()) {
    const names = prefixes.map((prefix) => variableOf(path, prefix));
    const variable = names.findLast((name) => (environment[name] ?? "").trim() !== "");
    if (variable === undefined) continue;
    const value = cast((environment[variable] ?? "").trim(), property);
    merged = placed(merged, path, value);
    variables.set(path.join("."), variable);
    for (const inner of settingsIn(property))
      if (valueAt(value, inner.path) !== undefined)
        variables.set([...path, ...inner.path].join("."), variable);
  }
  return { merged, variables };
}

/** Makes the paths of files in a draft absolute. @param variables the variable of each setting */
export function withPaths(
  draft: JsonObject,
  variables: ReadonlyMap<string, string>,
  folder: string,
): JsonObject {
  const paths = [...settingsIn()].map(({ path }) => path).filter((path) => isFile(path.at(-1)));
  return paths.reduce((all, path) => {
    const file = valueAt(all, path);
    if (typeof file !== "string" || file === "") return all;
    return placed(all, path, resolve(variables.has(path.join(".")) ? "" : folder, file));
  }, draft);
}

/** Sets the value at a path of a draft. */
function placed(draft: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name = "", ...rest] = path;
  const inner = draft[name];
  return { ...draft, [name]: rest.length === 0 ? value : placed(isObject(inner) ? inner : {}, rest, value) };
}

/** Converts a text to the spec's type. A wrong text is unchanged, and the validation names it. */
function cast(text: string, property: SpecProperty): unknown {
  switch (typeOf(property)) {
    case "integer":
      return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case "boolean":
      if (/^(?:true|1|yes|on)$/i.test(text)) return true;
      return /^(?:false|0|no|off)$/i.test(text) ? false : text;
    case "array":
      return (text.startsWith("[") ? tryParseJson(text) : undefined) ?? text;
    case "object": {
      const value = tryParseJson(text);
      return value === undefined ? text : value;
    }
    default:
      return text;
  }
}
