import { type ConfiguredStream, parseConfiguredCatalog } from "../catalog/airbyte.ts";
import { ConfigError } from "../errors.ts";
import { readCatalog, readText } from "../files/read.ts";
import { openConfig } from "../run/config-files.ts";
import { FolderOutput } from "../run/folder-output.ts";
import type { Output } from "../run/output.ts";
import { incremental } from "../run/probe-streams.ts";
import { syncStreams, withRun } from "../run/run.ts";
import type { Runtime } from "../run/runtime.ts";
import { ShardFolder } from "../run/shard-folder.ts";
import { openState } from "../run/state-file.ts";
import { expectSameSettings, parsePlans, type ShardLine, type ShardPlan } from "../shards/plan-file.ts";
import { bringsUndated, doneState, lineOf, markOf, planSettingsOf, shardConfig } from "../shards/shard.ts";

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
  output: Output,
): Promise<boolean> {
  const { part } = options;
  const plan = await openPlan(part.plan, options.streams);
  const line = lineOf(plan, part.shard);
  const all = await openConfig(options.config, runtime.environment);
  expectSameSettings(plan, planSettingsOf(all));
  const config = line === undefined ? all : shardConfig(all, line, part.shardsAtOnce);
  return await withRun({ config, runtime, reporter: output }, async (run) => {
    if (line === undefined) {
      await run.emit(
        info(`The plan of "${plan.stream}" has no shard ${part.shard}: there is nothing to read`),
      );
      return true;
    }
    const configured = await configuredFor(plan.stream, options.catalog);
    const place = await openPlace(options, line, runtime, output);
    if (place === undefined) {
      await run.emit(info(`Shard ${line.shard} of "${plan.stream}" is complete already`));
      return true;
    }
    output.stats.measure(() => run.session.usage);
    const done = doneState(place.states.get(plan.stream), line);
    const shard = { mark: markOf(line), bringsUndated: bringsUndated(line) };
    if (done !== undefined) await confirm(plan.stream, { ...done }, output);
    else if (!(await syncStreams(run, [{ configured, shard }], place.states))) return false;
    await place.publish();
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

/** Where a shard's state comes from and goes to. `publish` makes its rows visible once the shard is done. */
type Place = { readonly states: ReadonlyMap<string, unknown>; readonly publish: () => Promise<void> };

/** Undefined: the folder has the shard already. */
async function openPlace(
  options: ReadShardOptions,
  { shard }: ShardLine,
  runtime: Runtime,
  output: Output,
): Promise<Place | undefined> {
  const stateRuntime = { ...runtime, notify: output.notify };
  if (options.output === undefined) {
    const { saved, file } = await openState(options, stateRuntime);
    output.stateFile = file;
    return { states: saved.streams, publish: async () => {} };
  }
  const folder = await ShardFolder.open(options.output, shard, stateRuntime);
  if (folder === undefined) return undefined;
  const gzip = options.compress === "gzip";
  const files = await FolderOutput.open(folder.path, { gzip, cutBytes: options.fileBytes }, stateRuntime);
  output.folder = files;
  return {
    states: files.state.streams,
    publish: async () => {
      await files.release();
      await folder.publish();
    },
  };
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

const info = (text: string) => ({ kind: "log", level: "info", text }) as const;
