import {
  type AutomaticFields,
  asRecord,
  automaticFields,
  isRecord,
  type JsonSchema,
  NO_FIELDS,
  type Offer,
  propertiesOf,
  type ReplicationMethod,
} from "./singer-catalog.ts";

/** Which fields of an object go out. `others` is for those that no rule names. */
export type Pruning = { readonly others: "keep" | "drop"; readonly fields: ReadonlyMap<string, Rule> };

type Rule = "keep" | "drop" | Pruning;

/** A stream that was asked for. The schema holds only what goes out; without a pruning everything does. */
export type Selection = {
  readonly stream: string;
  readonly schema: JsonSchema;
  readonly keyProperties: readonly string[];
  readonly replicationKey: string | null;
  readonly method: ReplicationMethod;
  readonly pruning?: Pruning | undefined;
};

/** `unknown`: selected streams that the source does not have. */
export type Selected = {
  readonly selections: readonly Selection[];
  readonly unknown: readonly string[];
  readonly warnings: readonly string[];
};

/** Without a catalog: the streams selected by default, whole. With one: only what it has and selects. */
export function select(catalog: unknown, offers: readonly Offer[]): Selected {
  if (catalog === undefined) {
    return { selections: offers.filter(byDefault).map(whole), unknown: [], warnings: [] };
  }
  const entries = listOf(asEntry(catalog).streams).map(asEntry).filter(isSelected);
  const named = entries.map((entry) => ({ entry, offer: offers.find(({ name }) => name === idOf(entry)) }));
  const unknown = named.flatMap(({ entry, offer }) => (offer === undefined ? [idOf(entry)] : []));
  const chosen = named.flatMap(({ entry, offer }) => (offer === undefined ? [] : [choose(entry, offer)]));
  return {
    selections: chosen.map(({ selection }) => selection),
    unknown,
    warnings: entries.length === 0 ? [NOTHING] : chosen.flatMap(({ warnings }) => warnings),
  };
}

const NOTHING = "The catalog selects no stream: nothing will be read";

const byDefault = (offer: Offer): boolean => offer.selectedByDefault;

function whole(offer: Offer): Selection {
  const { name: stream, schema, keyProperties, replicationKey, methods } = offer;
  return { stream, schema, keyProperties, replicationKey, method: methods[0] };
}

/** A node of a catalog that somebody else wrote. */
type Entry = {
  readonly [K in
    | "streams"
    | "tap_stream_id"
    | "stream"
    | "schema"
    | "selected"
    | "key_properties"
    | "replication_method"
    | "metadata"
    | "breadcrumb"
    | "inclusion"
    | "properties"]?: unknown;
} & { readonly [K in `${string}-${string}`]?: unknown };
type Metadata = ReadonlyMap<string, Entry>;

function choose(entry: Entry, offer: Offer): { selection: Selection; warnings: readonly string[] } {
  const schema = hasProperties(entry.schema) ? withKeys(entry.schema, offer) : offer.schema;
  const key = chosenKey(entry, schema, offer);
  const method = chosenMethod(entry, offer);
  const pruning = pruningOf(schema, metadataOf(entry), automaticFields(key.value, offer.replicationKey));
  const selection = {
    ...whole(offer),
    schema: pruning === undefined ? schema : prunedSchema(schema, pruning),
    keyProperties: key.value,
    method: method.value,
    pruning,
  };
  return { selection, warnings: [...key.warnings, ...method.warnings] };
}

/** A schema that lacks a key or cursor would describe no record of ours. */
function withKeys(schema: JsonSchema, offer: Offer): JsonSchema {
  const own = propertiesOf(offer.schema);
  const keys = [...automaticFields(offer.keyProperties, offer.replicationKey)];
  const properties = Object.fromEntries(keys.map((name) => [name, own[name] ?? {}]));
  return { ...schema, properties: { ...properties, ...propertiesOf(schema) } };
}

type Choice<T> = { readonly value: T; readonly warnings: readonly string[] };

