import { type ConfiguredStream, parseConfiguredCatalog } from "../catalog/airbyte.ts";
import { STREAMS } from "../catalog/streams.ts";
import { ConfigError, UsageError } from "../errors.ts";
import { readCatalog } from "../files/read.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { jsonl } from "../protocol/jsonl.ts";
import type { LogLevel } from "../protocol/log.ts";
import { openConfig } from "../run/config-files.ts";
import { FolderOutput } from "../run/folder-output.ts";
import { Output, runToEnd } from "../run/output.ts";
import { incremental, readableStreams } from "../run/probe-streams.ts";
import { openJobs, type Run, syncStreams, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { openState } from "../run/state-file.ts";
import { readShard, type ShardOptions } from "./read-shard.ts";

export type ReadOptions = {
  readonly config: string | undefined;
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  /** Empty: all that are asked for. */
  readonly streams: readonly string[];
  readonly format: "airbyte" | "jsonl";
  readonly stateFile?: string | undefined;
  /** A folder that takes records and state in place of stdout. */
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  /** How many bytes, before they are committed, are enough for files: fewer than usual only in tests. */
  readonly fileBytes?: number | undefined;
  /** The part of a plan that this run reads. */
  readonly part?: ShardOptions | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** File that takes the summary of the run. */
  readonly summary?: string | undefined;
};

/** Reads the streams that are asked for: in Airbyte's language, as the bare records of one, or into the files of a folder. */
export async function read(options: ReadOptions, runtime: Runtime): Promise<number> {
  const { format, logLevel } = options;
  const name = "source-contact-intelligence";
  const logs = format === "jsonl" || options.output !== undefined;
  refuseWithoutMemory(options);
  const files = options.output !== undefined;
  const output = await Output.open(
    { name, logs, bare: logs, files, logLevel, summary: options.summary },
    runtime,
  );
  if (options.output === undefined) {
    output.say = format === "jsonl" ? jsonl(options.streams[0] ?? "") : airbyte({ now: runtime.clock.now });
  }
  return await runToEnd(output, runtime, () => readAsked(options, runtime, output));
}

/** Throws UsageError for a stream that costs money or hours in a run that keeps no state: each run would submit everything. */
function refuseWithoutMemory({ format, streams, stateFile, output }: ReadOptions): void {
  const jobs = STREAMS.filter(({ name, reading }) => reading === "job" && streams.includes(name));
  const [first] = jobs;
  if (format !== "jsonl" || stateFile !== undefined || output !== undefined || first === undefined) return;
  throw new UsageError(
    `Cannot read "${first.name}" with --format jsonl: nothing would keep what was bought, so the next run could buy it ` +
      "again. Add --state-file FILE or --output DIR",
  );
}

function readAsked(options: ReadOptions, runtime: Runtime, output: Output): Promise<boolean> {
  if (options.part !== undefined) return readShard({ ...options, part: options.part }, runtime, output);
  const config = openConfig(options.config, runtime.environment);
  return withRun({ config, runtime, reporter: output }, async (run) => {
    const catalog =
      options.catalog === undefined ? undefined : parseConfiguredCatalog(await readCatalog(options.catalog));
    if (catalog === undefined) {
      for (const name of options.streams) run.session.streamNamed(name, "Correct --stream");
    }
    output.stats.measure(() => run.session.usage);
    const saved = await openSaved(options, runtime, output);
    const asked = catalog && chosen(catalog, options.streams);
    await openJobs(run, asked, options.streams, saved, {
      check: () => output.checkLock(),
      isOne: output.statePath !== undefined,
    });
    const streams = chosen(catalog ?? (await withoutCatalog(run, options.streams)), options.streams);
    return await syncStreams(
      run,
      streams.map((configured) => ({ configured })),
      saved,
    );
  });
}

/** Opens where the run goes on from, and where it saves; returns each stream's part of the state. */
async function openSaved(
  options: ReadOptions,
  runtime: Runtime,
  output: Output,
): Promise<ReadonlyMap<string, unknown>> {
  const stateRuntime = { ...runtime, notify: output.notify };
  if (options.output === undefined) {
    const { saved, file } = await openState(options, stateRuntime);
    output.stateFile = file;
    return saved.streams;
  }
  const seed = options.state === undefined ? undefined : (await openState(options, stateRuntime)).saved;
  output.folder = await FolderOutput.open(
    options.output,
    { gzip: options.compress === "gzip", seed, cutBytes: options.fileBytes },
    stateRuntime,
  );
  return output.folder.state.streams;
}

/** Streams that are named are read whatever the key's plan covers. */
async function withoutCatalog(run: Run, names: readonly string[]): Promise<readonly ConfiguredStream[]> {
  if (names.length === 0) return await readableStreams(run);
  return run.session.streams.filter(({ name }) => names.includes(name)).map(({ name }) => incremental(name));
}

function chosen(streams: readonly ConfiguredStream[], names: readonly string[]): readonly ConfiguredStream[] {
  const missing = names.find((name) => !streams.some((stream) => stream.name === name));
  if (missing !== undefined)
    throw new ConfigError(`Cannot read the stream "${missing}": the catalog does not have it`);
  return names.length === 0 ? streams : streams.filter(({ name }) => names.includes(name));
}
