import { isObject } from "../base/json.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

/** Decides about the value of a field. A rule for a list applies to each element. */
export type FieldRule = "keep" | FieldAction | FieldRules;

/** Decides about the fields of an object. `onlyObjects`: another value becomes null. */
export type FieldRules = {
  /** For fields that `fields` does not name. */
  readonly defaultRule: FieldRule;
  readonly fields: ReadonlyMap<string, FieldRule>;
  readonly onlyObjects?: boolean;
};

/** Every field is sent unchanged. */
export const KEEP_ALL: FieldRules = { defaultRule: "keep", fields: new Map() };

/** Changes a field. `setting`: the cause, for messages. */
export type FieldAction = {
  readonly kind: "drop" | "hash" | "unlisted";
  readonly setting: string;
  /** The names that the catalog lists in the object of an unlisted field. */
  readonly among?: readonly string[];
};

/** Drops a field and reports it, because the catalog does not name it. */
export const unlisted = (among: readonly string[]): FieldAction => ({
  ...{ kind: "unlisted", setting: "the catalog", among },
});

/** Returns the line of a row that is sent. `names`: the fields of a usual row (see UsualNames). */
export type Rewrite = (line: string, names?: readonly string[]) => string;

/** Decides which fields of rows are sent. The config's rules are in privacy/. */
export type FieldFilter = {
  /** The rules of a stream; KEEP_ALL if all fields are sent unchanged. */
  rules(stream: string): FieldRules;
  /** Applies settings and a catalog to lines; null if nothing changes. @param report gets each field that the catalog lacks */
  rewriter(
    stream: string,
    selection?: FieldRules,
    report?: (path: readonly string[], among: readonly string[]) => void,
  ): Rewrite | null;
  /** Replaces a field's value that another field repeats; null if the field is sent unchanged. */
  replacementFor(stream: string, field: string): ((value: string) => string) | null;
  /** A warning for each setting whose field is in no schema and in no row. */
  unused(): readonly string[];
};

export const ruleFor = (name: string, { fields, defaultRule }: FieldRules): FieldRule =>
  fields.get(name) ?? defaultRule;

export const isDrop = (rule: FieldRule): boolean => rule !== "keep" && "kind" in rule && rule.kind !== "hash";

/** Joins two sets of rules. The second is applied to the result of the first. Only the first may hash. */
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
  // The first rule makes a digest, which is not an object. So a rule for objects only drops the field.
  return second.onlyObjects === true ? { ...first, kind: "drop" } : first;
}

/** The schema of rows to send ("leaving"), or of rows from the service ("arriving"), with any value in changed fields. */
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

/** A list becomes a list of digests. Every other value becomes one digest. */
function hashedSchema({ title, description, type, items }: JsonSchema): JsonSchema {
  const words = { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
  const kinds = [type].flat();
  if (!kinds.includes("array")) return { ...words, type: ["null", "string"] };
  const hashed = kinds.every((kind) => kind === "array" || kind === "null")
    ? ["null", "array"]
    : ["null", "string", "array"];
  return { ...words, type: hashed, ...(items !== undefined && { items: hashedSchema(items) }) };
}

/** Fields of a catalog that rules change. `mistyped`: hashed, but not typed as text. `dropped`: named, but never sent. */
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

/** Only the last parts of the name of a deep field are kept. */
const MAX_PARTS = 8;
