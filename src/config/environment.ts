import { isObject, type JsonObject } from "../json.ts";
import { propertiesOf, type SpecProperty, typeOf, variableOf } from "./spec.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The draft with what the environment says in its place. An empty variable says nothing. */
export function withEnvironment(draft: JsonObject, environment: Environment, spec: SpecProperty): JsonObject {
  const merged = structuredClone(draft);
  for (const { path, property } of propertiesOf(spec)) {
    const text = environment[variableOf(path)]?.trim() ?? "";
    if (text !== "") place(merged, path, cast(text, property));
  }
  return merged;
}

function place(draft: JsonObject, path: readonly string[], value: unknown): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) {
    draft[name] = value;
    return;
  }
  const inner = draft[name];
  const next: JsonObject = isObject(inner) ? inner : {};
  draft[name] = next;
  place(next, rest, value);
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
      return text.startsWith("[") ? parsed(text) : text.split(",");
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
