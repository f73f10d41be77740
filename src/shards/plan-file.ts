import { createHash } from "node:crypto";
import { ConfigError } from "../errors.ts";
import { schemaCompiler } from "../json-schema.ts";
import { addDays, type Day } from "../time.ts";

/** What a plan was made under. A run under other settings would read other rows. */
export type PlanSettings = {
  readonly baseUrl: string;
  readonly filters: { readonly source_slug: string | null; readonly is_user: string };
  readonly startDate: Day | null;
  readonly endDate: Day | null;
};

/** The days of one shard, both included. `from` null: the beginning. `to` null: the open shard, which reads up to now. */
export type Cut = { readonly from: Day | null; readonly to: Day | null; readonly rows: number };

/** One line of a plan, with the names that stand in the file. */
export type ShardLine = Cut & {
  readonly version: 1;
  /** Digest of all lines and of the settings: 32 hexadecimal characters. */
  readonly plan: string;
  readonly stream: string;
  /** 0 is the oldest. */
  readonly shard: number;
  /** How many lines this plan has. */
  readonly shards: number;
  readonly filters: PlanSettings["filters"];
  readonly start_date: Day | null;
  readonly end_date: Day | null;
  /** When the first count was asked, by the service's clock. */
  readonly planned_at: string;
};

/** One plan: the shards of one stream, oldest first. */
export type ShardPlan = {
  readonly stream: string;
  readonly digest: string;
  readonly lines: readonly ShardLine[];
};

/** Numbers the cuts of a stream, oldest first, and signs them with their digest. */
export function toShardPlan(
  stream: string,
  cuts: readonly Cut[],
  settings: PlanSettings,
  plannedAt: string,
): ShardPlan {
  const unsigned = cuts.map(({ from, to, rows }, shard) => ({
    version: 1 as const,
    plan: "",
    stream,
    shard,
    shards: cuts.length,
    from,
    to,
    rows,
    filters: settings.filters,
    start_date: settings.startDate,
    end_date: settings.endDate,
    planned_at: plannedAt,
  }));
  const digest = digestOf(unsigned, settings);
  return { stream, digest, lines: unsigned.map((line) => ({ ...line, plan: digest })) };
}

/**
 * Reads plan files. One text may hold the plans of several streams.
 * Throws ConfigError for anything that is not a whole plan.
 */
export function parsePlans(text: string): readonly ShardPlan[] {
  const lines = text
    .split("\n")
    .flatMap((line, index) => (line.trim() === "" ? [] : [parseLine(line, index)]));
  if (lines.length === 0) throw unusable("it is empty. Make one with: source-contact-intelligence plan");
  const byPlan = new Map<string, ShardLine[]>();
  for (const line of lines) byPlan.set(line.plan, [...(byPlan.get(line.plan) ?? []), line]);
  return [...byPlan.values()].map(toWholePlan);
}

/** Throws ConfigError if a run with these settings would read other rows than the plan says. */
export function expectSameSettings({ digest, lines }: ShardPlan, settings: PlanSettings): void {
  const [line] = lines;
  const differences = [
    difference("start_date", line?.start_date, settings.startDate),
    difference("end_date", line?.end_date, settings.endDate),
    difference("source_slug", line?.filters.source_slug, settings.filters.source_slug),
    difference("is_user", line?.filters.is_user, settings.filters.is_user),
  ].filter((text) => text !== undefined);
  if (differences.length > 0) {
    throw unusable(
      `the config differs: ${differences.join(", ")}. Use the config that made the plan, or plan again`,
    );
  }
  if (digestOf(lines, settings) === digest) return;
  throw unusable(
    "base_url is another one, or the file was changed. Use the config that made the plan, or plan again",
  );
}

function difference(name: string, planned: unknown, now: unknown): string | undefined {
  if (planned === now) return undefined;
  return `${name} was ${planned ?? "not set"} and is ${now ?? "not set"}`;
}

function digestOf(lines: readonly ShardLine[], settings: PlanSettings): string {
  const { baseUrl, filters, startDate, endDate } = settings;
  const signed = [
    [baseUrl, filters.source_slug, filters.is_user, startDate, endDate],
    ...lines.map((line) => [
      line.stream,
      line.shard,
      line.shards,
      line.from,
      line.to,
      line.rows,
      line.planned_at,
    ]),
  ];
  return createHash("sha256").update(JSON.stringify(signed)).digest("hex").slice(0, 32);
}

const DAY = { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$" };
const DAY_OR_NULL = { anyOf: [DAY, { type: "null" }] };
const LINE = {
  type: "object",
  required: [
    "version",
    "plan",
    "stream",
    "shard",
    "shards",
    "from",
    "to",
    "rows",
    "filters",
    "start_date",
    "end_date",
    "planned_at",
  ],
  properties: {
    version: { const: 1 },
    plan: { type: "string", minLength: 1, maxLength: 200 },
    stream: { type: "string", minLength: 1, maxLength: 200 },
    shard: { type: "integer", minimum: 0 },
    shards: { type: "integer", minimum: 1 },
    from: DAY_OR_NULL,
    to: DAY_OR_NULL,
    rows: { type: "integer", minimum: 0 },
    filters: {
      type: "object",
      required: ["source_slug", "is_user"],
      properties: { source_slug: { type: ["string", "null"] }, is_user: { enum: ["all", "true", "false"] } },
    },
    start_date: DAY_OR_NULL,
    end_date: DAY_OR_NULL,
    planned_at: { type: "string", maxLength: 40 },
  },
};

let isLine: ReturnType<ReturnType<typeof schemaCompiler>> | undefined;

function parseLine(text: string, index: number): ShardLine {
  isLine ??= schemaCompiler({ fill: false })(LINE);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unusable(`line ${index + 1} is not JSON`);
  }
  if (isLine(value)) return value as ShardLine;
  const [error] = isLine.errors ?? [];
  throw unusable(
    `line ${index + 1} is not a shard: ${error?.instancePath ?? ""} ${error?.message ?? ""}`.trim(),
  );
}

/** The lines of one plan: all of them, once, in order, and without a day between two of them. */
function toWholePlan(found: readonly ShardLine[]): ShardPlan {
  const lines = found.toSorted((a, b) => a.shard - b.shard);
  const { stream = "", plan: digest = "", shards = 0 } = lines[0] ?? {};
  const whole =
    lines.length === shards && lines.every((line, index) => line.shard === index && line.stream === stream);
  if (!whole)
    throw unusable(
      `the plan of "${stream}" has ${lines.length} of its ${shards} lines, or one of them twice`,
    );
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1];
    const follows = before === undefined || (before.to !== null && line.from === addDays(before.to, 1));
    if (!follows)
      throw unusable(`shard ${line.shard} of "${stream}" does not begin after shard ${line.shard - 1}`);
  }
  return { stream, digest, lines };
}

const unusable = (why: string): ConfigError => new ConfigError(`Cannot use the plan: ${why}`);