function chosenKey(entry: Entry, schema: JsonSchema, offer: Offer): Choice<readonly string[]> {
  const asked = entry.key_properties;
  if (!Array.isArray(asked)) return { value: offer.keyProperties, warnings: [] };
  const names = asked.filter((name) => typeof name === "string");
  const missing = names.filter((name) => !Object.hasOwn(propertiesOf(schema), name));
  if (missing.length === 0) return { value: names, warnings: [] };
  const warning = `Stream "${offer.name}" has no field "${missing.join('", "')}": its own key is used`;
  return { value: offer.keyProperties, warnings: [warning] };
}

/** What the user says beats what discovery forced: Meltano leaves both standing. Root metadata is only ever the user's. */
function chosenMethod(entry: Entry, offer: Offer): Choice<ReplicationMethod> {
  const root = metadataOf(entry).get(ROOT) ?? {};
  const asked = root["replication-method"] ?? entry.replication_method ?? root["forced-replication-method"];
  const value = offer.methods.find((method) => method === asked);
  if (value !== undefined) return { value, warnings: [] };
  const own = offer.methods[0];
  if (asked === undefined || asked === null) return { value: own, warnings: [] };
  return {
    value: own,
    warnings: [`Stream "${offer.name}" cannot be replicated by "${asked}": ${own} is used`],
  };
}

const ROOT = crumb([]);

function crumb(path: readonly unknown[]): string {
  return JSON.stringify(path);
}

function metadataOf(entry: Entry): Metadata {
  const items = listOf(entry.metadata).map(asEntry);
  return new Map(items.map((item) => [crumb(listOf(item.breadcrumb)), asEntry(item.metadata)]));
}

/** Meltano writes `selected` on the stream, too; some other programs only there. */
function isSelected(entry: Entry): boolean {
  const metadata = metadataOf(entry);
  const legacy = entry.selected;
  if (metadata.get(ROOT)?.selected === undefined && typeof legacy === "boolean") return legacy;
  return metadata.size === 0 || fieldSelected(metadata.get(ROOT) ?? {}, false);
}

/** The SDK's algorithm for a field whose parent is selected. */
function fieldSelected(metadata: Entry, inherited: boolean): boolean {
  if (metadata.inclusion === "unsupported") return false;
  if (metadata.inclusion === "automatic") return true;
  const { selected, "selected-by-default": usual } = metadata;
  if (typeof selected === "boolean") return selected;
  return typeof usual === "boolean" ? usual : inherited;
}

/** Undefined if nothing is dropped. At the top a field that the schema lacks is dropped with the rest. */
function pruningOf(schema: JsonSchema, metadata: Metadata, automatic: AutomaticFields): Pruning | undefined {
  const fields = fieldRules(schema, [], metadata, automatic);
  return [...fields.values()].every((rule) => rule === "keep") ? undefined : { others: "drop", fields };
}

function fieldRules(
  schema: unknown,
  parent: readonly string[],
  metadata: Metadata,
  automatic: AutomaticFields,
): Pruning["fields"] {
  const rules = Object.entries(propertiesOf(schema)).map(([name, property]): readonly [string, Rule] => {
    const breadcrumb = [...parent, "properties", name];
    if (!automatic.has(name) && !fieldSelected(metadata.get(crumb(breadcrumb)) ?? {}, true))
      return [name, "drop"];
    const fields = fieldRules(property, breadcrumb, metadata, NO_FIELDS);
    const entire = [...fields.values()].every((rule) => rule === "keep");
    return [name, entire ? "keep" : { others: "keep", fields }];
  });
  return new Map(rules);
}

function prunedSchema(schema: JsonSchema, { fields }: Pruning): JsonSchema {
  const properties = Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const rule = fields.get(name) ?? "keep";
    if (rule === "drop") return [];
    return [[name, rule === "keep" ? property : prunedSchema(asRecord(property), rule)] as const];
  });
  const { required, ...rest } = schema;
  return {
    ...rest,
    ...(Array.isArray(required) ? { required: required.filter((name) => fields.get(name) !== "drop") } : {}),
    properties: Object.fromEntries(properties),
  };
}

const idOf = (entry: Entry): string => String(entry.tap_stream_id ?? entry.stream);

const hasProperties = (schema: unknown): schema is JsonSchema => isRecord(asEntry(schema).properties);

const asEntry = (value: unknown): Entry => asRecord(value);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
