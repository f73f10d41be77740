import { dirname, join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { Config } from "../config/config.ts";
import { readText } from "../output/files/read-file.ts";
import { makeFolder } from "../output/files/replace.ts";
import { parsePlan, type Shard, shardConfig, shardFolder } from "../shards/plan.ts";

export type ShardOptions = {
  /** The file of a plan. `shard`: the part of the plan that this run reads. */
  readonly plan?: string | undefined;
  readonly shard?: number | "open" | undefined;
  /** Empty: all streams. */
  readonly streams: readonly string[];
  readonly output?: string | undefined;
  /** Whether the run only shows what it would read. */
  readonly dryRun?: boolean | undefined;
};

/** The part of the account that a run reads. `shard` undefined: everything. */
export type Part<Options> = { readonly shard?: Shard; readonly config: Config; readonly options: Options };

/** The part that a run reads, or a sentence if the plan lacks the shard. */
export async function openPart<Options extends ShardOptions>(
  asked: Options,
  config: Config,
): Promise<Part<Options> | string> {
  const { plan, shard: which } = asked;
  if (plan === undefined || which === undefined) return { config, options: asked };
  const shards = parsePlan(await readText("plan", plan), plan);
  const shard = which === "open" ? shards.find(({ to }) => to === null) : shards[which];
  if (shard === undefined) {
    const names = shards.map(({ shard: number, to }) => (to === null ? `${number} (open)` : `${number}`));
    return `The plan has no shard ${which}, only ${names.join(", ")}. Nothing is read`;
  }
  const other = asked.streams.find((name) => name !== shard.stream);
  if (other !== undefined)
    throw new ConfigError(`Cannot read "${other}" with "${plan}": the plan is for "${shard.stream}"`);
  const output = asked.output && join(asked.output, shardFolder(shard));
  if (output !== undefined && asked.dryRun !== true) await makeFolder(dirname(output), true);
  const options = { ...asked, streams: [shard.stream], output };
  return { shard, config: shardConfig(config, shard), options };
}

/** @throws ConfigError for a full refresh, because a shard continues its own state */
export function refuseWhole({ stream }: Shard, streams: readonly ConfiguredStream[]): void {
  if (streams.every(({ syncMode }) => syncMode === "incremental")) return;
  throw new ConfigError(
    `Cannot read a shard of "${stream}": its sync_mode must be "incremental". Read it in one run`,
  );
}
