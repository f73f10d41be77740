import { ConfigError } from "../base/errors.ts";
import { isObject, listOf, objectOf, printable, quoted } from "../base/json.ts";
import { type ConfiguredStream, cursorOf, type DiscoveredStream, incremental } from "./airbyte.ts";
import { type FieldAction, type FieldRule, type FieldRules, schemaUnder, unlisted } from "./field-rules.ts";
import { type JsonSchema, loadSchema, propertiesOf, schemaIn } from "./schema.ts";
import {
  type CatalogNode,
  type Metadata,
  metadataIn,
  methodsOf,
  neededFields,
  type ReplicationMethod,
} from "./singer.ts";
import { STREAMS, type StreamSpec } from "./streams.ts";

/** How a selected stream is sent. `schema` names only fields that are sent. */
export type Selection = {
  readonly stream: string;
  readonly schema: JsonSchema;
  readonly keyProperties: readonly string[];
  readonly replicationKey: string | null;
  readonly method: ReplicationMethod;
  /** The fields that are sent. Without a catalog all fields are sent. */
  readonly rules: FieldRules;
  /** See DiscoveredStream. */
  readonly isComplete: boolean;
};

/** How a selected stream is read and sent. An unknown stream has no selection. */
type Chosen = { readonly configured: ConfiguredStream; readonly selection?: Selection };

type Selected = { readonly streams: readonly Chosen[]; readonly warnings: readonly string[] };

/** Returns the selected streams and fields. Keys and cursors are always sent. @throws ConfigError for an unusable catalog */
export function select(catalog: unknown): Selected {
  const all = catalogEntries(catalog);
  // If the catalog selects some stream by name, streams without metadata are not selected.
  const isMarked = all.some((entry) => choiceIn(selectionNodes(entry), [streamId(entry)]) === true);
  const entries = all.filter((entry) => {
    const isBare = listOf(entry["metadata"]).length === 0;
    return nodeSelected(selectionNodes(entry), [streamId(entry)], isBare && !isMarked);
  });
  const ids = entries.map(streamId);
  const twice = ids.find((id, nth) => ids.indexOf(id) < nth);
  if (twice !== undefined) throw unusableCatalog(`it selects the stream ${quoted(twice)} twice`);
  const warnings = entries.length === 0 ? ["The catalog selects no stream: nothing will be read"] : [];
  const streams = entries.map((entry) => {
    const name = streamId(entry);
    const spec = STREAMS.find((one) => one.name === name);
    return spec === undefined ? { configured: incremental(name) } : choose(entry, spec, warnings);
  });
  return { streams, warnings };
}

/** @throws ConfigError for a catalog of another form, because the run would silently read nothing */
function catalogEntries(catalog: unknown): readonly CatalogNode[] {
  const { streams } = objectOf(catalog);
  if (!Array.isArray(streams)) throw unusableCatalog('it has no list "streams"');
  const entries = streams.map(objectOf);
  if (entries.some(({ stream, json_schema }) => isObject(stream) || isObject(json_schema)))
    throw unusableCatalog("it is a catalog of Airbyte");
  for (const entry of entries) {
    const items = entry["metadata"] ?? [];
    if (Array.isArray(items) && items.every(isMetadata)) continue;
    throw unusableCatalog(
      `the metadata of ${quoted(streamId(entry))} is not a list of objects with a "breadcrumb" of "properties" and names, ` +
        'and "metadata" with "selected"',
    );
  }
  return entries;
}

const isMetadata = (item: unknown): boolean =>
  isObject(item) && isBreadcrumb(item["breadcrumb"]) && isObject(item["metadata"]) && !("selected" in item);

/** `["properties", NAME]` once for each level, and `"items"` for the elements of a list. */
function isBreadcrumb(breadcrumb: unknown): boolean {
  if (!Array.isArray(breadcrumb)) return false;
  const [part, name] = breadcrumb;
  if (part === "properties") return typeof name === "string" && isBreadcrumb(breadcrumb.slice(2));
  return breadcrumb.length === 0 || (part === "items" && isBreadcrumb(breadcrumb.slice(1)));
}

const unusableCatalog = (why: string): ConfigError =>
  new ConfigError(`Cannot use the catalog: ${why}. Make one with tap-contact-intelligence --discover`);

function choose(entry: CatalogNode, spec: StreamSpec, warnings: string[]): Chosen {
  const { name } = spec;
  const stream = streamIn(entry, spec);
  const { schema, isComplete } = stream;
  const metadata = metadataIn(entry);
  const keyProperties = chosenKey(entry, stream, warnings);
  const method = chosenMethod(entry, stream, warnings);
  const rules = fieldRules(schema, [name], metadata, [...neededFields(stream), ...keyProperties]);
  const configured: ConfiguredStream = {
    ...{ ...incremental(name), schema },
    // The catalog decides the method, even if an earlier run used another method.
    syncMode: method === "INCREMENTAL" ? "incremental" : "full_refresh",
    // Targets with a key crash on a record without the key.
    destinationSyncMode: keyProperties.length > 0 ? "append_dedup" : null,
  };
  const leaving = schemaUnder(rules, schema, "leaving");
  const selection = { stream: name, schema: leaving, replicationKey: cursorOf(stream), isComplete };
  return { configured, selection: { ...selection, keyProperties, method, rules } };
}

