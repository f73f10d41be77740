import type { Config } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { OutputClosed } from "../protocol/writer.ts";
import type { RowReader } from "../service/row.ts";
import type { Session } from "../service/session.ts";
import type { ConfiguredStream } from "../source/catalog.ts";
import { parseJobState, toJobState } from "../source/job-state.ts";
import {
  datedState,
  filtersOf,
  isFullRefresh,
  plainState,
  type Resume,
  resumeDated,
  resumePlain,
} from "../source/resume.ts";
import { RowCheck } from "../source/row-check.ts";
import { type JsonSchema, loadSchema } from "../source/schema.ts";
import { type JobStreamSpec, type RowStreamSpec, STREAMS, type StreamSpec } from "../source/streams.ts";
import { type Limits, readDated } from "../sync/dated.ts";
import type { Event, StreamState } from "../sync/event.ts";
import { readJobs } from "../sync/jobs.ts";
import { readExported, readListed } from "../sync/plain.ts";
import type { Ports } from "../sync/ports.ts";
import type { Process } from "./world.ts";

/** One stream of a sync. */
export type StreamJob = {
  readonly config: Config;
  readonly session: Session;
  readonly configured: ConfiguredStream;
  /** What the destination was told of the records; undefined: what is declared or configured. */
  readonly told?: JsonSchema | undefined;
  /** The stream's part of the incoming state. */
  readonly blob: unknown;
  readonly world: Process;
  /** When the run began, by the monotonic clock. */
  readonly began: number;
};

const SYNC_MODES: ReadonlySet<string> = new Set(["full_refresh", "incremental"]);

/** Reads one stream to its end, whatever that is. Returns whether all of it was delivered. */
export async function readStream(job: StreamJob, emit: (event: Event) => Promise<void>): Promise<boolean> {
  const stream = job.configured.name;
  let complete = false;
  try {
    await emit({ kind: "open", stream });
    for await (const event of eventsOf(job)) {
      await emit(event);
      if (event.kind === "close") complete = event.complete;
    }
  } catch (error) {
    job.world.signal.throwIfAborted();
    if (error instanceof OutputClosed) throw error;
    await emit({ kind: "close", stream, complete: false, error });
  }
  return complete;
}

async function* eventsOf(job: StreamJob): AsyncGenerator<Event> {
  const { configured } = job;
  const spec: StreamSpec | undefined = STREAMS.find(({ name }) => name === configured.name);
  if (spec === undefined) throw unknownStream(job);
  if (!job.session.streams.includes(spec)) throw notConfigured(spec);
  if (!SYNC_MODES.has(configured.syncMode)) throw unknownMode(configured);
  const known = spec.sampled ? configured.schema : loadSchema(spec.schemaFile);
  const check = new RowCheck(spec.name, job.told ?? known);
  const events = spec.reading === "job" ? jobEvents(job, spec, check) : rowEvents(job, spec, check);
  for await (const event of events) {
    const added = check.takeAdded();
    if (added !== undefined) yield { kind: "fields", stream: spec.name, added };
    const report = event.kind === "close" ? check.report() : undefined;
    if (report !== undefined) yield { kind: "log", level: "warn", text: report };
    yield event;
  }
}

async function* rowEvents(job: StreamJob, spec: RowStreamSpec, check: RowCheck): AsyncGenerator<Event> {
  const { config, session, configured } = job;
  const { dated, listed } =
    spec.reading === "list" ? { dated: false, listed: true } : await session.readingOf(spec);
  const ports = session.ports(spec, dated ? spec.cursorField : null, check, withoutKey(spec, configured));
  const resume = dated
    ? resumeDated(configured, job.blob, filtersOf(config))
    : resumePlain(configured, job.blob);
  if (dated) yield* datedEvents(job, resume, ports);
  else yield* plainEvents(job, spec, resume, ports, listed);
}

/** State always counts, whatever the mode: it says what has been paid for. */
async function* jobEvents(
  { session, configured, blob }: StreamJob,
  spec: JobStreamSpec,
  check: RowCheck,
): AsyncGenerator<Event> {
  const saved = parseJobState(spec.name, blob, spec.cursorField);
  if (isFullRefresh(configured)) yield { kind: "log", level: "warn", text: incrementalOnly(spec) };
  yield* readJobs(session.family(spec, check), saved, toJobState(spec.cursorField));
}

async function* datedEvents(job: StreamJob, resume: Resume, ports: Ports): AsyncGenerator<Event> {
  const { config, configured } = job;
  const stream = configured.name;
  if (resume.kind === "done") {
    yield* delivered(stream, resume.state);
    return;
  }
  if (resume.kind === "anew" && resume.why !== undefined)
    yield { kind: "log", level: "warn", text: resume.why };
  yield* readDated({
    stream,
    resume: resume.kind === "resume" ? resume.progress : null,
    limits: limitsOf(job, ports),
    ports,
    toState: datedState(configured, filtersOf(config)),
    saysDone: isFullRefresh(configured),
  });
}

async function* plainEvents(
  { config, configured }: StreamJob,
  spec: RowStreamSpec,
  resume: Resume,
  ports: Ports,
  listed: boolean,
): AsyncGenerator<Event> {
  const plain = { stream: spec.name, ports, state: plainState(configured) };
  if (resume.kind === "done") yield* delivered(spec.name, resume.state);
  else if (spec.exportPath === null) yield* readListed(plain);
  else yield* readExported(plain, config.verifyCounts && listed, listed);
}

/** Nothing is left to deliver, but the platform wants to be told so. */
function* delivered(stream: string, state: StreamState): Generator<Event> {
  yield { kind: "checkpoint", stream, state };
  yield { kind: "close", stream, complete: true };
}

/** Destinations that merge by key cannot take a row without one, and fail the whole sync. */
function withoutKey(spec: RowStreamSpec, { destinationSyncMode }: ConfiguredStream): RowReader["withoutKey"] {
  if (!spec.sampled) return "unclean";
  return destinationSyncMode?.endsWith("_dedup") === true ? "drop" : "pass";
}

function limitsOf({ config, configured, world, began }: StreamJob, ports: Ports): Limits {
  const spent = world.clock.monotonic() - began;
  const left = config.maxRunSeconds === null ? undefined : config.maxRunSeconds * 1000 - spent;
  return {
    startDate: config.startDate,
    endDate: config.endDate,
    lookbackDays: config.lookbackWindowDays,
    maxRows: config.maxWindowRows,
    concurrency: config.numWorkers,
    verify: config.verifyCounts,
    ignoredDays: config.ignoreMissingDays,
    deadline: left === undefined || isFullRefresh(configured) ? undefined : ports.now() + left,
  };
}

const incrementalOnly = ({ name }: StreamSpec): string =>
  `${name} is incremental only: a full refresh delivers what is new, and does not buy again what was delivered before`;

function notConfigured({ name }: StreamSpec): ConfigError {
  const setting = name.replace(/s$/, "");
  return new ConfigError(
    `Cannot read the stream "${name}": it is there only when ${setting} is set in the config. Set it, or take the stream out of the sync`,
  );
}

function unknownStream({ configured: { name }, session }: StreamJob): ConfigError {
  const names = session.streams.map((stream) => stream.name).join(", ");
  return new ConfigError(
    `Cannot read the stream "${name}": this source has no such stream, only ${names}. Discover again and update the catalog`,
  );
}

function unknownMode({ name, syncMode }: ConfiguredStream): ConfigError {
  return new ConfigError(
    `Cannot read the stream "${name}": sync_mode is "${syncMode}", it must be "full_refresh" or "incremental"`,
  );
}
