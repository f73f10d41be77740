import { ConfigError, OutputError, UnreachableError } from "../base/errors.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import { type JsonSchema, loadSchema } from "../catalog/schema.ts";
import type { Selection } from "../catalog/singer-selection.ts";
import { hasRows, type RowStreamSpec, type StreamSpec } from "../catalog/streams.ts";
import { schemaUnder } from "../privacy/field-rules.ts";
import { OutputClosed } from "../protocol/writer.ts";
import { filtersOf, isFullRefresh, type Resume, resumeDated, resumeWhole } from "../state/resume.ts";
import { Checkpoints } from "../sync/checkpoints.ts";
import { uncovered } from "../sync/coverage.ts";
import { type Event, type LineBatch, recordsOf } from "../sync/event.ts";
import type { Outcome, RunRules } from "../sync/outcome.ts";
import { parallel } from "../sync/parallel.ts";
import { type PlannedWindow, planWindows } from "../sync/plan.ts";
import { measureAll, measureDays, type Range, type ReadSettings } from "../sync/range.ts";
import { readWindow } from "../sync/read-window.ts";
import type { Service } from "../sync/service.ts";
import type { DatedState } from "../sync/state.ts";
import { WindowSize } from "../sync/window-size.ts";
import { catalogWarnings, outgoing } from "./outgoing.ts";
import { cannotBeCounted, type Reading, type Session, streamNamed } from "./session.ts";
import type { SyncWindows } from "./sync-windows.ts";
import { ofSameRows } from "./whose-rows.ts";

/** A part of a plan of shards: its digest, and whether it reads the people without a date. */
export type ShardTask = { readonly plan: string; readonly bringsUndated: boolean };

/** A stream that was asked for. */
export type Asked = {
  readonly configured: ConfiguredStream;
  /** What the destination was told of the records; undefined: what is declared or configured. */
  readonly declaredSchema?: JsonSchema | null | undefined;
  /** What a Singer catalog lets out. */
  readonly selection?: Selection | undefined;
  /** The part of a plan that the run reads, if it reads one. */
  readonly shard?: ShardTask | undefined;
};

const SYNC_MODES: ReadonlySet<string> = new Set(["full_refresh", "incremental"]);

/**
 * The events of one stream to its end: a stream that fails ends with an error, and does not stop others.
 * @param savedState the stream's part of the incoming state
 * @param windows what is known of windows of other streams
 * @throws what no other stream survives either
 */