/** A stream as its catalog describes it. Adds the key and the cursor to a schema that lacks them. */
function streamIn(entry: CatalogNode, spec: StreamSpec): DiscoveredStream {
  const declared = loadSchema(spec.name);
  const schema = schemaIn(entry["schema"]) ?? declared;
  const [own, listed] = [propertiesOf(declared), propertiesOf(schema)];
  const fieldOf = (name: string) => [name, listed[name] ?? own[name] ?? {}];
  const needed = neededFields({ spec, schema: declared }).map(fieldOf);
  const properties = { ...listed, ...Object.fromEntries(needed) };
  const isComplete = metadataIn(entry)([])["sampled"] !== false;
  return { spec, schema: { ...schema, properties }, isComplete };
}

function chosenKey(
  entry: CatalogNode,
  { spec: { name, primaryKey }, schema }: DiscoveredStream,
  warnings: string[],
): readonly string[] {
  const asked = entry["key_properties"];
  if (!Array.isArray(asked)) return primaryKey;
  const names = asked.filter((field) => typeof field === "string");
  const missing = names.filter((field) => !Object.hasOwn(propertiesOf(schema), field));
  if (missing.length === 0) return names;
  warnings.push(`Stream "${name}" has no field "${missing.join('", "')}": its own key is used`);
  return primaryKey;
}

/** Prefers the user's method to the method of discovery, because Meltano keeps both. @throws ConfigError for another cursor */
function chosenMethod(entry: CatalogNode, stream: DiscoveredStream, warnings: string[]): ReplicationMethod {
  const { name } = stream.spec;
  const [methods, replicationKey] = [methodsOf(stream), cursorOf(stream)];
  const root = metadataIn(entry)([]);
  const asked =
    root["replication-method"] ?? entry["replication_method"] ?? root["forced-replication-method"];
  const method = methods.find((one) => one === asked);
  if (method === undefined && asked !== undefined && asked !== null)
    warnings.push(`Stream "${name}" cannot be replicated by ${quotedValue(asked)}: ${methods[0]} is used`);
  const cursor = root["replication-key"] ?? entry["replication_key"] ?? replicationKey;
  if ((method ?? methods[0]) !== "FULL_TABLE" && cursor !== replicationKey) {
    const own = replicationKey === null ? "it has none" : `it has "${replicationKey}"`;
    throw new ConfigError(
      `Cannot replicate the stream "${name}" by the key ${quotedValue(cursor)}: ${own}. ` +
        "Take replication-key out of its metadata, or set replication-method to FULL_TABLE",
    );
  }
  return method ?? methods[0];
}

/** The places of `selected`. Meltano uses the metadata and the stream. Older programs use the stream or the schema. */
const selectionNodes = (entry: CatalogNode): readonly CatalogNode[] => [
  metadataIn(entry)([]),
  entry,
  objectOf(entry["schema"]),
];

/** The SDK's algorithm for a field whose parent is selected. */
function nodeSelected(nodes: readonly CatalogNode[], place: readonly string[], inherited: boolean): boolean {
  const inclusions = nodes.map(({ inclusion }) => inclusion);
  if (inclusions.includes("unsupported")) return false;
  if (inclusions.includes("automatic")) return true;
  return choiceIn(nodes, place) ?? choiceIn(nodes, place, "selected-by-default") ?? inherited;
}

/** Whether all nodes with a choice select, or undefined. @throws ConfigError for an unclear choice, which may withhold a field */
function choiceIn(
  nodes: readonly CatalogNode[],
  place: readonly string[],
  name = "selected",
): boolean | undefined {
  const choices = nodes.flatMap(({ [name]: value }) => {
    if (value === undefined) return [];
    // Older programs write the choice as text.
    const word = typeof value === "string" ? value.toLowerCase() : value;
    if (word === true || word === "true") return [true];
    if (word === false || word === "false") return [false];
    const field = place.filter((part) => part !== "properties").join(".");
    throw new ConfigError(
      `Cannot use the catalog: "${name}" of ${quoted(field)} is ${quotedValue(value)}. Write true or false`,
    );
  });
  return choices.length === 0 ? undefined : choices.every((one) => one);
}

const DESELECTED: FieldAction = { kind: "drop", setting: "the catalog" };

/** The rules of a catalog for the fields of an object. `properties` list all its fields. @param parent stream and breadcrumb */
function fieldRules(
  schema: JsonSchema,
  parent: readonly string[],
  metadata: Metadata,
  needed: readonly string[] = [],
): FieldRules {
  const fields = Object.entries(propertiesOf(schema));
  // Older programs mark selected fields in the schema.
  const isMarked = fields.some(([name, property]) => choiceIn([property], [...parent, name]) === true);
  const rules = fields.map(([name, property]): [string, FieldRule] => {
    const place = [...parent, "properties", name];
    const nodes = [metadata(place.slice(1)), property];
    const stays = needed.includes(name) || nodeSelected(nodes, place, !isMarked);
    return [name, stays ? innerRule(property, place, metadata) : DESELECTED];
  });
  return { defaultRule: unlisted(fields.map(([name]) => name)), fields: new Map(rules) };
}

/** A field without `properties` is sent as one value. */
function innerRule(schema: JsonSchema, place: readonly string[], metadata: Metadata): FieldRule {
  if (schemaIn(schema) !== undefined) return fieldRules(schema, place, metadata);
  return isObject(schema.items) ? innerRule(schema.items, [...place, "items"], metadata) : "keep";
}

function streamId({ tap_stream_id, stream }: CatalogNode): string {
  const id = tap_stream_id ?? stream;
  return typeof id === "string" ? id : (JSON.stringify(id) ?? "");
}

/** A value of a catalog in a message. */
const quotedValue = (value: unknown): string =>
  typeof value === "string" ? quoted(value) : printable(JSON.stringify(value));
