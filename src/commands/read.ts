import { type Config, secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { jsonl } from "../protocol/jsonl.ts";
import type { Language } from "../protocol/language.ts";
import { secretMask } from "../protocol/mask.ts";
import { OutputClosed, Writer } from "../protocol/writer.ts";
import { Session } from "../service/session.ts";
import { type ConfiguredStream, parseConfiguredCatalog } from "../source/catalog.ts";
import { parseStateText, type SavedState } from "../source/state.ts";
import { STREAMS } from "../source/streams.ts";
import type { Event } from "../sync/event.ts";
import { openConfig } from "./config.ts";
import { readJson, readText } from "./files.ts";
import { readStream } from "./read-stream.ts";
import type { Process } from "./world.ts";

export type ReadOptions = {
  readonly config: string | undefined;
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  /** Empty: all that are asked for. */
  readonly streams: readonly string[];
  readonly format: "airbyte" | "jsonl";
};

/** What a sync is to do. */
type Job = {
  readonly config: Config;
  readonly catalog: readonly ConfiguredStream[] | undefined;
  readonly state: SavedState;
};

/** Reads the streams that are asked for, one after the other; one that fails does not stop the others. */
export async function read(options: ReadOptions, world: Process): Promise<number> {
  let mask = (text: string): string => text;
  const writer = new Writer(languageOf(options, world), world.stdout, undefined, {
    mask: (text) => mask(text),
  });
  let complete = false;
  try {
    const job = await openJob(options, world);
    mask = secretMask(secretsOf(job.config));
    complete = await sync(job, options, world, writer);
  } catch (error) {
    world.signal.throwIfAborted();
    if (error instanceof OutputClosed) throw error;
    await writer.emit({ kind: "failed", error });
  }
  await writer.emit({ kind: "end" });
  await writer.close();
  return complete ? 0 : 1;
}

function languageOf({ format, streams }: ReadOptions, { clock }: Process): Language {
  return format === "jsonl" ? jsonl(streams[0] ?? "") : airbyte({ now: clock.now });
}

async function openJob(options: ReadOptions, { environment }: Process): Promise<Job> {
  return {
    config: await openConfig(options.config, environment),
    catalog:
      options.catalog === undefined
        ? undefined
        : parseConfiguredCatalog(await readJson("catalog", options.catalog)),
    state: parseStateText(options.state === undefined ? "" : await readText("state", options.state)),
  };
}

async function sync(job: Job, options: ReadOptions, world: Process, writer: Writer): Promise<boolean> {
  const { config, state } = job;
  const unread = new AbortController();
  const signal = AbortSignal.any([world.signal, unread.signal]);
  const session = new Session(config, { ...world, signal }, (notice) => void writer.emit(notice));
  // Once nobody reads the output, nothing that is still under way at the service is waited for.
  const emit = async (event: Event): Promise<void> => {
    try {
      await writer.emit(event);
    } catch (error) {
      unread.abort(error);
      throw error;
    }
  };
  const began = world.clock.monotonic();
  try {
    const streams = job.catalog ?? (await readableStreams(session, options.streams, writer));
    let complete = true;
    for (const configured of chosen(streams, options.streams)) {
      const blob = state.streams.get(configured.name);
      const whole = await readStream({ config, session, configured, blob, world, began }, emit);
      complete &&= whole;
    }
    return complete;
  } finally {
    await session.close();
  }
}

function chosen(streams: readonly ConfiguredStream[], names: readonly string[]): readonly ConfiguredStream[] {
  const missing = names.find((name) => !streams.some((stream) => stream.name === name));
  if (missing !== undefined)
    throw new ConfigError(`Cannot read the stream "${missing}": the catalog does not have it`);
  return names.length === 0 ? streams : streams.filter(({ name }) => names.includes(name));
}

/** Without a catalog: every stream that this key's plan covers, incremental where it can be. */
async function readableStreams(
  session: Session,
  names: readonly string[],
  writer: Writer,
): Promise<readonly ConfiguredStream[]> {
  const streams: ConfiguredStream[] = [];
  for (const spec of STREAMS) {
    if (names.length > 0 && !names.includes(spec.name)) continue;
    try {
      if (names.length === 0) await session.probe(spec);
    } catch (error) {
      if (error instanceof ConfigError && error.code === "ENDPOINT_NOT_ON_PLAN") {
        await writer.emit({
          kind: "log",
          level: "warn",
          text: `"${spec.name}" is left out. ${error.message}`,
        });
        continue;
      }
    }
    streams.push({
      name: spec.name,
      syncMode: "incremental",
      destinationSyncMode: null,
      generationId: null,
      syncId: null,
      schema: null,
    });
  }
  return streams;
}