export async function* streamEvents(
  session: Session,
  asked: Asked,
  savedState: unknown,
  windows: SyncWindows,
): AsyncGenerator<Event> {
  const { configured, selection } = asked;
  const stream = configured.name;
  yield { kind: "open", stream, before: savedState };
  const leave = outgoing(stream, session.privacy, selection);
  try {
    const spec = streamNamed(stream, session.config, "Discover again and update the catalog");
    if (!SYNC_MODES.has(configured.syncMode)) throw unknownMode(configured);
    yield* catalogWarnings(stream, configured.schema, session.privacy);
    let events: AsyncIterable<Event> | Iterable<Event>;
    if (hasRows(spec)) {
      const run = await streamRun(session, spec, asked, savedState);
      if (!run.source.isListed) yield { kind: "log", level: "warn", text: cannotBeCounted(spec) };
      events = readStream(run);
    } else if (spec.reading === "proof") events = windows.read();
    else events = session.readJobs(spec, arrivingSchema(session, spec, asked));
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

/** How a stream is read that goes on from a state. */
export async function streamRun(
  session: Session,
  spec: RowStreamSpec,
  asked: Asked,
  savedState: unknown,
): Promise<StreamRun> {
  const { configured, shard } = asked;
  const schema = arrivingSchema(session, spec, asked);
  const { config, began } = session;
  const reading = await session.readingOf(spec);
  const { isDated } = reading;
  if (shard !== undefined && (!isDated || isFullRefresh(configured))) throw notSharded(spec);
  const filters = filtersOf(config);
  const isLimited = config.maxRunSeconds !== null && !isFullRefresh(configured);
  const rules = { cursor: isDated ? spec.cursorField : null, schema };
  const { name: stream, exportPath } = spec;
  const { keyId } = session;
  let saved = isDated
    ? resumeDated(configured, savedState, filters, shard?.plan ?? null, session.service)
    : resumeWhole(configured, savedState, filters);
  if (saved.kind === "read") {
    const everyone = session.streamApi(spec, rules, {});
    saved = { ...saved, state: await ofSameRows(saved.state, stream, keyId, everyone) };
  }
  return {
    ...{ stream, saved, keyId },
    source: { ...reading, isExported: exportPath !== null, onMissingKey: onMissingKey(spec, configured) },
    api: session.streamApi(spec, rules),
    settings: { ...config, bringsUndated: shard?.bringsUndated },
    endsAt: isLimited ? began + config.maxRunSeconds * 1000 : undefined,
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

const notSharded = ({ name }: StreamSpec): ConfigError =>
  new ConfigError(
    `Cannot read a shard of "${name}": its records need a date, and its sync_mode must be "incremental". Read it in one run`,
  );

const unknownMode = ({ name, syncMode }: ConfiguredStream): ConfigError =>
  new ConfigError(
    `Cannot read the stream "${name}": sync_mode is "${syncMode}", it must be "full_refresh" or "incremental"`,
  );

/** How the rows of a stream are read. */
export type Source = Reading & {
  readonly isExported: boolean;
  readonly onMissingKey: RunRules["onMissingKey"];
};

/** One stream to read. */
export type StreamRun = {
  readonly stream: string;
  readonly source: Source;
  readonly api: Service;
  readonly saved: Resume;
  readonly settings: ReadSettings;
  /** A digest of the API key's id. */
  readonly keyId: string;
  /** Monotonic ms after which no further window begins; undefined is never. */
  readonly endsAt: number | undefined;
};

/** Reads one stream: measures what there is, plans windows, reads some at once, and says how far it is after each. */
export async function* readStream(run: StreamRun): AsyncGenerator<Event> {
  const { stream, api, saved, settings } = run;
  if (saved.kind === "delivered") {
    // Nothing is left to read, but the platform wants to be told so.
    yield { kind: "checkpoint", stream, state: saved.state };
    yield { kind: "close", stream, complete: true };
    return;
  }
  if (saved.why !== undefined) yield { kind: "log", level: "warn", text: saved.why };
  const range = await measure(run, saved.state);
  if (range.warning !== undefined) {
    yield { kind: "log", level: "warn", text: `The state of "${stream}" ${range.warning}` };
  }
  const { count } = range;
  if (count.known) yield { kind: "estimate", stream, rows: count.rows + count.undated };
  const checkpoints = new Checkpoints(stream, range);
  let passes = 0;
  let isTimeUp = false;
  const rules = rulesOf(run, range);
  async function* read(planned: PlannedWindow): AsyncGenerator<LineBatch, readonly Outcome[]> {
    const outcomes: Outcome[] = [];
    for await (const event of readWindow(planned, rules)) {
      if (event.kind === "rows") yield event.batch;
      else outcomes.push(event.outcome);
    }
    for (const outcome of outcomes) passes += outcome.passes;
    return outcomes;
  }
  // The time is up at a window's end, but not before the run has come further than what the next would have to repeat.
  let isFurther = false;
  const begins = ({ clears, window, days }: PlannedWindow): boolean => {
    isTimeUp = isFurther && api.monotonic() >= (run.endsAt ?? Number.POSITIVE_INFINITY);
    const isNew = days !== undefined && uncovered(range.state.days, days).length > 0;
    isFurther ||= isNew || clears === "again" || window.kind === "open";
    return !isTimeUp;
  };
  const steps = parallel(
    planWindows(range, { ...rules, api, ignoredDays: settings.ignoreMissingDays }),
    settings.numWorkers,
    {
      isAlone: ({ window }) => window.kind !== "closed",
      begins,
      read,
    },
  );
  for await (const step of steps) {
    if (step.kind === "part") yield* recordsOf(stream, step.part, api.now(), step.index);
    else yield* checkpoints.finish(step.index, step.item, step.result);
  }
  yield* checkpoints.close(passes, isTimeUp);
}

/** What there is to read, before its first row. */
export async function measure({ source, settings, api }: StreamRun, state: DatedState): Promise<Range> {
  if (source.isDated) return await measureDays(state, settings, api);
  return await measureAll(state, settings.verifyCounts && source.isListed && source.isExported, api);
}

function rulesOf({ source, api, settings }: StreamRun, range: Range): RunRules {
  const { isExported, isListed, onMissingKey } = source;
  return {
    ...{ service: api, isExported, isListed, onMissingKey },
    verifyCounts: settings.verifyCounts && isListed,
    yesterday: range.yesterday,
    until: range.until,
    latest: range.latest,
    windowSize: new WindowSize(settings.maxWindowRows),
  };
}
