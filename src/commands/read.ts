import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ConfiguredStream, parseConfiguredCatalog } from "../catalog/airbyte.ts";
import { STREAMS } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { ConfigError, UsageError } from "../errors.ts";
import { readCatalog, readText } from "../files/read.ts";
import { airbyte } from "../protocol/airbyte.ts";
import { jsonl } from "../protocol/jsonl.ts";
import type { LogLevel } from "../protocol/log.ts";
import { openConfig } from "../run/config-files.ts";
import { type OpenOutput, runToEnd } from "../run/output.ts";
import { incremental, readableStreams } from "../run/probe-streams.ts";
import { openJobs, type Run, syncStreams, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { streamNamed } from "../run/session.ts";
import { destinationOf } from "../run/sink.ts";
import { isRead, isWholePlan, parsePlan, type ShardLine, shardConfig, shardFolder } from "../shards/plan.ts";

/** Which part of which plan a run reads. */
export type ShardOptions = {
  readonly plan: string;
  readonly shard: number | "open";
  readonly shardsAtOnce: number;
};

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
  const logs = format === "jsonl" || options.output !== undefined;
  refuseWithoutMemory(options);
  const speech = {
    name: "source-contact-intelligence",
    logs,
    bare: logs,
    logLevel,
    summary: options.summary,
  };
  const say = format === "jsonl" ? jsonl(options.streams[0] ?? "") : airbyte({ now: runtime.clock.now });
  return await runToEnd({ ...speech, ...(options.output === undefined && { say }) }, runtime, (open) =>
    readAsked(options, runtime, open),
  );
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

async function readAsked(options: ReadOptions, runtime: Runtime, open: OpenOutput): Promise<boolean> {
  const config = await openConfig(options.config, runtime.environment);
  if (options.part === undefined) return await readStreams(options, config, runtime, open);
  const { plan, shard, shardsAtOnce } = options.part;
  const lines = parsePlan(await readText("plan", plan), options.streams[0], config);
  if (!isWholePlan(lines, config)) {
    throw new ConfigError(
      `Cannot use the plan "${plan}": it was cut off. Finish it with: plan --resume ${plan}`,
    );
  }
  const line = shard === "open" ? lines.find(({ to }) => to === null) : lines[shard];
  if (line === undefined) {
    const text = `The plan of "${lines[0]?.stream}" has no shard ${shard}: there is nothing to read`;
    await (await open({ kind: "stdout" }, config)).emit({ kind: "log", level: "info", text });
    return true;
  }
  const output = options.output && join(options.output, shardFolder(line));
  if (output !== undefined) await mkdir(dirname(output), { recursive: true });
  const bringsUndated = line.to === null && config.startDate === null && config.endDate === null;
  const part = { line, bringsUndated };
  const own = { ...options, streams: [line.stream], output };
  return await readStreams(own, shardConfig(config, line, shardsAtOnce), runtime, open, part);
}

async function readStreams(
  options: ReadOptions,
  config: Config,
  runtime: Runtime,
  open: OpenOutput,
  part?: { readonly line: ShardLine; readonly bringsUndated: boolean },
): Promise<boolean> {
  const catalog =
    options.catalog === undefined ? undefined : parseConfiguredCatalog(await readCatalog(options.catalog));
  if (catalog === undefined)
    for (const name of options.streams) streamNamed(name, config, "Correct --stream");
  const output = await open(destinationOf(options), config);
  const { saved, place } = output.sink;
  return await withRun({ config, runtime, reporter: output }, async (run) => {
    if (part !== undefined && isRead(part.line, saved.streams.get(part.line.stream))) {
      const text = `Shard ${part.line.shard} of "${part.line.stream}" is complete already`;
      await run.emit({ kind: "log", level: "info", text });
      return true;
    }
    const asked = catalog && chosen(catalog, options.streams);
    await openJobs(run, asked, options.streams, saved.streams, {
      check: () => output.sink.check(),
      isOne: place !== null,
    });
    const streams = chosen(catalog ?? (await withoutCatalog(run, options.streams)), options.streams);
    const shard = part && { plan: part.line.plan, bringsUndated: part.bringsUndated };
    return await syncStreams(
      run,
      streams.map((configured) => ({ configured, shard })),
      saved.streams,
    );
  });
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
