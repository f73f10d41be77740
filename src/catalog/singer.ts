import { isObject, type JsonObject, objectOf } from "../json.ts";
import { cursorOf, type DiscoveredStream } from "./airbyte.ts";
import { type JsonSchema, loadSchema, propertiesOf } from "./schema.ts";
import { STREAMS } from "./streams.ts";

export type ReplicationMethod = "FULL_TABLE" | "INCREMENTAL";

/** A stream as this tap can give it. The first method is the one that it takes unless the user wants another. */
export type TapStream = {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly keyProperties: readonly string[];
  readonly replicationKey: string | null;
  readonly methods: readonly [ReplicationMethod, ...ReplicationMethod[]];
  readonly selectedByDefault: boolean;
  /** Whether live rows told the fields. Null: the fields are fixed, or nobody knows. */
  readonly sampled: boolean | null;
};

/** Returns a discovered stream as a Singer catalog describes it. */
export function toTapStream(stream: DiscoveredStream): TapStream {
  const { spec, schema, sampled } = stream;
  return {
    name: spec.name,
    schema,
    keyProperties: spec.primaryKey,
    replicationKey: cursorOf(stream),
    methods: methodsOf(stream),
    // What costs money or hours must be asked for.
    selectedByDefault: spec.reading !== "job",
    sampled,
  };
}

function methodsOf(stream: DiscoveredStream): TapStream["methods"] {
  if (stream.spec.reading === "job") return ["INCREMENTAL"];
  return cursorOf(stream) === null ? ["FULL_TABLE"] : ["INCREMENTAL", "FULL_TABLE"];
}

/** Returns all streams with the fields that a catalog names, so that nobody asks the service again. */
export function tapStreamsIn(catalog: unknown): readonly TapStream[] {
  const entries = listOf(objectOf(catalog)["streams"]).map(objectOf);
  return STREAMS.map((spec) => {
    const entry = entries.find(({ tap_stream_id: id, stream }) => (id ?? stream) === spec.name) ?? {};
    const { schema } = entry;
    const known = isObject(schema) && isObject(schema["properties"]) ? (schema as JsonSchema) : undefined;
    return toTapStream({ spec, schema: known ?? loadSchema(spec.name), sampled: sampledIn(entry) });
  });
}

function sampledIn(entry: CatalogNode): boolean | null {
  const { sampled } = rootOf(metadataIn(entry));
  return typeof sampled === "boolean" ? sampled : null;
}

/** A node of a catalog that somebody else wrote. */
export type CatalogNode = Readonly<JsonObject>;

/** What a catalog says of a stream and of its fields, by their places. */
export type Metadata = ReadonlyMap<string, CatalogNode>;

export function metadataIn(entry: CatalogNode): Metadata {
  const items = listOf(entry["metadata"]).map(objectOf);
  return new Map(items.map((item) => [crumb(listOf(item["breadcrumb"])), objectOf(item["metadata"])]));
}

/** What is said of the stream itself. */
export const rootOf = (metadata: Metadata): CatalogNode => metadata.get(crumb([])) ?? {};

/** The place of a field as a key. */
export const crumb = (path: readonly unknown[]): string => JSON.stringify(path);

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The catalog of `--discover`. Every property has metadata, because Meltano cannot deselect one that lacks it. */
export function toSingerCatalog(streams: readonly TapStream[]): { readonly streams: readonly object[] } {
  return { streams: streams.map(toEntry) };
}

function toEntry(stream: TapStream): object {
  const { name, schema, keyProperties, replicationKey, methods, selectedByDefault, sampled } = stream;
  const root = {
    inclusion: "available",
    "selected-by-default": selectedByDefault,
    "table-key-properties": keyProperties,
    "valid-replication-keys": replicationKey === null ? [] : [replicationKey],
    "forced-replication-method": methods[0],
    ...(sampled !== null && { sampled }),
  };
  const fields = propertyMetadata(schema, [], automaticFields(keyProperties, replicationKey));
  return {
    tap_stream_id: name,
    stream: name,
    key_properties: keyProperties,
    ...(replicationKey !== null && { replication_key: replicationKey }),
    replication_method: methods[0],
    schema,
    metadata: [{ breadcrumb: [], metadata: root }, ...fields],
  };
}

/** Below `properties` only: no selection reaches into arrays. */
function propertyMetadata(
  schema: JsonSchema,
  parent: readonly string[],
  automatic: AutomaticFields,
): readonly object[] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const breadcrumb = [...parent, "properties", name];
    const inclusion = automatic.has(name) ? "automatic" : "available";
    return [{ breadcrumb, metadata: { inclusion } }, ...propertyMetadata(property, breadcrumb, NO_FIELDS)];
  });
}

/** Top-level fields that every record needs, so that no selection drops them. */
export type AutomaticFields = ReadonlySet<string>;

export const NO_FIELDS: AutomaticFields = new Set();

export const automaticFields = (
  keyProperties: readonly string[],
  replicationKey: string | null,
): AutomaticFields => new Set(replicationKey === null ? keyProperties : [...keyProperties, replicationKey]);
