import { ConfigError, ConnectorError } from "../base/errors.ts";
import type { FieldFilter } from "../catalog/field-rules.ts";
import { ROW_STREAMS } from "../catalog/streams.ts";
import { type Config, secretsOf } from "../config/config.ts";
import { type LogLevel, logLevelOf } from "../protocol/log.ts";
import type { Mask } from "../protocol/mask.ts";
import type { Usage } from "../service/usage.ts";
import { stateOf } from "../state/resume.ts";
import { type Event, info, type Notice, warning } from "../sync/event.ts";
import { streamEvents } from "./read-stream.ts";
import type { Reader, RequestedStream } from "./reader.ts";
import { RowReader } from "./row-reader.ts";
import type { Runtime } from "./runtime.ts";
import { type Pace, Session } from "./session.ts";

/** A run that is under way, whatever language it speaks. */
export type Run = {
  readonly session: Session;
  /** The streams that can be read, in the order of the catalog. */
  readonly readers: readonly Reader[];
  /** Decides which fields leave. */
  readonly privacy: FieldFilter;
  readonly emit: (event: Event) => Promise<void>;
};

/** Where a run says things. `mask` hides the secrets as soon as they are known, before anything else is said. */
export type Reporter = {
  readonly mask: Mask;
  emit(event: Event): Promise<void>;
  /** Gets the function that counts the session's requests. */
  measure?(usage: () => Usage): void;
};

/** The parts of a run that the core does without: more streams, and the fields that leave. */
export type Guests = { readonly readers: readonly Reader[]; readonly privacy: FieldFilter };

export type RunOptions = {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly reporter: Reporter;
  readonly guests: (session: Session, rows: readonly Reader[]) => Promise<Guests>;
  readonly pace?: Pace;
  /** Undefined: as the environment says. At "debug" each request is logged. */
  readonly logLevel?: LogLevel | undefined;
};

/**
 * Opens a session and its readers, and closes it whatever happens. When the output has no reader any more, the run waits
 * for no request.
 */
export async function withRun<Result>(
  { config, runtime, reporter, guests, pace, logLevel }: RunOptions,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  reporter.mask.hide(secretsOf(config));
  const unread = new AbortController();
  const signal = AbortSignal.any([runtime.signal, unread.signal]);
  const emit = async (event: Event): Promise<void> => {
    try {
      await reporter.emit(event);
    } catch (error) {
      unread.abort(error);
      throw error;
    }
  };
  const notify = (notice: Notice): void => void reporter.emit(notice);
  const isVerbose = (logLevel ?? logLevelOf(runtime.environment)) === "debug";
  const session = new Session(config, { ...runtime, signal }, notify, { ...pace, isVerbose });
  reporter.measure?.(() => session.usage);
  const rows = ROW_STREAMS.map((spec) => new RowReader(spec, session));
  try {
    if (config.note !== undefined) await emit(info(config.note));
    for (const text of config.warnings) await emit(warning(text));
    const { readers: others, privacy } = await guests(session, rows);
    const readers = [...rows, ...others];
    return await work({ session, readers, privacy, emit });
  } finally {
    await session.close();
  }
}

/**
 * Reads streams, one after the other. A stream that fails stops the others only if they would fail for the same error, such as
 * a wrong key.
 * @param state each stream's part of the incoming state
 * @param sample how many rows of each are enough, without a checkpoint; undefined: all
 * @returns whether all of them were delivered completely
 */
export async function syncStreams(
  run: Run,
  asked: readonly RequestedStream[],
  state: ReadonlyMap<string, unknown>,
  sample?: number,
): Promise<boolean> {
  const { emit, privacy } = run;
  let complete = true;
  for (const one of asked) {
    const { namespace } = one.configured;
    const savedState = stateOf(one.configured, asked, state);
    const isRow = ROW_STREAMS.some(({ name }) => name === one.configured.name);
    let [isComplete, isOver] = [false, false];
    const events = streamEvents(run, one, savedState);
    for await (const event of sample === undefined ? events : firstOf(events, sample)) {
      await emit(namespace === undefined ? event : { ...event, namespace });
      if (event.kind !== "close") continue;
      isComplete = event.complete;
      isOver = isRow && isOfAll(event.error);
    }
    complete &&= isComplete;
    if (isOver) break;
  }
  for (const text of privacy.unused()) await emit(warning(text));
  return complete;
}

/** Whether the next stream would fail for the same error. */
const isOfAll = (error: unknown): boolean =>
  error instanceof ConnectorError &&
  (error.scope === "service" || (error.scope === "run" && error instanceof ConfigError));

/** The first rows of a stream, and its end. Without a checkpoint nothing of it is saved. */
async function* firstOf(events: AsyncIterable<Event>, most: number): AsyncGenerator<Event> {
  let left = most;
  for await (const event of events) {
    if (event.kind === "checkpoint") continue;
    if (event.kind !== "records") {
      yield event;
      continue;
    }
    yield { ...event, lines: event.lines.slice(0, left) };
    left -= event.lines.length;
    if (left > 0) continue;
    yield { kind: "close", stream: event.stream, complete: true };
    return;
  }
}
