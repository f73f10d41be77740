import { secretsOf } from "../config.ts";
import { ConfigError } from "../errors.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { jsonl } from "../protocol/jsonl.ts";
import type { LogLevel } from "../protocol/log.ts";
import { secretMask } from "../protocol/mask.ts";
import { type ConfiguredStream, parseConfiguredCatalog } from "../source/catalog.ts";
import { openConfig } from "./config.ts";
import { readJson } from "./files.ts";
import { conclude, Output } from "./output.ts";
import { openState } from "./state-file.ts";
import { readableStreams, syncStreams, withSession } from "./sync.ts";
import type { Process } from "./world.ts";

export type ReadOptions = {
  readonly config: string | undefined;
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  /** Empty: all that are asked for. */
  readonly streams: readonly string[];
  readonly format: "airbyte" | "jsonl";
  readonly stateFile?: string | undefined;
  readonly logLevel?: LogLevel | undefined;
};

/** Reads the streams that are asked for, in Airbyte's language or as the bare records of one. */
export async function read(options: ReadOptions, world: Process): Promise<number> {
  const { format, logLevel } = options;
  const name = "source-contact-intelligence";
  const output = await Output.open({ name, logs: format === "jsonl", logLevel }, world);
  output.say = format === "jsonl" ? jsonl(options.streams[0] ?? "") : airbyte({ now: world.clock.now });
  return await conclude(output, world, () => readAsked(options, world, output));
}

async function readAsked(options: ReadOptions, world: Process, output: Output): Promise<boolean> {
  const config = await openConfig(options.config, world.environment);
  output.mask = secretMask(secretsOf(config));
  const catalog =
    options.catalog === undefined
      ? undefined
      : parseConfiguredCatalog(await readJson("catalog", options.catalog));
  const { saved, file } = await openState(options);
  output.stateFile = file;
  return await withSession(
    config,
    world,
    (event) => output.emit(event),
    async (sync) => {
      const streams = chosen(catalog ?? (await readableStreams(sync, options.streams)), options.streams);
      return await syncStreams(
        sync,
        streams.map((configured) => ({ configured })),
        saved.streams,
      );
    },
  );
}

function chosen(streams: readonly ConfiguredStream[], names: readonly string[]): readonly ConfiguredStream[] {
  const missing = names.find((name) => !streams.some((stream) => stream.name === name));
  if (missing !== undefined)
    throw new ConfigError(`Cannot read the stream "${missing}": the catalog does not have it`);
  return names.length === 0 ? streams : streams.filter(({ name }) => names.includes(name));
}
