import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject, quoted } from "../json.ts";
import { type FieldAction, type FieldRule, type FieldRules, schemaUnder } from "./field-rules.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";
import {
  type AutomaticFields,
  automaticFields,
  NO_FIELDS,
  type ReplicationMethod,
  type TapStream,
} from "./singer.ts";

/** A stream that was asked for. `schema` holds only what leaves. */
export type Selection = {
  readonly stream: string;
  readonly schema: JsonSchema;
  readonly keyProperties: readonly string[];
  readonly replicationKey: string | null;
  readonly method: ReplicationMethod;
  /** What the catalog lets out of each row. Null: there is no catalog, and everything leaves. */
  readonly rules: FieldRules | null;
  /** See TapStream. */
  readonly sampled: boolean | null;
};

/** `unknown`: selected streams that this tap does not have. */
export type Selected = {
  readonly selections: readonly Selection[];
  readonly unknown: readonly string[];
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
};

/**
 * Returns what a catalog selects; without one the streams that are selected by default, with all their fields.
 * A catalog lists all that may leave, at every depth. Keys and cursors always leave.
 */
export function select(catalog: unknown, streams: readonly TapStream[]): Selected {
  if (catalog === undefined) {
    const selections = streams.filter(({ selectedByDefault }) => selectedByDefault).map(complete);
    return { selections, unknown: [], refusals: [], warnings: [] };
  }
  const entries = catalogEntries(catalog).filter(isSelected);
  const named = entries.map((entry) => ({
    entry,
    stream: streams.find(({ name }) => name === streamId(entry)),
  }));
  const unknown = named.flatMap(({ entry, stream }) => (stream === undefined ? [streamId(entry)] : []));
  const chosen = named.flatMap(({ entry, stream }) => (stream === undefined ? [] : [choose(entry, stream)]));
  return {
    selections: chosen.map(({ selection }) => selection),
    unknown,
    refusals: chosen.flatMap(({ refusals }) => refusals),
    warnings: entries.length === 0 ? [NOTHING] : chosen.flatMap(({ warnings }) => warnings),
  };
}

/** Throws ConfigError for what is no catalog of Singer: nothing would be read, and nobody would know. */
function catalogEntries(catalog: unknown): readonly MetadataEntry[] {
  const { streams } = asEntry(catalog);
  if (!Array.isArray(streams)) throw unusableCatalog('it is not an object with a list "streams"');
  const entries = streams.map(asEntry);
  if (entries.some(({ stream }) => isObject(stream))) throw unusableCatalog("it is a catalog of Airbyte");
  return entries;
}

const unusableCatalog = (why: string): ConfigError =>
  new ConfigError(`Cannot use the catalog: ${why}. Make one with tap-contact-intelligence --discover`);

const NOTHING = "The catalog selects no stream: nothing will be read";

/** Without a catalog no field is withheld, whether or not the live rows told it. */
function complete({ name: stream, schema, keyProperties, replicationKey, methods }: TapStream): Selection {
  return { stream, schema, keyProperties, replicationKey, method: methods[0], rules: null, sampled: null };
}

/** A node of a catalog that somebody else wrote. */
type MetadataEntry = Readonly<JsonObject>;
type Metadata = ReadonlyMap<string, MetadataEntry>;

type Chosen = Pick<Selected, "refusals" | "warnings"> & { readonly selection: Selection };

function choose(entry: MetadataEntry, stream: TapStream): Chosen {
  const { name, replicationKey, sampled } = stream;
  const named = entry["schema"];
  const schema = withKeys(isSchema(named) && hasProperties(named) ? named : stream.schema, stream);
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const keyProperties = chosenKey(entry, schema, stream, warn);
  const method = chosenMethod(entry, stream, warn);
  const automatic = automaticFields([...stream.keyProperties, ...keyProperties], replicationKey);
  const rules = fieldRules(schema, [], metadataOf(entry), automatic);
  const leaving = schemaUnder(rules, schema, "leaving");
  return {
    selection: { stream: name, schema: leaving, keyProperties, replicationKey, method, rules, sampled },
    refusals: cursorRefusals(entry, stream, method),
    warnings,
  };
}

/** A schema that lacks a key or cursor would describe no record of ours. */
function withKeys(schema: JsonSchema, { schema: own, keyProperties, replicationKey }: TapStream): JsonSchema {
  const keys = [...automaticFields(keyProperties, replicationKey)];
  const properties = Object.fromEntries(keys.map((name) => [name, propertiesOf(own)[name] ?? {}]));
  return { ...schema, properties: { ...properties, ...propertiesOf(schema) } };
}

