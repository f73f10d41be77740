import { ConfigError, ConnectorError } from "../base/errors.ts";
import type { FieldFilter } from "../catalog/field-rules.ts";
import { ROW_STREAMS } from "../catalog/streams.ts";
import { type Config, secretsOf } from "../config/config.ts";
import { isDebug, type LogLevel } from "../protocol/log.ts";
import type { Mask } from "../protocol/mask.ts";
import type { Usage } from "../service/usage.ts";
import { stateOf } from "../state/resume.ts";
import { type Event, info, type Notice, warning } from "../sync/event.ts";
import { streamEvents } from "./read-stream.ts";
import type { Reader, RequestedStream } from "./reader.ts";
import { RowReader } from "./row-reader.ts";
import type { Runtime } from "./runtime.ts";
import { type Pace, Session } from "./session.ts";

/** The readers of streams, in the order of the catalog, and the rules for the fields in the output. */
export type Guests = { readonly readers: readonly Reader[]; readonly privacy: FieldFilter };

/** An open run. */
export type Run = Guests & { readonly session: Session; readonly emit: (event: Event) => Promise<void> };

/** The output of a run's events. `mask` hides the secrets before the first event. */
export type Reporter = {
  readonly mask: Mask;
  emit(event: Event): Promise<void>;
  /** Gets the function that counts the session's requests. */
  measure?(usage: () => Usage): void;
};

export type RunOptions = {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly reporter: Reporter;
  readonly guests: (session: Session, rows: readonly Reader[]) => Promise<Guests>;
  readonly pace?: Pace;
  /** Undefined: the level of the environment. At "debug" each request is logged. */
  readonly logLevel?: LogLevel | undefined;
};

/** Opens a session, and closes it at the end of the work. If the output fails, open requests are aborted. */
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
  const isVerbose = isDebug(logLevel, runtime.environment);
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
 * Reads streams, one after the other, until an error concerns all streams, such as a wrong key.
 * @param state each stream's part of the incoming state
 * @param sample the maximum number of rows of each stream, without checkpoints; undefined: all rows, with checkpoints
 * @returns whether all streams were delivered completely
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

/** Whether an error stops the run, because every later stream would fail too. */
const isOfAll = (error: unknown): boolean =>
  error instanceof ConnectorError &&
  (error.scope === "service" || (error.scope === "run" && error instanceof ConfigError));

/** The first rows of a stream, and its end. The checkpoints are removed, so that no state is saved. */
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
