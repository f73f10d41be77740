import { createHash } from "node:crypto";
import { ConfigError } from "../base/errors.ts";
import { tryParseJson } from "../base/json.ts";
import { schemaCompiler } from "../base/json-schema.ts";
import { addDays, BEGINNING } from "../base/time.ts";
import type { Config } from "../config/config.ts";
import { parseDatedState } from "../state/parse-state.ts";
import { missingDaysOf, uncovered } from "../sync/coverage.ts";
import type { Cut, Size } from "./split.ts";

/** One line of a plan, with the names that stand in the file. */
export type ShardLine = Cut & {
  readonly version: 2;
  /** 32 hexadecimal characters: a digest of the settings, and one of this very plan. */
  readonly plan: string;
  readonly stream: string;
  /** 0 is the oldest. */
  readonly shard: number;
};

const DAY_OR_NULL = { type: ["string", "null"], pattern: "^\\d{4}-\\d{2}-\\d{2}$" };
const NUMBER = { type: "integer", minimum: 0 };
const LINE = {
  type: "object",
  required: ["plan", "stream", "shard", "from", "to", "rows"],
  properties: {
    version: { const: 2 },
    plan: { type: "string", pattern: "^[0-9a-f]{32}$" },
    stream: { type: "string", pattern: "^[a-z_]{1,64}$" },
    ...{ shard: NUMBER, from: DAY_OR_NULL, to: DAY_OR_NULL, rows: NUMBER },
  },
};

const shortDigest = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);

/** Of every setting that decides what is read or what leaves. */
function settingsDigest(config: Config): string {
  const { baseUrl, sourceSlug, isUser, startDate, endDate, verifyCounts, hashSalt } = config;
  const lists = [config.ignoreMissingDays, config.dropFields, config.hashFields, config.onlyFields];
  const salt = shortDigest(hashSalt);
  const values = [baseUrl.href, sourceSlug, isUser, startDate, endDate, verifyCounts, salt];
  // Plans of configs without it stay what they were.
  if (config.suppressed.entries > 0) values.push(config.suppressed.digest);
  return shortDigest([...values, ...lists.map((list) => list.toSorted())]);
}

/** @param wanted how many shards were asked for */
export const planDigest = (config: Config, stream: string, size: Size, wanted?: number): string =>
  settingsDigest(config) + shortDigest([stream, size.rows, size.asked, wanted]);

/** Whether the last line of a plan ends where the plan does. */
export const isWholePlan = (lines: readonly ShardLine[], { endDate }: Config): boolean =>
  lines.some(({ to }) => to === null || to === endDate);

/** A plan that is being written, or was cut off, may end in the middle of a line. */
export const wholeLines = (text: string): string =>
  tryParseJson(text.slice(text.lastIndexOf("\n") + 1)) === undefined ? text.replace(/[^\n]*$/, "") : text;

const PLAN_AGAIN = "Make one with: source-contact-intelligence plan";
const unusablePlan = (why: string): ConfigError => new ConfigError(`Cannot use the plan: ${why}`);

/**
 * The lines of one plan, oldest first. Throws ConfigError for anything else, and for the plan of other settings.
 * @param stream which plan, where the text has those of several streams
 */
export function parsePlan(text: string, stream: string | undefined, config: Config): readonly ShardLine[] {
  const isLine = schemaCompiler({ fill: false })<ShardLine>(LINE);
  const all = text.split("\n").flatMap((line, at) => {
    const value = tryParseJson(line);
    if (isLine(value)) return [value];
    if (line.trim() === "") return [];
    const { instancePath = "", message } = isLine.errors?.[0] ?? {};
    const why =
      instancePath === "/version"
        ? "is of another version. Plan again, or merge the states if all shards are finished"
        : `is no shard: ${`${instancePath.slice(1)} ${message}`.trim()}. ${PLAN_AGAIN}`;
    throw unusablePlan(`line ${at + 1} ${why}`);
  });
  const name = stream ?? all[0]?.stream;
  const lines = all.filter((line) => line.stream === name).sort((a, b) => a.shard - b.shard);
  const [first] = lines;
  if (first === undefined)
    throw unusablePlan(`it has no shards${name === undefined ? "" : ` of "${name}"`}. ${PLAN_AGAIN}`);
  if (stream === undefined && lines.length < all.length) {
    throw unusablePlan("it has shards of several streams. Name one of them with --stream");
  }
  for (const [index, { plan, shard, from }] of lines.entries()) {
    const last = lines[index - 1]?.to;
    const follows = index === 0 || (typeof last === "string" && from === addDays(last, 1));
    if (plan === first.plan && shard === index && follows) continue;
    throw unusablePlan(`shard ${shard} of "${name}" does not follow the line before it. ${PLAN_AGAIN}`);
  }
  if (first.plan.startsWith(settingsDigest(config))) return lines;
  throw unusablePlan(
    "the config differs from the one that made it in base_url, source_slug, is_user, start_date, end_date, verify_counts, " +
      "ignore_missing_days, only_fields, suppress_file, drop_fields, hash_fields or hash_salt. Use the config that made the plan, or plan again",
  );
}

/**
 * The config under which a shard is read: its own days, and its share of the key's requests.
 * Throws ConfigError for settings that a shard cannot obey.
 * @param shardsAtOnce how many shards share the key
 */
export function shardConfig(config: Config, { from, to }: ShardLine, shardsAtOnce: number): Config {
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
  // Rows only leave closed days: a shard that is read again goes on with the day where it stopped.
  const lookbackWindowDays = to === null ? config.lookbackWindowDays : 0;
  return { ...config, requestsPerMinute, startDate: from, endDate: to ?? config.endDate, lookbackWindowDays };
}

/** The folder of a shard, which no other shard and no other plan has. */
export const shardFolder = ({ plan, shard, from, to }: ShardLine): string =>
  `shard-${plan}-${shard}-${from ?? "start"}-${to ?? "open"}`;

/** Whether a state holds all days of a closed shard. Throws ConfigError for a state that is not of the shard's plan. */
export function isRead({ plan, stream, shard, from, to }: ShardLine, saved: unknown): boolean {
  const state = parseDatedState(stream, saved);
  if (state === null) return false;
  if (state.plan !== plan) {
    throw new ConfigError(
      `Cannot read shard ${shard} of "${stream}": the state is of ${state.plan === null ? "no" : "another"} plan. ` +
        "Give the shards of a plan states of their own",
    );
  }
  const isSuppressed = to !== null && uncovered(state.days, [from ?? BEGINNING, to]).length === 0;
  return isSuppressed && missingDaysOf(state.days).length === 0;
}
