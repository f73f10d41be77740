import { quoted } from "../base/json.ts";
import { nearestName } from "../base/text.ts";
import { type FieldRule, type FieldRules, fieldNamesOf, joined, KEEP_ALL } from "../catalog/field-rules.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "../catalog/schema.ts";
import { STREAMS, type StreamSpec } from "../catalog/streams.ts";

/** An entry of a list of fields. `stream`: null for all streams. `path`: the names down to the field. */
export type Setting = {
  readonly name: string;
  readonly list: "only_fields" | "drop_fields" | "hash_fields";
  readonly stream: string | null;
  readonly path: readonly string[];
};

/** Parses an entry: an optional stream, and the names down to the field, with dots between them. */
export function toSetting(name: string, list: Setting["list"]): Setting {
  const [first = "", ...rest] = name.split(".");
  const isStream = rest.length > 0 && STREAMS.some((spec) => spec.name === first);
  return { name, list, stream: isStream ? first : null, path: isStream ? rest : [first, ...rest] };
}

/** Why the connector cannot obey a setting. Fields without a stream are checked later against live rows. */
export function problemsOf(setting: Setting, configured: readonly StreamSpec[]): readonly string[] {
  const { name, list, stream, path } = setting;
  const field = fieldOf(setting);
  if (field.includes("") || field.includes("*")) return [`${list} ${quoted(name)} is not a field name`];
  const meant = stream === null ? configured : STREAMS.filter((spec) => spec.name === stream);
  const advice = stream === null ? `. Name the streams that you mean: "<stream>.${path[0]}"` : "";
  const needed = meant.flatMap((spec) => neededText(setting, spec) ?? []);
  if (needed.length > 0) return needed.map((text) => `${list} "${name}" ${text}${advice}`);
  if (stream === null || meant.some(({ sampled }) => sampled) || !isUndeclared(setting)) return [];
  const meantText = suggestion(field.join("."), allNames(loadSchema(stream)));
  return [`${list} ${quoted(name)} names a field that "${stream}" does not have${meantText}`];
}

/** Why a key or cursor cannot be dropped or hashed. */
function neededText({ list, path }: Setting, spec: StreamSpec): string | undefined {
  const [field = "", inner] = path;
  if (list === "only_fields" || inner !== undefined) return undefined;
  const cannot = (what: string, why: string): string =>
    `names the ${what} of "${spec.name}", which cannot be ${list === "drop_fields" ? "dropped" : "hashed"}: ${why}`;
  if (field === spec.cursorField) return cannot("cursor", "the next run continues from it");
  const { type } = propertiesOf(loadSchema(spec.name))[field] ?? {};
  const isText = [type].flat().every((kind) => kind === "string" || kind === "null");
  if (!spec.primaryKey.includes(field) || (list === "hash_fields" && isText)) return undefined;
  return cannot("primary key", "tables are merged by it");
}

/** The path without a final `*`. In `only_fields`, `*` means the complete object. */
const fieldOf = ({ list, path }: Setting): readonly string[] =>
  list === "only_fields" && path.at(-1) === "*" ? path.slice(0, -1) : path;

/** Whether no schema of the setting's streams has the field. */
export function isUndeclared(setting: Setting): boolean {
  const field = fieldOf(setting);
  if (field.length === 0) return false;
  const { list, stream } = setting;
  if (stream !== null) return !hasIn(loadSchema(stream), field);
  if (list !== "only_fields") return !DECLARED.has(field.join("."));
  return !STREAMS.some((spec) => hasIn(loadSchema(spec.name), field));
}

/** Whether a schema has a field, or does not name the members of the field's object. */
function hasIn(schema: JsonSchema, path: readonly string[]): boolean {
  const [name = "", ...rest] = path;
  if (schema.properties === undefined) return schema.items === undefined || hasIn(schema.items, path);
  const property = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  return property !== undefined && (rest.length === 0 || hasIn(property, rest));
}

const allNames = (schema: JsonSchema): ReadonlySet<string> => fieldNamesOf(exampleOf(schema), new Set());

/** A record with every field of a schema. */
function exampleOf({ items, properties }: JsonSchema): unknown {
  if (properties === undefined) return items === undefined ? null : exampleOf(items);
  return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, exampleOf(inner)]));
}

