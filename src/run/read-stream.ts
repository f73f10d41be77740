import { ConfigError, OutputError, UnreachableError } from "../base/errors.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import { schemaUnder } from "../catalog/field-rules.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import { hasRows, type RowStreamSpec, type StreamSpec } from "../catalog/streams.ts";
import { OutputClosed } from "../protocol/writer.ts";
import { filtersOf, isFullRefresh, type Resume, resumeRows, resumeWhole } from "../state/resume.ts";
import type { Event } from "../sync/event.ts";
import { type RowStream, readRows, type Source } from "../sync/read-stream.ts";
import type { RowState } from "../sync/state.ts";
import { catalogWarnings, outgoing } from "./outgoing.ts";
import { cannotBeCounted, type Session, streamNamed } from "./session.ts";

/** A stream that was asked for. */
export type Asked = {
  readonly configured: ConfiguredStream;
  /** What the destination was told of the records; undefined: what is declared or configured. */
  readonly declaredSchema?: JsonSchema | null | undefined;
  /** What a Singer catalog lets out. */
  readonly selection?: Selection | undefined;
};

const SYNC_MODES: ReadonlySet<string> = new Set(["full_refresh", "incremental"]);

/**
 * The events of one stream to its end: a stream that fails ends with an error, and does not stop others.
 * @param savedState the stream's part of the incoming state
 * @throws what no other stream survives either
 */
export async function* streamEvents(
  session: Session,
  asked: Asked,
  savedState: unknown,
): AsyncGenerator<Event> {
  const { configured, selection } = asked;
  const stream = configured.name;
  yield { kind: "open", stream, before: savedState };
  const leave = outgoing(stream, session.privacy, selection);
  try {
    const spec = streamNamed(stream, session.config, "Discover again and update the catalog");
    if (!SYNC_MODES.has(configured.syncMode)) throw unknownMode(configured);
    yield* catalogWarnings(stream, configured.schema, session.privacy);
    const events = hasRows(spec)
      ? rowEvents(session, spec, asked, savedState)
      : session.readJobs(spec, arrivingSchema(session, spec, asked));
    for await (const event of events) yield* leave(event);
  } catch (error) {
    session.signal.throwIfAborted();
    if (isRunsEnd(error)) throw error;
    yield* leave({ kind: "close", stream, complete: false, error });
  }
}

/** Whether no other stream can be read or written either. */
const isRunsEnd = (error: unknown): boolean =>
  error instanceof OutputClosed || error instanceof OutputError || error instanceof UnreachableError;

/** The schema that rows are checked against as they arrive; null if nobody knows one. */
function arrivingSchema(session: Session, spec: StreamSpec, asked: Asked): JsonSchema | null {
  const known = spec.sampled ? asked.configured.schema : loadSchema(spec.name);
  const schema = asked.declaredSchema ?? known;
  return schema === null ? null : schemaUnder(session.privacy.rules(spec.name), schema, "arriving");
}

/** The events of a stream of rows: nothing is left to read of a full refresh that was delivered. */
async function* rowEvents(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): AsyncGenerator<Event> {
  const stream = spec.name;
  const { saved, open } = await resumeStream(session, spec, asked, savedState);
  if (saved.kind === "delivered") {
    yield { kind: "checkpoint", stream, state: saved.state };
    yield { kind: "close", stream, complete: true };
    return;
  }
  const run = open(saved.state);
  if (saved.why !== undefined) yield { kind: "log", level: "warn", text: saved.why };
  if (!run.source.isListed) yield { kind: "log", level: "warn", text: cannotBeCounted(spec) };
  yield* readRows(run);
}

/** What the incoming state means for a stream of rows, and how the stream is read from a state. */
export async function resumeStream(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): Promise<{ readonly saved: Resume; readonly open: (state: RowState) => RowStream }> {
  const { configured } = asked;
  const schema = arrivingSchema(session, spec, asked);
  const { config, began } = session;
  const reading = await session.readingOf(spec);
  const { isDated } = reading;
  const filters = filtersOf(config);
  const isLimited = config.maxRunSeconds !== null && !isFullRefresh(configured);
  const rules = { cursor: isDated ? spec.cursorField : null, schema };
  const source = {
    ...reading,
    isExported: spec.exportPath !== null,
    onMissingKey: onMissingKey(spec, configured),
  };
  return {
    saved: isDated
      ? resumeRows(configured, savedState, filters, session.service)
      : resumeWhole(configured, savedState, filters),
    open: (state) => ({
      ...{ stream: spec.name, source, state, settings: config, key: session.keyId },
      service: session.streamApi(spec, rules),
      endsAt: isLimited ? began + config.maxRunSeconds * 1000 : undefined,
    }),
  };
}

/** Destinations that merge by key cannot take a row without one, and fail the complete sync. */
function onMissingKey(
  spec: RowStreamSpec,
  { destinationSyncMode }: ConfiguredStream,
): Source["onMissingKey"] {
  if (!spec.sampled) return "reject";
  return destinationSyncMode?.endsWith("_dedup") === true ? "drop" : "pass";
}

const unknownMode = ({ name, syncMode }: ConfiguredStream): ConfigError =>
  new ConfigError(
    `Cannot read the stream "${name}": sync_mode is "${syncMode}", it must be "full_refresh" or "incremental"`,
  );
