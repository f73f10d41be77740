import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf, quoted } from "../base/json.ts";
import { type JsonSchema, schemaIn, TIMESTAMP } from "./schema.ts";
import { canRefresh, ROW_STREAMS, type StreamSpec } from "./streams.ts";

/** A stream that `discover` found. */
export type DiscoveredStream = {
  readonly spec: StreamSpec;
  readonly schema: JsonSchema;
  /** Whether the schema has all fields: they are fixed, or live rows showed them. */
  readonly isComplete: boolean;
};

export type DescribedStream = Pick<DiscoveredStream, "spec" | "schema">;

/** The field by which a stream can be read incrementally. Null if live records lack the field. */
export function cursorOf({ spec, schema }: DescribedStream): string | null {
  const { cursorField } = spec;
  return cursorField !== null && schema.properties?.[cursorField]?.format === TIMESTAMP.format
    ? cursorField
    : null;
}

/** Airbyte's catalog. */
export function toCatalog(streams: readonly DescribedStream[]) {
  const entries = streams.map(({ spec, schema }) => {
    const cursor = cursorOf({ spec, schema });
    return {
      name: spec.name,
      json_schema: schema,
      supported_sync_modes: spec.modes.filter((mode) => mode !== "incremental" || cursor !== null),
      source_defined_cursor: cursor !== null,
      ...(cursor !== null && { default_cursor_field: [cursor] }),
      source_defined_primary_key: spec.primaryKey.map((field) => [field]),
      // An interrupted full refresh continues from its last checkpoint.
      is_resumable: ROW_STREAMS.some(({ name, isDated }) => name === spec.name && isDated),
    };
  });
  return { streams: entries };
}

/** A stream in a configured catalog. The catalog may name modes that do not exist. */
export type ConfiguredStream = {
  readonly name: string;
  /** The platform's name for the group of the stream. Absent: none. */
  readonly namespace?: string | undefined;
  readonly syncMode: string;
  readonly destinationSyncMode: string | null;
  readonly generationId: number | null;
  /** Above 0: once the stream is complete, the platform drops the records of older generations. */
  readonly minimumGenerationId?: number | undefined;
  readonly syncId: number | null;
  /** The schema that the destination has; null if the catalog does not say. */
  readonly schema: JsonSchema | null;
};

/** A stream without a configured catalog: incremental, for a destination that is not known. */
export const incremental = (name: string): ConfiguredStream => ({
  name,
  syncMode: "incremental",
  destinationSyncMode: null,
  generationId: null,
  syncId: null,
  schema: null,
});

/** Reads a configured catalog, or all streams of a catalog of `discover`. @throws ConfigError for another form */
export function parseConfiguredCatalog(value: unknown): readonly ConfiguredStream[] {
  const { catalog = value } = objectOf(value);
  const { streams } = objectOf(catalog);
  if (!Array.isArray(streams)) throw unusableAirbyteCatalog('it has no list "streams"');
  const configured = streams.map(parseConfiguredStream);
  // A job stream may be configured once, in any namespace, because its records are bought once.
  const ids = configured.map(({ name, namespace = "" }) =>
    JSON.stringify([canRefresh(name) ? namespace : "", name]),
  );
  const twice = configured[ids.findIndex((id, index) => ids.indexOf(id) !== index)];
  if (twice !== undefined) throw unusableAirbyteCatalog(`it has the stream ${quoted(twice.name)} twice`);
  return configured;
}

function parseConfiguredStream(entry: unknown, index: number): ConfiguredStream {
  const configured = isObject(entry) && typeof entry["name"] === "string" ? byDefault(entry) : entry;
  const { stream, sync_mode, destination_sync_mode, generation_id, minimum_generation_id, sync_id } =
    objectOf(configured);
  const { name, namespace, json_schema } = objectOf(stream);
  if (typeof name !== "string" || name === "")
    throw unusableAirbyteCatalog(`streams[${index}] lacks a "stream" with a "name", and a "name" of its own`);
  refuseApiForm(name, { ...objectOf(stream), ...objectOf(entry) });
  if (typeof sync_mode !== "string")
    throw unusableAirbyteCatalog(`${quoted(name)} has no sync_mode. Write "incremental" or "full_refresh"`);
  return {
    name,
    ...(typeof namespace === "string" && namespace !== "" && { namespace }),
    syncMode: sync_mode,
    destinationSyncMode: typeof destination_sync_mode === "string" ? destination_sync_mode : null,
    generationId: toId(generation_id),
    minimumGenerationId: toId(minimum_generation_id) ?? undefined,
    syncId: toId(sync_id),
    schema: schemaIn(json_schema) ?? null,
  };
}

/** Keys that Airbyte's API and Terraform write, and that the protocol does not have. */
const API_KEYS =
  /^(?:config|syncMode|destinationSyncMode|jsonSchema|cursorField|primaryKey|selected|selected_?fields|field_?selection_?enabled|hashed_?fields|mappers)$/i;

/** @throws ConfigError for a catalog of Airbyte's API, because its deselected fields would be sent */
function refuseApiForm(name: string, entry: JsonObject): void {
  const isSet = (value: unknown): boolean => value !== null && (!Array.isArray(value) || value.length > 0);
  const keys = Object.keys(entry).filter((key) => API_KEYS.test(key) && isSet(entry[key]));
  if (keys.length === 0) return;
  throw unusableAirbyteCatalog(
    `${quoted(name)} has ${keys.map(quoted).join(", ")}, as Airbyte's API writes it. Write "stream" and "sync_mode", as the protocol does`,
  );
}

function byDefault(stream: JsonObject): JsonObject {
  const { supported_sync_modes: modes = ["incremental"], sync_mode } = stream;
  if (sync_mode !== undefined) return { stream, sync_mode };
  const isIncremental = Array.isArray(modes) && modes.includes("incremental");
  return { stream, sync_mode: isIncremental ? "incremental" : "full_refresh" };
}

const toId = (value: unknown): number | null => (Number.isInteger(value) ? Number(value) : null);

const unusableAirbyteCatalog = (why: string): ConfigError =>
  new ConfigError(`Cannot use the catalog: ${why}`);
