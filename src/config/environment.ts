import { isObject, type JsonObject, valueAt } from "../json.ts";
import {
  type Located,
  type SpecProperty,
  settingsIn,
  TAP_VARIABLE_PREFIX,
  typeOf,
  VARIABLE_PREFIX,
  variableOf,
} from "./spec.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What variables may begin with: the first is the one to advise, the last the one that wins. */
export type Prefixes = readonly [string, ...string[]];

export const OUR_PREFIXES: Prefixes = [VARIABLE_PREFIX];

/** Of a tap that was told to read the environment. */
export const TAP_PREFIXES: Prefixes = [TAP_VARIABLE_PREFIX, VARIABLE_PREFIX];

/** The draft with what the environment says in its place. An empty variable says nothing. */
export function withEnvironment(
  draft: JsonObject,
  environment: Environment,
  spec: SpecProperty,
  prefixes: Prefixes,
): JsonObject {
  return variablesIn(environment, spec, prefixes).reduce(
    (merged, { path, property, text }) => placed(merged, path, cast(text, property)),
    draft,
  );
}

/** The variable that sets a property, on its own or as a part of an outer one. Undefined: none does. */
export function variableFor(
  path: readonly string[],
  environment: Environment,
  spec: SpecProperty,
  prefixes: Prefixes,
): string | undefined {
  const name = path.join(".");
  const given = variablesIn(environment, spec, prefixes).filter((variable) => {
    const outer = variable.path.join(".");
    if (name === outer) return true;
    const value = name.startsWith(`${outer}.`) ? parsed(variable.text) : undefined;
    return isObject(value) && valueAt(value, path.slice(variable.path.length)) !== undefined;
  });
  return given.at(-1)?.variable;
}

type Variable = Located & { readonly variable: string; readonly text: string };

/** The variables that say something; of several for one property the last. */
function variablesIn(environment: Environment, spec: SpecProperty, prefixes: Prefixes): readonly Variable[] {
  return [...settingsIn(spec)].flatMap((located) =>
    prefixes
      .map((prefix) => variableOf(located.path, prefix))
      .map((variable) => ({ ...located, variable, text: environment[variable]?.trim() ?? "" }))
      .filter(({ text }) => text !== "")
      .slice(-1),
  );
}

function placed(draft: JsonObject, path: readonly string[], value: unknown): JsonObject {
  const [name = "", ...rest] = path;
  const inner = draft[name];
  return { ...draft, [name]: rest.length === 0 ? value : placed(isObject(inner) ? inner : {}, rest, value) };
}

/** The text as the spec's type, or the text itself where it is none: validation then names the property. */
function cast(text: string, property: SpecProperty): unknown {
  switch (typeOf(property)) {
    case "integer":
    case "number":
      return /^[+-]?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case "boolean":
      return BOOLEANS.get(text.toLowerCase()) ?? text;
    case "array":
      return text.startsWith("[") ? parsed(text) : text;
    case "object":
      return parsed(text);
    default:
      return text;
  }
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false],
]);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
