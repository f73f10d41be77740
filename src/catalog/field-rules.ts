import { isObject } from "../base/json.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

/** Decides about the value of a field. A rule for a list applies to each of its elements. */
export type FieldRule = "keep" | FieldAction | FieldRules;

/**
 * Decides about the fields of an object; `defaultRule` is for those that `fields` does not name.
 * With `onlyObjects`, a value that is no object becomes null.
 */
export type FieldRules = {
  readonly defaultRule: FieldRule;
  readonly fields: ReadonlyMap<string, FieldRule>;
  readonly onlyObjects?: boolean;
};

/** Every field leaves as it is. */
export const KEEP_ALL: FieldRules = { defaultRule: "keep", fields: new Map() };

/** `setting`: the cause, for messages. */
export type FieldAction = {
  readonly kind: "drop" | "hash" | "unlisted";
  readonly setting: string;
  /** The names that the catalog has where it lacks an unlisted field. */
  readonly among?: readonly string[];
};

/** Drops a field and reports it, because the catalog does not name it. */
export const unlisted = (among: readonly string[]): FieldAction => ({
  ...{ kind: "unlisted", setting: "the catalog", among },
});

/** Returns what leaves of the line of a row. `names`: the fields of a usual row (see UsualNames). */
export type Rewrite = (line: string, names?: readonly string[]) => string;

/** Decides which fields of rows leave, by the settings. The config's rules are in privacy/. */
export type FieldFilter = {
  /** The rules of a stream; KEEP_ALL if all fields leave as they are. */
  rules(stream: string): FieldRules;
  /**
   * Applies the settings, and then a catalog, to the lines of a stream; null if all leave as they are.
   * @param selection the fields that a catalog selects
   * @param report gets the path of each field of a row that the catalog does not name, and the names that it has there
   */
  rewriter(
    stream: string,
    selection?: FieldRules,
    report?: (path: readonly string[], among: readonly string[]) => void,
  ): Rewrite | null;
  /** Replaces a field's value where a row repeats it in another field; null if the field leaves as it is. */
  replacementFor(stream: string, field: string): ((value: string) => string) | null;
  /** A warning for each setting whose field is in no schema and in no row. */
  unused(): readonly string[];
};

export const ruleFor = (name: string, { fields, defaultRule }: FieldRules): FieldRule =>
  fields.get(name) ?? defaultRule;

export const isDrop = (rule: FieldRule): boolean => rule !== "keep" && "kind" in rule && rule.kind !== "hash";

/** Makes one set of rules of two: the second is for what the first leaves. Only the first may hash. */
export function joined(first: FieldRules, second: FieldRules): FieldRules {
  if (first === KEEP_ALL) return second;
  if (second === KEEP_ALL) return first;
  const names = [...first.fields.keys(), ...second.fields.keys()];
  return {
    defaultRule: joinedRule(first.defaultRule, second.defaultRule),
    fields: new Map(names.map((name) => [name, joinedRule(ruleFor(name, first), ruleFor(name, second))])),
    onlyObjects: first.onlyObjects === true || second.onlyObjects === true,
  };
}

function joinedRule(first: FieldRule, second: FieldRule): FieldRule {
  if (first === "keep") return second;
  if (second === "keep" || isDrop(first)) return first;
  if (!("kind" in first)) return "kind" in second ? second : joined(first, second);
  if ("kind" in second) return { ...second, setting: first.setting };
  // A digest is no object.
  return second.onlyObjects === true ? { ...first, kind: "drop" } : first;
}

/**
 * The schema of rows under rules: of what leaves, or for a check of rows as they arrive.
 * The check accepts any value in fields that do not leave as they came.
 */
export function schemaUnder(rules: FieldRules, schema: JsonSchema, view: "arriving" | "leaving"): JsonSchema {
  if (rules === KEEP_ALL) return schema;
  const seen = seenSchema(schema, rules, view);
  if (view === "leaving") return seen;
  const dropped = [...rules.fields].flatMap(([name, rule]) => (isDrop(rule) ? [[name, {}] as const] : []));
  return { ...seen, properties: { ...seen.properties, ...Object.fromEntries(dropped) } };
}

function seenSchema(schema: JsonSchema, rule: FieldRule, view: "arriving" | "leaving"): JsonSchema {
  if (rule === "keep") return schema;
  if ("kind" in rule) return view === "arriving" ? {} : hashedSchema(schema);
  const { properties, items, required } = schema;
  const fields = Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const inner = ruleFor(name, rule);
    return view === "leaving" && isDrop(inner) ? [] : [[name, seenSchema(property, inner, view)] as const];
  });
  const kept = Object.fromEntries(fields);
  return {
    ...schema,
    ...(Array.isArray(required) && { required: required.filter((name) => Object.hasOwn(kept, name)) }),
    ...(properties !== undefined && { properties: kept }),
    ...(items !== undefined && { items: seenSchema(items, rule, view) }),
  };
}

/** A list becomes a list of digests. A value that may also be something else may become one digest. */
function hashedSchema({ title, description, type, items }: JsonSchema): JsonSchema {
  const words = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
  const kinds = [type].flat();
  if (!kinds.includes("array")) return { ...words, type: ["null", "string"] };
  const hashed = kinds.every((kind) => kind === "array" || kind === "null")
    ? ["null", "array"]
    : ["null", "string", "array"];
  return { ...words, type: hashed, ...(items !== undefined && { items: hashedSchema(items) }) };
}

/** Fields of a catalog that rules change. `mistyped`: hashed, but typed as no text. `dropped`: named, but never leave. */
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

/** The names of a record's fields at every depth: `city`, `headquarters.city`. A setting cannot name a field with a dot. */
export function fieldNamesOf(value: unknown, names: Set<string>, path: readonly string[] = []): Set<string> {
  if (Array.isArray(value)) for (const element of value) fieldNamesOf(element, names, path);
  if (!isObject(value)) return names;
  for (const [name, inner] of Object.entries(value)) {
    const here = name.includes(".") ? [] : [...path, name].slice(-MAX_PARTS);
    for (let start = 0; start < here.length; start += 1) names.add(here.slice(start).join("."));
    fieldNamesOf(inner, names, here);
  }
  return names;
}

/** A deeper field has only the names of its last parts. */
const MAX_PARTS = 8;
