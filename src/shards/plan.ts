import { ConfigError } from "../base/errors.ts";
import { tryParseJson } from "../base/json.ts";
import { schemaCompiler } from "../base/json-schema.ts";
import { addDays, BEGINNING } from "../base/time.ts";
import type { Config } from "../config/config.ts";
import { parseRowState } from "../state/parse-state.ts";
import { missingDaysOf, uncovered } from "../sync/coverage.ts";
import type { ReadSettings } from "../sync/range.ts";
import type { DateRange } from "./split.ts";

/** A line of a plan: the days of a shard, and its share of the key's requests (above 0, up to 1). */
export type Shard = DateRange & {
  readonly version: 3;
  /** The id of the plan: 16 hexadecimal characters. */
  readonly plan: string;
  readonly stream: string;
  /** The number of the shard; 0 is the oldest shard. */
  readonly shard: number;
  readonly share: number;
};

const DAY_OR_NULL = { type: ["string", "null"], pattern: "^\\d{4}-\\d{2}-\\d{2}$" };
const NUMBER = { type: "integer", minimum: 0 };
const LINE = {
  type: "object",
  required: ["version", "plan", "stream", "shard", "from", "to", "rows", "share"],
  properties: {
    version: { const: 3 },
    plan: { type: "string", pattern: "^[0-9a-f]{16}$" },
    stream: { type: "string", pattern: "^[a-z_]{1,64}$" },
    ...{ shard: NUMBER, from: DAY_OR_NULL, to: DAY_OR_NULL, rows: NUMBER },
    share: { type: "number", exclusiveMinimum: 0, maximum: 1 },
  },
};

/** Parses the lines of one plan, oldest first. @throws ConfigError for an unusable plan */
export function parsePlan(text: string, path: string): readonly Shard[] {
  const unusablePlan = (why: string): ConfigError =>
    new ConfigError(
      `Cannot use the plan "${path}": ${why}. Make a plan: source-contact-intelligence plan > plan.jsonl`,
    );
  const isLine = schemaCompiler({ fill: false })<Shard>(LINE);
  const lines = text.split("\n").flatMap((line, at) => {
    const value = tryParseJson(line);
    if (isLine(value)) return [value];
    if (line.trim() === "") return [];
    throw unusablePlan(`line ${at + 1} is not a line of a plan`);
  });
  const [first] = lines.sort((a, b) => a.shard - b.shard);
  if (first === undefined) throw unusablePlan("it is empty");
  for (const [index, { plan, stream, shard, from }] of lines.entries()) {
    const last = lines[index - 1]?.to;
    const follows = index === 0 || (typeof last === "string" && from === addDays(last, 1));
    if (plan !== first.plan || stream !== first.stream || shard !== index || !follows)
      throw unusablePlan(`shard ${shard} of "${stream}" does not follow the line before it`);
  }
  return lines;
}

/** The config of a shard: its days and requests. The open shard reads undated people. @throws ConfigError for unusable settings */
export function shardConfig(
  config: Config,
  { from, to, share }: Shard,
): Config & Pick<ReadSettings, "readsUndated"> {
  const refused = config.maxRunSeconds !== null ? "max_run_seconds" : config.rereadDays > 0 && "reread_days";
  if (refused !== false)
    throw new ConfigError(
      `Cannot read a shard with "${refused}": a shard is read once and completely. Remove the setting`,
    );
  const requestsPerMinute = Math.floor(config.requestsPerMinute * share);
  if (requestsPerMinute < 1)
    throw new ConfigError(
      `Cannot read a shard with less than one request per minute: its share is ${share} of ${config.requestsPerMinute}. ` +
        'Plan fewer shards, or raise "requests_per_minute" if the key allows it',
    );
  // A closed shard has no lookback, because its days get no new rows. An interrupted shard continues with its last day.
  const lookbackWindowDays = to === null ? config.lookbackWindowDays : 0;
  const readsUndated = to === null && config.startDate === null && config.endDate === null;
  const days = { startDate: from, endDate: to ?? config.endDate, lookbackWindowDays, readsUndated };
  return { ...config, ...days, requestsPerMinute };
}

/** The name of a shard's folder, which differs for each shard and plan. */
export const shardFolder = ({ plan, shard, from, to }: Shard): string =>
  `shard-${plan}-${shard}-${from ?? "start"}-${to ?? "open"}`;

/** Whether a state has proven all days of a closed shard. @throws ConfigError for an unusable state */
export function isComplete({ stream, from, to }: Shard, saved: unknown): boolean {
  const state = parseRowState(stream, saved);
  if (state === null || to === null) return false;
  const unread = uncovered(state.days, [from ?? BEGINNING, to]);
  return unread.length + missingDaysOf(state.days).length === 0;
}
