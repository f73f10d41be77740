import { type ConfiguredStream, parseConfiguredCatalog } from "../catalog/airbyte.ts";
import { ConfigError } from "../errors.ts";
import { readCatalog, readText } from "../files/read.ts";
import { openConfig } from "../run/config-files.ts";
import type { OpenOutput, Output } from "../run/output.ts";
import { incremental } from "../run/probe-streams.ts";
import { syncStreams, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { ShardFolder } from "../run/shard-folder.ts";
import { destinationOf } from "../run/sink.ts";
import { expectSameSettings, parsePlans, type ShardPlan } from "../shards/plan-file.ts";
import { bringsUndated, doneState, lineOf, planSettingsOf, shardConfig } from "../shards/shard.ts";

/** Which part of which plan a run reads. */
export type ShardOptions = {
  readonly plan: string;
  readonly shard: number | "open";
  readonly shardsAtOnce: number;
};

type ReadShardOptions = {
  readonly part: ShardOptions;
  readonly config: string | undefined;
  readonly catalog: string | undefined;
  /** Names the stream where the plan file has several. */
  readonly streams: readonly string[];
  readonly state: string | undefined;
  readonly stateFile?: string | undefined;
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  readonly fileBytes?: number | undefined;
};

/**
 * Reads one shard of a plan. Returns whether it is done: a shard that was done before, and one that the plan does not
 * have, ask the service nothing.
 */
export async function readShard(
  options: ReadShardOptions,
  runtime: Runtime,
  open: OpenOutput,
): Promise<boolean> {
  const { part } = options;
  const plan = await openPlan(part.plan, options.streams);
  const line = lineOf(plan, part.shard);
  const all = await openConfig(options.config, runtime.environment);
  expectSameSettings(plan, planSettingsOf(all));
  const config = line === undefined ? all : shardConfig(all, line, part.shardsAtOnce);
  const configured = line && (await configuredFor(plan.stream, options.catalog));
  const isFolder = line !== undefined && options.output !== undefined;
  const folder = isFolder ? await ShardFolder.open(options.output, line.shard, runtime) : undefined;
  if (line === undefined || configured === undefined || (isFolder && folder === undefined)) {
    const why =
      line === undefined
        ? `The plan of "${plan.stream}" has no shard ${part.shard}: there is nothing to read`
        : `Shard ${line.shard} of "${plan.stream}" is complete already`;
    const output = await open({ kind: "stdout" }, config);
    await output.emit({ kind: "log", level: "info", text: why });
    return true;
  }
  const to = folder === undefined ? options : { ...options, state: undefined, output: folder.path };
  const output = await open(destinationOf(to), config);
  const { streams } = output.sink.saved;
  return await withRun({ config, runtime, reporter: output }, async (run) => {
    const done = doneState(streams.get(plan.stream), line);
    const shard = { plan: line.plan, bringsUndated: bringsUndated(line) };
    if (done !== undefined) await confirm(plan.stream, { ...done }, output);
    else if (!(await syncStreams(run, [{ configured, shard }], streams))) return false;
    await output.sink.release();
    await folder?.publish();
    return true;
  });
}

async function openPlan(file: string, streams: readonly string[]): Promise<ShardPlan> {
  const plans = parsePlans(await readText("plan", file));
  const [stream] = streams;
  const [plan, another] = stream === undefined ? plans : plans.filter((one) => one.stream === stream);
  if (plan === undefined)
    throw new ConfigError(`Cannot use the plan "${file}": it has no shards of "${stream}"`);
  if (another === undefined) return plan;
  const names = plans.map((one) => one.stream).join(", ");
  throw new ConfigError(
    `Cannot use the plan "${file}": it has shards of ${names}. Name one of them with --stream`,
  );
}

/** Jobs and full refreshes cannot be read in shards, and a catalog with more than the plan's stream asks for that. */
async function configuredFor(stream: string, catalog: string | undefined): Promise<ConfiguredStream> {
  const found = catalog === undefined ? [] : parseConfiguredCatalog(await readCatalog(catalog));
  const [configured = incremental(stream), another] = found;
  const fits = another === undefined && configured.name === stream && configured.syncMode === "incremental";
  if (fits) return configured;
  throw new ConfigError(
    `Cannot read a shard of "${stream}" with this catalog: it must hold that stream alone, with sync_mode "incremental". ` +
      "Leave --catalog out",
  );
}

/** Says a state again: whoever asked may not have got it the first time. */
async function confirm(
  stream: string,
  state: Readonly<Record<string, unknown>>,
  output: Output,
): Promise<void> {
  await output.emit({ kind: "open", stream });
  await output.emit({ kind: "checkpoint", stream, state });
  await output.emit({ kind: "close", stream, complete: true });
}
