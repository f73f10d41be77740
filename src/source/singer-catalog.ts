export type JsonSchema = Readonly<Record<string, unknown>>;
export type ReplicationMethod = "FULL_TABLE" | "INCREMENTAL";

/** A stream as the source can give it. The first method is the one that it takes unless the user wants another. */
export type Offer = {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly keyProperties: readonly string[];
  readonly replicationKey: string | null;
  readonly methods: readonly [ReplicationMethod, ...ReplicationMethod[]];
  readonly selectedByDefault: boolean;
};

/** The catalog of `--discover`. Every property has metadata, because Meltano cannot deselect one that lacks it. */
export function toSingerCatalog(offers: readonly Offer[]): { readonly streams: readonly object[] } {
  return { streams: offers.map(toEntry) };
}

function toEntry(offer: Offer): object {
  const { name, schema, keyProperties, replicationKey, methods } = offer;
  return {
    tap_stream_id: name,
    stream: name,
    key_properties: keyProperties,
    ...(replicationKey === null ? {} : { replication_key: replicationKey }),
    replication_method: methods[0],
    schema,
    metadata: [
      rootMetadata(offer),
      ...propertyMetadata(schema, [], automaticFields(keyProperties, replicationKey)),
    ],
  };
}

function rootMetadata(offer: Offer): object {
  const { keyProperties, replicationKey, methods, selectedByDefault } = offer;
  const metadata = {
    inclusion: "available",
    "selected-by-default": selectedByDefault,
    "table-key-properties": keyProperties,
    "valid-replication-keys": replicationKey === null ? [] : [replicationKey],
    "forced-replication-method": methods[0],
  };
  return { breadcrumb: [], metadata };
}

/** Below `properties` only: no selection reaches into arrays. */
function propertyMetadata(
  schema: unknown,
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

export const propertiesOf = (schema: unknown): JsonSchema =>
  asRecord((asRecord(schema) as { readonly properties?: unknown }).properties);

export const isRecord = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asRecord = (value: unknown): JsonSchema => (isRecord(value) ? value : {});