/** The names of all fields in all schemas. */
const DECLARED: ReadonlySet<string> = new Set(STREAMS.flatMap(({ name }) => [...allNames(loadSchema(name))]));

/** Why the connector cannot obey a setting whose field is in no schema; empty if a live row has the field. */
export function unknownProblems(setting: Setting, live: ReadonlySet<string>): readonly string[] {
  const field = fieldOf(setting).join(".");
  if (live.has(field)) return [];
  const text = `${setting.list} ${quoted(setting.name)} names a field that no stream of this account has`;
  return [text + suggestion(field, [...DECLARED, ...live])];
}

function suggestion(name: string, names: Iterable<string>): string {
  const nearest = nearestName(name, names);
  return nearest === undefined ? "" : `. Did you mean ${quoted(nearest)}?`;
}

/** The rules of all settings for a stream. */
export function rulesOf(all: readonly Setting[], stream: string): FieldRules {
  const settings = all.filter((setting) => (setting.stream ?? stream) === stream);
  const spec = STREAMS.find(({ name }) => name === stream);
  return joined(rulesBy(settings), spec === undefined ? KEEP_ALL : onlyRules(settings, spec));
}

/** The rules of `drop_fields` and `hash_fields` for a stream. A setting for all streams applies at every depth. */
function rulesBy(settings: readonly Setting[]): FieldRules {
  const all = settings.filter(({ list }) => list !== "only_fields");
  const everywhere = all.filter(({ stream }) => stream === null);
  const made = new Map<string, FieldRules>();
  /** @param here the settings whose paths begin at the object */
  const rulesAt = (here: readonly Setting[]): FieldRules => {
    const id = JSON.stringify(here);
    const known = made.get(id);
    if (known !== undefined) return known;
    const fields = new Map<string, FieldRule>();
    const rules: { defaultRule: FieldRule; fields: typeof fields } = { defaultRule: "keep", fields };
    made.set(id, rules);
    if (everywhere.length > 0) rules.defaultRule = rulesAt([]);
    const begun = [...here, ...everywhere];
    for (const name of new Set(begun.map(({ path }) => path[0] ?? "")))
      fields.set(name, ruleOf(begun.filter(({ path }) => path[0] === name)));
    return rules;
  };
  const ruleOf = (named: readonly Setting[]): FieldRule => {
    const met = named.filter(({ path }) => path.length === 1);
    const strongest = met.find(({ list }) => list === "drop_fields") ?? met[0];
    if (strongest === undefined) return rulesAt(named.map((one) => ({ ...one, path: one.path.slice(1) })));
    return { kind: strongest.list === "drop_fields" ? "drop" : "hash", setting: strongest.name };
  };
  return all.length === 0 ? KEEP_ALL : rulesAt(all.filter(({ stream }) => stream !== null));
}

const NOT_NAMED = { kind: "drop", setting: "only_fields" } as const;

/** The rules of `only_fields` for a stream. Keys and cursors are always sent. */
function onlyRules(settings: readonly Setting[], { primaryKey, cursorField }: StreamSpec): FieldRules {
  const paths = settings.flatMap(({ list, path }) => (list === "only_fields" ? [path] : []));
  const rule = paths.length === 0 ? "keep" : onlyRuleOf(paths);
  if (rule === "keep") return KEEP_ALL;
  const needed = cursorField === null ? primaryKey : [...primaryKey, cursorField];
  const kept = needed.map((name): [string, FieldRule] => [name, "keep"]);
  return { defaultRule: NOT_NAMED, fields: new Map([...rule.fields, ...kept]) };
}

/** The rule of a value. @param paths the names from the value on; an empty path means the whole value */
function onlyRuleOf(paths: readonly (readonly string[])[]): "keep" | FieldRules {
  if (paths.some(([name]) => name === "*")) return "keep";
  const names = new Set(paths.flatMap(([name]) => name ?? []));
  const fields = [...names].map((name): [string, FieldRule] => [
    name,
    onlyRuleOf(paths.filter(([first]) => first === name).map(([, ...rest]) => rest)),
  ]);
  const onlyObjects = !paths.some(({ length }) => length === 0);
  return { defaultRule: NOT_NAMED, fields: new Map(fields), onlyObjects };
}
