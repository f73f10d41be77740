import { type JsonObject, listOf, objectOf } from "../base/json.ts";
import { cursorOf, type DescribedStream, type DiscoveredStream } from "./airbyte.ts";
import { type JsonSchema, propertiesOf } from "./schema.ts";

export type ReplicationMethod = "FULL_TABLE" | "INCREMENTAL";

/** The methods by which a stream can be replicated. The first method is the default. */
export function methodsOf(stream: DescribedStream): readonly [ReplicationMethod, ...ReplicationMethod[]] {
  if (!stream.spec.modes.includes("full_refresh")) return ["INCREMENTAL"];
  return cursorOf(stream) === null ? ["FULL_TABLE"] : ["INCREMENTAL", "FULL_TABLE"];
}

/** A node of a catalog that another program wrote. */
export type CatalogNode = Readonly<JsonObject>;

/** The metadata of a field by its breadcrumb, or of the stream at []. */
export type Metadata = (breadcrumb: readonly string[]) => CatalogNode;

export function metadataIn(entry: CatalogNode): Metadata {
  const items = listOf(entry["metadata"]).map(objectOf);
  const idOf = (breadcrumb: unknown): string => JSON.stringify(listOf(breadcrumb));
  const nodes = new Map(items.map((item) => [idOf(item["breadcrumb"]), objectOf(item["metadata"])]));
  return (breadcrumb) => nodes.get(idOf(breadcrumb)) ?? {};
}

/** The catalog of `--discover`. Every property has metadata, because Meltano cannot deselect a property without metadata. */
export const toSingerCatalog = (streams: readonly DiscoveredStream[]) => ({
  streams: streams.map(describeEntry),
});

function describeEntry(stream: DiscoveredStream): object {
  const { spec, schema, isComplete } = stream;
  const { name, primaryKey } = spec;
  const replicationKey = cursorOf(stream);
  const [method] = methodsOf(stream);
  const root = {
    inclusion: "available",
    // A stream that costs money or hours is sent only if the user selects it.
    "selected-by-default": spec.setting === undefined,
    "table-key-properties": primaryKey,
    "valid-replication-keys": replicationKey === null ? [] : [replicationKey],
    "forced-replication-method": method,
    ...(!isComplete && { sampled: false }),
  };
  const fields = propertyMetadata(schema, [], neededFields(stream));
  return {
    tap_stream_id: name,
    stream: name,
    key_properties: primaryKey,
    ...(replicationKey !== null && { replication_key: replicationKey }),
    replication_method: method,
    schema,
    metadata: [{ breadcrumb: [], metadata: root }, ...fields],
  };
}

/** The metadata of `properties`. No selection reaches into arrays. */
function propertyMetadata(
  schema: JsonSchema,
  parent: readonly string[],
  needed: readonly string[] = [],
): readonly object[] {
  return Object.entries(propertiesOf(schema)).flatMap(([name, property]) => {
    const breadcrumb = [...parent, "properties", name];
    const inclusion = needed.includes(name) ? "automatic" : "available";
    return [{ breadcrumb, metadata: { inclusion } }, ...propertyMetadata(property, breadcrumb)];
  });
}

/** Top-level fields that every record needs and no selection drops. */
export function neededFields(stream: DescribedStream): readonly string[] {
  const cursor = cursorOf(stream);
  return cursor === null ? stream.spec.primaryKey : [...stream.spec.primaryKey, cursor];
}
