import { ConfigError, UsageError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { type ConfiguredStream, incremental, parseConfiguredCatalog } from "../catalog/airbyte.ts";
import { canRefresh, JOB_STREAMS, streamNamed } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { openConfig } from "../config/config-files.ts";
import { readCatalog } from "../output/files/read-file.ts";
import { type OpenOutput, type OutputOptions, runToEnd } from "../output/output.ts";
import { type Destination, onlyRead } from "../output/sink.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { jsonl } from "../protocol/jsonl.ts";
import { isDebug } from "../protocol/log.ts";
import { syncStreams } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { isComplete } from "../shards/plan.ts";
import { info, warning } from "../sync/event.ts";
import { showOutlook } from "./dry-run.ts";
import { withGuests } from "./guests.ts";
import { readableStreams } from "./probe.ts";
import { openPart, refuseWhole, type ShardOptions } from "./shard.ts";

export type ReadOptions = Destination &
  ShardOptions &
  Pick<OutputOptions, "logLevel" | "logFormat" | "summary"> & {
    readonly config: string | undefined;
    readonly catalog: string | undefined;
    readonly format: "airbyte" | "jsonl";
    /** Whether a terminal may get messages. */
    readonly json?: boolean;
    /** Whether to read everything again. */
    readonly fullRefresh?: boolean | undefined;
  };

/** Reads streams into Airbyte messages, into bare records of one stream, or into a folder. */
export async function read(options: ReadOptions, runtime: Runtime): Promise<number> {
  const { output, logLevel, logFormat, summary, dryRun } = options;
  const isJsonl = options.format === "jsonl";
  if (runtime.stdout.isTTY === true) refuseFlood(options);
  refuseWithoutMemory(options);
  const isVerbose = isDebug(logLevel, runtime.environment);
  const { now } = runtime.clock;
  const language = isJsonl ? jsonl(options.streams[0] ?? "") : airbyte({ now, isVerbose });
  const isSilent = output !== undefined || dryRun === true;
  const format = isSilent ? undefined : language;
  const audience = isJsonl || isSilent ? "person" : "airbyte";
  return await runToEnd({ audience, format, logLevel, logFormat, summary }, runtime, (open) =>
    readAsked(options, runtime, open),
  );
}

/** @throws UsageError for messages that would fill a terminal */
function refuseFlood(options: ReadOptions): void {
  const { config = "config.json", format, json, output, stateFile, dryRun, limit } = options;
  if (dryRun === true || limit !== undefined) return;
  if (json === true || format === "jsonl" || output !== undefined || stateFile !== undefined) return;
  const program = `  source-contact-intelligence read --config ${config}`;
  throw new UsageError(
    [
      "The messages of all rows would fill this screen. Choose where they go:",
      ...["  # all streams into files, and later what is new", `${program} --output contacts`],
      ...["  # bare records of one stream", `${program} --format jsonl --stream people > people.jsonl`],
      ...["  # Airbyte messages (to this screen: --json)", `${program} > messages.jsonl`],
    ].join("\n"),
  );
}

/** @throws UsageError for a stream of jobs without a state, because each run would submit everything */
function refuseWithoutMemory({ format, streams, stateFile, output, dryRun, limit }: ReadOptions): void {
  const job = JOB_STREAMS.find(({ name }) => streams.includes(name));
  if (dryRun === true) return;
  if (job !== undefined && limit !== undefined)
    throw new UsageError(`Cannot take a sample of "${job.name}": it costs money. See: read --dry-run`);
  if (format !== "jsonl" || stateFile !== undefined || output !== undefined || job === undefined) return;
  throw new UsageError(
    `Cannot read "${job.name}" with --format jsonl: nothing would keep what was bought, so the next run could buy it ` +
      "again. Add --state-file FILE or --output DIR",
  );
}

async function readAsked(asked: ReadOptions, runtime: Runtime, open: OpenOutput): Promise<boolean> {
  const isPlain = [asked.output, asked.stateFile, asked.dryRun].every((flag) => flag === undefined);
  const isPlatform = isPlain && asked.format === "airbyte";
  const all = await openConfig(asked.config, runtime.environment, isPlatform);
  const part = await openPart(asked, all);
  if (typeof part === "string") {
    await (await open({}, all)).emit(warning(part));
    return true;
  }
  const { options, config, shard } = part;
  const { dryRun, limit, logLevel } = options;
  const named = await namedStreams(options, config);
  const to = dryRun === true ? onlyRead(options) : { ...options, isPlatform };
  const output = await open(to, config);
  const { saved } = output.sink;
  return await withGuests({ config, runtime, reporter: output, logLevel }, async (run, openJobs) => {
    if (shard !== undefined && isComplete(shard, saved.streams.get(shard.stream))) {
      await run.emit(info(`Shard ${shard.shard} of "${shard.stream}" is complete already`));
      return true;
    }
    if (dryRun !== true && limit === undefined)
      await openJobs(named, saved.streams, async () => output.sink.lock?.check());
    const wanted = named ?? (await readableStreams(run, saved.streams));
    const configured = options.fullRefresh === true ? wanted.map(inFull) : wanted;
    const streams = configured.map((one) => ({ configured: one }));
    if (shard !== undefined) refuseWhole(shard, configured);
    if (streams.length === 0) await run.emit(warning("There is no stream to read: nothing will be read"));
    if (dryRun === true) return await showOutlook(run, streams, saved.streams, options, runtime);
    if (limit === undefined) return await syncStreams(run, streams, saved.streams);
    const text = `This is a sample of at most ${plural(limit, "row")} a stream: no state is saved, and nothing is bought`;
    await run.emit(warning(text));
    const free = streams.filter(({ configured }) => canRefresh(configured.name));
    return await syncStreams(run, free, saved.streams, limit);
  });
}

/** A full refresh, except for streams of jobs, because it would buy again. */
const inFull = (configured: ConfiguredStream): ConfiguredStream =>
  canRefresh(configured.name) ? { ...configured, syncMode: "full_refresh" } : configured;

/** The streams that a catalog or flags name; undefined: neither names one. @throws ConfigError for an unknown name */
async function namedStreams(
  { catalog: path, streams: names }: ReadOptions,
  config: Config,
): Promise<readonly ConfiguredStream[] | undefined> {
  if (path === undefined) {
    for (const name of names) streamNamed(name, config, "Correct --stream");
    return names.length === 0 ? undefined : names.map(incremental);
  }
  const streams = parseConfiguredCatalog(await readCatalog(path));
  const missing = names.find((name) => !streams.some((stream) => stream.name === name));
  if (missing !== undefined)
    throw new ConfigError(`Cannot read the stream "${missing}": the catalog does not have it`);
  return names.length === 0 ? streams : streams.filter(({ name }) => names.includes(name));
}
