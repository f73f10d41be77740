import { ConfigError, OutputError } from "../base/errors.ts";
import { type FieldFilter, schemaUnder } from "../catalog/field-rules.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import { ROW_STREAMS, type StreamSpec, streamNamed } from "../catalog/streams.ts";
import { OutputClosed } from "../protocol/writer.ts";
import { RowNotes } from "../service/row-notes.ts";
import type { Event } from "../sync/event.ts";
import { catalogWarnings, outgoing } from "./outgoing.ts";
import type { RequestedStream } from "./reader.ts";
import type { Run } from "./run.ts";

const SYNC_MODES = ["full_refresh", "incremental"];

/**
 * The events of one stream. If the stream fails, its last event has the error.
 * @param savedState the stream's part of the incoming state
 * @throws an error of the output, or the end of the run
 */
export async function* streamEvents(
  { session, readers, privacy }: Omit<Run, "emit">,
  asked: RequestedStream,
  savedState: unknown,
): AsyncGenerator<Event> {
  const { configured, selection } = asked;
  const stream = configured.name;
  yield { kind: "open", stream, before: savedState };
  const notes = new RowNotes();
  const leave = outgoing(stream, privacy, selection, notes);
  try {
    const spec = streamNamed(stream, session.config, "Discover again and update the catalog");
    if (!SYNC_MODES.includes(configured.syncMode))
      throw new ConfigError(
        `Cannot read the stream "${stream}": sync_mode is "${configured.syncMode}", it must be "full_refresh" or "incremental"`,
      );
    yield* catalogWarnings(stream, configured.schema, privacy);
    const reader = readers.find((one) => one.spec === spec);
    if (reader === undefined) throw new Error(`Cannot read "${stream}": it has no reader`);
    const events = reader.read(asked, { schema: arrivingSchema(spec, asked, privacy), notes }, savedState);
    for await (const event of events) yield* leave(event);
  } catch (error) {
    session.signal.throwIfAborted();
    // After a failure of the output, no other stream can be written.
    if (error instanceof OutputClosed || error instanceof OutputError) throw error;
    yield* leave({ kind: "close", stream, complete: false, error: explained(error, stream, savedState) });
  }
}

/** Explains the error if an earlier run has read the stream and this key may not. Returns every other error unchanged. */
function explained(error: unknown, stream: string, savedState: unknown): unknown {
  // The text does not fit a stream of jobs: the key may only lack the right to read the rows that name the items.
  const isRow = ROW_STREAMS.some(({ name }) => name === stream);
  if (!isRow || !(error instanceof ConfigError) || error.scope !== "stream" || savedState === undefined)
    return error;
  const { code, scope } = error;
  return new ConfigError(
    `This key may no longer read ${stream} (403 ${code}). Its rows and its state stay as they are. ` +
      "Use a key of the right plan, or take the stream out: name the others with --stream, or deselect it in the catalog",
    { code, scope, cause: error },
  );
}

/** The schema of arriving rows; null: no schema. Only Singer catalogs contain fields that are not selected. */
function arrivingSchema(spec: StreamSpec, asked: RequestedStream, privacy: FieldFilter): JsonSchema | null {
  const isComplete = spec.sampled || asked.selection !== undefined;
  const schema = isComplete ? asked.configured.schema : loadSchema(spec.name);
  return schema === null ? null : schemaUnder(privacy.rules(spec.name), schema, "arriving");
}
