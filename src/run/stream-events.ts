import type { ConfiguredStream } from "../catalog/airbyte.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import type { JobStreamSpec, RowStreamSpec, StreamSpec } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { ConfigError, OutputError, UnreachableError } from "../errors.ts";
import { readJobs } from "../jobs/run.ts";
import { OutputClosed } from "../protocol/writer.ts";
import type { DatedState } from "../state/dated.ts";
import { filtersOf, isFullRefresh, resumeDated, resumeWhole } from "../state/resume.ts";
import type { Event } from "../streams/event.ts";
import { Drift } from "./drift.ts";
import { catalogWarnings, withPrivacy } from "./outgoing.ts";
import { readStream, type Source, type StreamTask } from "./read-stream.ts";
import type { Runtime } from "./runtime.ts";
import { cannotBeCounted, type Session } from "./session.ts";

/** A part of a plan: its mark in the state, and whether it reads the people without a date. */
export type ShardTask = { readonly mark: DatedState["shard"]; readonly bringsUndated: boolean };

/** One stream of a sync. */
export type StreamJob = {
  readonly config: Config;
  readonly session: Session;
  readonly configured: ConfiguredStream;
  /** What the destination was told of the records; undefined: what is declared or configured. */
  readonly declaredSchema?: JsonSchema | null | undefined;
  /** What becomes of the events on their way out. */
  readonly outgoing?: ((events: AsyncIterable<Event>) => AsyncIterable<Event>) | undefined;
  /** The stream's part of the incoming state. */
  readonly savedState: unknown;
  /** The part of a plan that this run reads, if it reads one. */
  readonly shard?: ShardTask | undefined;
  readonly runtime: Runtime;
  /** When the run began, by the monotonic clock. */
  readonly began: number;
};

const SYNC_MODES: ReadonlySet<string> = new Set(["full_refresh", "incremental"]);

/**
 * The events of one stream to its end, whatever that is: a stream that fails ends with an error, and does not stop others.
 * @throws what no other stream survives either
 */
export async function* streamEvents(job: StreamJob): AsyncGenerator<Event> {
  yield { kind: "open", stream: job.configured.name, before: job.savedState };
  const events = eventsOf(job);
  yield* toClose(job.outgoing?.(events) ?? events, job);
}

/** Ends events that fail as a stream ends, so that whoever listens to its end hears of this one. */
async function* toClose(
  events: AsyncIterable<Event>,
  { configured, runtime }: StreamJob,
): AsyncGenerator<Event> {
  try {
    yield* events;
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (isRunsEnd(error)) throw error;
    yield { kind: "close", stream: configured.name, complete: false, error };
  }
}

/** Whether no other stream can be read or written either. */
const isRunsEnd = (error: unknown): boolean =>
  error instanceof OutputClosed || error instanceof OutputError || error instanceof UnreachableError;

async function* eventsOf(job: StreamJob): AsyncGenerator<Event> {
  const { configured, session } = job;
  const spec = session.streamNamed(configured.name, "Discover again and update the catalog");
  if (!SYNC_MODES.has(configured.syncMode)) throw unknownMode(configured);
  const known = spec.sampled ? configured.schema : loadSchema(spec.schemaFile);
  const { privacy } = session;
  yield* catalogWarnings(spec.name, configured.schema, privacy);
  const declaredSchema = job.declaredSchema ?? known;
  const schema = declaredSchema === null ? null : privacy.arrivingSchema(spec.name, declaredSchema);
  const events = spec.reading === "job" ? jobEvents(job, spec, schema) : rowEvents(job, spec, schema);
  yield* withPrivacy(withDrift(spec.name, toClose(events, job)), spec.name, privacy);
}

/** Turns what rows taught into events: new fields before the batch that has them, a report before the stream's end. */
async function* withDrift(stream: string, events: AsyncIterable<Event>): AsyncGenerator<Event> {
  const drift = new Drift();
  for await (const event of events) {
    if (event.kind === "records" && event.facts !== undefined) {
      const added = drift.add(event.facts);
      if (added !== undefined) yield { kind: "fields", stream, added };
    }
    if (event.kind === "records" && event.lines.length === 0) continue;
    const report = event.kind === "close" ? drift.report(stream) : undefined;
    if (report !== undefined) yield { kind: "log", level: "warn", text: report };
    yield event;
  }
}

async function* rowEvents(
  job: StreamJob,
  spec: RowStreamSpec,
  schema: JsonSchema | null,
): AsyncGenerator<Event> {
  const source = await sourceOf(job, spec);
  if (!source.isListed) yield { kind: "log", level: "warn", text: cannotBeCounted(spec) };
  yield* readStream(taskOf(job, spec, schema, source));
}

async function sourceOf({ session, configured }: StreamJob, spec: RowStreamSpec): Promise<Source> {
  const { dated, listed } =
    spec.reading === "list" ? { dated: false, listed: true } : await session.readingOf(spec);
  return {
    isDated: dated,
    isExported: spec.exportPath !== null,
    isListed: listed,
    onMissingKey: onMissingKey(spec, configured),
  };
}

function taskOf(
  { config, session, configured, savedState, began, shard }: StreamJob,
  spec: RowStreamSpec,
  schema: JsonSchema | null,
  source: Source,
): StreamTask {
  if (shard !== undefined && !source.isDated) throw notDated(spec);
  const filters = filtersOf(config);
  const isLimited = config.maxRunSeconds !== null && !isFullRefresh(configured);
  return {
    stream: spec.name,
    source,
    api: session.streamApi(spec, { cursor: source.isDated ? spec.cursorField : null, schema }),
    resumed: source.isDated
      ? resumeDated(configured, savedState, filters, shard?.mark)
      : resumeWhole(configured, savedState, filters),
    settings: { ...config, bringsUndated: shard?.bringsUndated },
    endsAt: isLimited ? began + config.maxRunSeconds * 1000 : undefined,
  };
}

/** State always counts, whatever the mode: it says what was paid for. */
async function* jobEvents(
  { session, began }: StreamJob,
  spec: JobStreamSpec,
  schema: JsonSchema | null,
): AsyncGenerator<Event> {
  yield* readJobs(session.jobContext(spec, schema, began));
}

/** Destinations that merge by key cannot take a row without one, and fail the whole sync. */
function onMissingKey(
  spec: RowStreamSpec,
  { destinationSyncMode }: ConfiguredStream,
): Source["onMissingKey"] {
  if (!spec.sampled) return "reject";
  return destinationSyncMode?.endsWith("_dedup") === true ? "drop" : "pass";
}

const notDated = ({ name }: StreamSpec): ConfigError =>
  new ConfigError(
    `Cannot read a shard of "${name}": its records have no date here, so the stream cannot be cut between days. Read it in one run`,
  );

function unknownMode({ name, syncMode }: ConfiguredStream): ConfigError {
  return new ConfigError(
    `Cannot read the stream "${name}": sync_mode is "${syncMode}", it must be "full_refresh" or "incremental"`,
  );
}
