import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { type DatedState, parseDatedState } from "../state/dated.ts";
import type { PlanSettings, ShardLine, ShardPlan } from "./plan-file.ts";

/** What of a config a plan is bound to. */
export function planSettingsOf({ baseUrl, sourceSlug, isUser, startDate, endDate }: Config): PlanSettings {
  return {
    baseUrl: baseUrl.href,
    filters: { source_slug: sourceSlug, is_user: isUser },
    startDate,
    endDate,
  };
}

/** The line that a run is to read; undefined if the plan has none of this number, or no open shard. */
export function lineOf({ lines }: ShardPlan, shard: number | "open"): ShardLine | undefined {
  return shard === "open" ? lines.find(({ to }) => to === null) : lines[shard];
}

/**
 * The config under which a shard is read: its own days, and its share of the key's requests.
 * Throws ConfigError for settings that a shard cannot obey.
 * @param shardsAtOnce how many shards share the key
 */
export function shardConfig(config: Config, line: ShardLine, shardsAtOnce: number): Config {
  if (config.maxRunSeconds !== null) {
    throw new ConfigError(
      'Cannot read a shard under "max_run_seconds": a shard is read to its end. Remove the setting',
    );
  }
  const requestsPerMinute = Math.floor(config.requestsPerMinute / shardsAtOnce);
  if (requestsPerMinute < 1) {
    throw new ConfigError(
      `Cannot share ${config.requestsPerMinute} requests a minute among ${shardsAtOnce} shards: each needs at least one. ` +
        'Lower --shards-at-once, or raise "requests_per_minute" if the key allows it',
    );
  }
  return {
    ...config,
    requestsPerMinute,
    startDate: line.from,
    endDate: line.to ?? line.end_date,
    // A shard that is read again goes on with the day where it stopped.
    lookbackWindowDays: line.to === null ? config.lookbackWindowDays : 0,
  };
}

/** Whether the people without a date come with this shard: with the open one, unless dates restrict the plan. */
export const bringsUndated = ({ to, start_date, end_date }: ShardLine): boolean =>
  to === null && start_date === null && end_date === null;

/** How a state says which part of which plan it is of, before anything was read. */
export const markOf = ({ plan, shard }: ShardLine): NonNullable<DatedState["shard"]> => ({
  plan,
  index: shard,
  done: false,
  asked: null,
  ended: null,
});

/** Throws ConfigError for the state of anything but this shard; returns the state of a shard that is done. */
export function doneState(saved: unknown, line: ShardLine): DatedState | undefined {
  const state = parseDatedState(line.stream, saved);
  if (state === null) return undefined;
  const { shard } = state;
  if (shard === null || shard.plan !== line.plan || shard.index !== line.shard) {
    const found =
      shard === null
        ? "no shard"
        : `shard ${shard.index} of ${shard.plan === line.plan ? "this" : "another"} plan`;
    throw new ConfigError(
      `Cannot read shard ${line.shard} of "${line.stream}": the state is of ${found}. Give each shard a state of its own`,
    );
  }
  return shard.done ? state : undefined;
}