function chosenKey(
  entry: MetadataEntry,
  schema: JsonSchema,
  { name, keyProperties }: TapStream,
  warn: (text: string) => void,
): readonly string[] {
  const asked = entry["key_properties"];
  if (!Array.isArray(asked)) return keyProperties;
  const names = asked.filter((field) => typeof field === "string");
  const missing = names.filter((field) => !Object.hasOwn(propertiesOf(schema), field));
  if (missing.length === 0) return names;
  warn(`Stream "${name}" has no field "${missing.join('", "')}": its own key is used`);
  return keyProperties;
}

/** What the user says beats what discovery forced: Meltano leaves both standing. Root metadata is only ever the user's. */
function chosenMethod(
  entry: MetadataEntry,
  { name, methods }: TapStream,
  warn: (text: string) => void,
): ReplicationMethod {
  const root = metadataOf(entry).get(ROOT) ?? {};
  const asked =
    root["replication-method"] ?? entry["replication_method"] ?? root["forced-replication-method"];
  const method = methods.find((one) => one === asked);
  if (method === undefined && asked !== undefined && asked !== null)
    warn(`Stream "${name}" cannot be replicated by ${quotedValue(asked)}: ${methods[0]} is used`);
  return method ?? methods[0];
}

/** A user who names another cursor expects rows that this tap would not deliver. */
function cursorRefusals(
  entry: MetadataEntry,
  stream: TapStream,
  method: ReplicationMethod,
): readonly string[] {
  const root = metadataOf(entry).get(ROOT) ?? {};
  const asked = root["replication-key"] ?? entry["replication_key"] ?? null;
  if (method === "FULL_TABLE" || asked === null || asked === stream.replicationKey) return [];
  const own = stream.replicationKey === null ? "it has none" : `it has "${stream.replicationKey}"`;
  return [
    `Cannot replicate the stream "${stream.name}" by the key ${quotedValue(asked)}: ${own}. ` +
      "Take replication-key out of its metadata, or set replication-method to FULL_TABLE",
  ];
}

const ROOT = crumb([]);

function crumb(path: readonly unknown[]): string {
  return JSON.stringify(path);
}

function metadataOf(entry: MetadataEntry): Metadata {
  const items = asList(entry["metadata"]).map(asEntry);
  return new Map(items.map((item) => [crumb(asList(item["breadcrumb"])), asEntry(item["metadata"])]));
}

/** Meltano writes `selected` on the stream, too; some other programs only there. */
function isSelected(entry: MetadataEntry): boolean {
  const metadata = metadataOf(entry);
  const legacy = entry["selected"];
  if (metadata.get(ROOT)?.["selected"] === undefined && typeof legacy === "boolean") return legacy;
  return metadata.size === 0 || fieldSelected(metadata.get(ROOT) ?? {}, false);
}

/** The SDK's algorithm for a field whose parent is selected. */
function fieldSelected(metadata: MetadataEntry, inherited: boolean): boolean {
  if (metadata["inclusion"] === "unsupported") return false;
  if (metadata["inclusion"] === "automatic") return true;
  const { selected, "selected-by-default": usual } = metadata;
  if (typeof selected === "boolean") return selected;
  return typeof usual === "boolean" ? usual : inherited;
}

const DESELECTED: FieldAction = { kind: "drop", setting: "the catalog" };
const UNNAMED: FieldAction = { kind: "withhold", setting: "the catalog" };

/**
 * What a catalog says of the fields of an object, or of the objects in a list. A field whose schema does not say what
 * is in it leaves as one value; once `properties` are there, they list all of it.
 */
function fieldRules(
  schema: JsonSchema,
  parent: readonly string[],
  metadata: Metadata,
  automatic: AutomaticFields,
): FieldRules {
  const rules = Object.entries(propertiesOf(schema)).map(([name, property]): [string, FieldRule] => {
    const breadcrumb = [...parent, "properties", name];
    const stays = automatic.has(name) || fieldSelected(metadata.get(crumb(breadcrumb)) ?? {}, true);
    return [name, stays ? innerRule(property, breadcrumb, metadata) : DESELECTED];
  });
  return { others: UNNAMED, fields: new Map(rules) };
}

function innerRule(schema: JsonSchema, breadcrumb: readonly string[], metadata: Metadata): FieldRule {
  if (hasProperties(schema)) return fieldRules(schema, breadcrumb, metadata, NO_FIELDS);
  return isSchema(schema.items) ? innerRule(schema.items, [...breadcrumb, "items"], metadata) : "keep";
}

function streamId({ tap_stream_id, stream }: MetadataEntry): string {
  const id = tap_stream_id ?? stream;
  return typeof id === "string" ? id : (JSON.stringify(id) ?? "");
}

/** A value of a catalog in a message. */
const quotedValue = (value: unknown): string =>
  quoted(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

const isSchema = (value: unknown): value is JsonSchema => isObject(value);

const hasProperties = (schema: JsonSchema): boolean => isObject(schema.properties);

const asEntry = (value: unknown): MetadataEntry => (isObject(value) ? value : {});

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
