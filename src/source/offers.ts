import { isObject } from "../json.ts";
import { cursorOf, type DiscoveredStream } from "./catalog.ts";
import { type JsonSchema, loadSchema } from "./schema.ts";
import type { Offer } from "./singer-catalog.ts";
import { STREAMS } from "./streams.ts";

/** A stream as a Singer catalog offers it. */
export function toOffer(stream: DiscoveredStream): Offer {
  const { spec, schema } = stream;
  const replicationKey = cursorOf(stream);
  return {
    name: spec.name,
    schema,
    keyProperties: spec.primaryKey,
    replicationKey,
    methods: methodsOf(stream),
    // What costs money or hours must be asked for.
    selectedByDefault: spec.reading !== "job",
  };
}

function methodsOf(stream: DiscoveredStream): Offer["methods"] {
  if (stream.spec.reading === "job") return ["INCREMENTAL"];
  return cursorOf(stream) === null ? ["FULL_TABLE"] : ["INCREMENTAL", "FULL_TABLE"];
}

/** What a catalog that came back says of the fields, so that the service need not be asked again. */
export function offersIn(catalog: unknown): readonly Offer[] {
  const { streams } = isObject(catalog) ? catalog : {};
  const entries = Array.isArray(streams) ? streams.filter(isObject) : [];
  return STREAMS.map((spec) => {
    const entry = entries.find(({ tap_stream_id: id, stream }) => (id ?? stream) === spec.name);
    const schema = entry?.["schema"];
    const known = isObject(schema) && isObject(schema["properties"]) ? (schema as JsonSchema) : undefined;
    return toOffer({ spec, schema: known ?? loadSchema(spec.schemaFile) });
  });
}
