import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { parseDatedState } from "../state/dated.ts";
import { missingDaysOf, uncovered } from "../streams/coverage.ts";
import type { DatedState } from "../streams/dated-state.ts";
import { BEGINNING } from "../time.ts";
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

/** Throws ConfigError for the state of another plan; returns the state of a closed shard that holds all its days. */
export function doneState(saved: unknown, line: ShardLine): DatedState | undefined {
  const state = parseDatedState(line.stream, saved);
  if (state === null) return undefined;
  if (state.plan !== line.plan) {
    throw new ConfigError(
      `Cannot read shard ${line.shard} of "${line.stream}": the state is of ${state.plan === null ? "no" : "another"} plan. ` +
        "Give each shard a state of its own",
    );
  }
  if (line.to === null || missingDaysOf(state.days).length > 0) return undefined;
  return uncovered(state.days, [line.from ?? BEGINNING, line.to]).length === 0 ? state : undefined;
}
