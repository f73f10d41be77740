import { ConfigError } from "../errors.ts";
import { isObject } from "../json.ts";
import { type JsonSchema, TIMESTAMP } from "./schema.ts";
import type { StreamSpec } from "./streams.ts";

/** A stream as `discover` found it. */
export type DiscoveredStream = { readonly spec: StreamSpec; readonly schema: JsonSchema };

/** A stream in Airbyte's catalog. */
export type CatalogStream = {
  readonly name: string;
  readonly json_schema: JsonSchema;
  readonly supported_sync_modes: readonly string[];
  readonly source_defined_cursor: boolean;
  readonly default_cursor_field?: readonly string[];
  readonly source_defined_primary_key: readonly (readonly string[])[];
  readonly is_resumable: boolean;
};

export type Catalog = { readonly streams: readonly CatalogStream[] };

/** The field by which a stream can be read incrementally, or null: live records may lack it. */
export function cursorOf({ spec, schema }: DiscoveredStream): string | null {
  const { cursorField } = spec;
  return cursorField !== null && schema.properties?.[cursorField]?.format === TIMESTAMP.format
    ? cursorField
    : null;
}

export function toCatalog(streams: readonly DiscoveredStream[]): Catalog {
  return { streams: streams.map(toCatalogStream) };
}

function toCatalogStream(stream: DiscoveredStream): CatalogStream {
  const { spec, schema } = stream;
  const cursor = cursorOf(stream);
  return {
    name: spec.name,
    json_schema: schema,
    supported_sync_modes: modesOf(stream),
    source_defined_cursor: cursor !== null,
    ...(cursor === null ? {} : { default_cursor_field: [cursor] }),
    source_defined_primary_key: spec.primaryKey.map((field) => [field]),
    is_resumable: spec.resumable,
  };
}

/** A job stream knows no full refresh: it would buy again what was bought. */
function modesOf(stream: DiscoveredStream): readonly string[] {
  if (stream.spec.reading === "job") return ["incremental"];
  return cursorOf(stream) === null ? ["full_refresh"] : ["full_refresh", "incremental"];
}

/** What a configured catalog asks of one stream. The modes are as given, known or not. */
export type ConfiguredStream = {
  readonly name: string;
  readonly syncMode: string;
  readonly destinationSyncMode: string | null;
  readonly generationId: number | null;
  readonly syncId: number | null;
  /** What the destination was told of the records; null if the catalog does not say. */
  readonly schema: JsonSchema | null;
};

/** Reads a configured catalog; unknown keys are ignored, and of a stream only its name is needed. */
export function parseConfiguredCatalog(value: unknown): readonly ConfiguredStream[] {
  const { streams } = isObject(value) ? value : {};
  if (!Array.isArray(streams)) throw unusable('it is not an object with a list "streams"');
  const configured = streams.map(parseConfiguredStream);
  const names = configured.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw unusable(`it has the stream ${JSON.stringify(twice)} twice`);
  return configured;
}

function parseConfiguredStream(entry: unknown, index: number): ConfiguredStream {
  const { stream, sync_mode, destination_sync_mode, generation_id, sync_id } = isObject(entry) ? entry : {};
  const { name, json_schema } = isObject(stream) ? stream : {};
  if (typeof name !== "string" || name === "") {
    throw unusable(
      `streams[${index}] has no "stream" with a "name" (a configured catalog is needed, not a discovered one)`,
    );
  }
  return {
    name,
    syncMode: typeof sync_mode === "string" ? sync_mode : "full_refresh",
    destinationSyncMode: typeof destination_sync_mode === "string" ? destination_sync_mode : null,
    generationId: toId(generation_id),
    syncId: toId(sync_id),
    schema: isObject(json_schema) && isObject(json_schema["properties"]) ? (json_schema as JsonSchema) : null,
  };
}

const toId = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) ? value : null;

const unusable = (why: string): ConfigError => new ConfigError(`Cannot use the catalog: ${why}`);
