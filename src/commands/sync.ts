import type { Config } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { Session } from "../service/session.ts";
import type { ConfiguredStream } from "../source/catalog.ts";
import type { JsonSchema } from "../source/schema.ts";
import type { Event } from "../sync/event.ts";
import { readStream } from "./read-stream.ts";
import type { Process } from "./world.ts";

/** One run's dealings, whatever language it speaks. */
export type Sync = {
  readonly config: Config;
  readonly session: Session;
  readonly world: Process;
  /** When the run began, by the monotonic clock. */
  readonly began: number;
  readonly emit: (event: Event) => Promise<void>;
};

/** A stream that was asked for. */
export type Asked = {
  readonly configured: ConfiguredStream;
  /** What the destination was told of the records; undefined: what is declared or configured. */
  readonly told?: JsonSchema | undefined;
};

/**
 * Opens a run's dealings with the service, and closes them whatever happens. Once nobody reads the output, nothing that
 * is still under way at the service is waited for.
 */
export async function withSession<Result>(
  config: Config,
  world: Process,
  emit: Sync["emit"],
  work: (sync: Sync) => Promise<Result>,
): Promise<Result> {
  const unread = new AbortController();
  const signal = AbortSignal.any([world.signal, unread.signal]);
  const session = new Session(config, { ...world, signal }, (notice) => void emit(notice));
  const began = world.clock.monotonic();
  const emitOrStop = async (event: Event): Promise<void> => {
    try {
      await emit(event);
    } catch (error) {
      unread.abort(error);
      throw error;
    }
  };
  try {
    return await work({ config, session, world, began, emit: emitOrStop });
  } finally {
    await session.close();
  }
}

/**
 * Reads streams, one after the other; one that fails does not stop the others.
 * @param state each stream's part of the incoming state
 * @returns whether all of them were delivered whole
 */
export async function syncStreams(
  { config, session, world, began, emit }: Sync,
  asked: readonly Asked[],
  state: ReadonlyMap<string, unknown>,
): Promise<boolean> {
  let complete = true;
  for (const { configured, told } of asked) {
    const blob = state.get(configured.name);
    const whole = await readStream({ config, session, configured, told, blob, world, began }, emit);
    complete &&= whole;
  }
  return complete;
}

/** Every stream that this key's plan covers, or those that are named, incremental where they can be. */
export async function readableStreams(
  { session, emit }: Sync,
  names: readonly string[] = [],
): Promise<readonly ConfiguredStream[]> {
  const streams: ConfiguredStream[] = [];
  for (const spec of session.streams) {
    if (names.length > 0 && !names.includes(spec.name)) continue;
    try {
      if (names.length === 0) await session.probe(spec);
    } catch (error) {
      if (error instanceof ConfigError && error.code === "ENDPOINT_NOT_ON_PLAN") {
        await emit({ kind: "log", level: "warn", text: `"${spec.name}" is left out. ${error.message}` });
        continue;
      }
    }
    streams.push(incremental(spec.name));
  }
  return streams;
}

const incremental = (name: string): ConfiguredStream => ({
  name,
  syncMode: "incremental",
  destinationSyncMode: null,
  generationId: null,
  syncId: null,
  schema: null,
});
