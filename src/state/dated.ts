import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject, kindOf } from "../json.ts";
import { type SchemaCheck, schemaCompiler } from "../json-schema.ts";
import { type DatedState, NEW_STATE } from "../streams/dated-state.ts";
import { compareInstants, isDay, parseInstant, toUtc } from "../time.ts";

export type { DatedState, Filters, FullRefresh } from "../streams/dated-state.ts";

const DAY = { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" };
const ID = { type: ["integer", "null"] };
const MOMENT = { type: ["string", "null"] };
const orNull = (schema: object): object => ({ anyOf: [{ type: "null" }, schema] });
const shape = (properties: Readonly<Record<string, object>>, required: readonly string[]): object =>
  orNull({ type: "object", properties, required });

/** What each key of a state must be, and how a message says so. Keys may be missing: hand-written states have few. */
const KEYS: Readonly<Record<string, readonly [schema: object, what: string]>> = {
  missing_days: [orNull({ type: "array", items: DAY }), "missing_days is not a list of days (YYYY-MM-DD)"],
  filters: [
    shape({ source_slug: { type: ["string", "null"] }, is_user: { enum: ["all", "true", "false"] } }, []),
    'filters is not {"source_slug": a text or null, "is_user": "all", "true" or "false"}',
  ],
  from: [orNull(DAY), "from is not a day (YYYY-MM-DD)"],
  undated: [{ enum: ["pending", "done", null] }, 'undated is neither "pending" nor "done"'],
  undated_checked: [orNull(DAY), "undated_checked is not a day (YYYY-MM-DD)"],
  undated_rows: [{ type: ["integer", "null"], minimum: 0 }, "undated_rows is not a whole number"],
  recheck: [
    orNull({ type: "array", items: { type: "array", items: DAY, minItems: 2, maxItems: 2 } }),
    "recheck is not a list of [first day, last day]",
  ],
  gap: [shape({ from: orNull(DAY), to: DAY }, ["to"]), "gap is not {from: a day or null, to: a day}"],
  shard: [
    shape(
      {
        ...{ plan: { type: "string" }, index: { type: "integer", minimum: 0 }, done: { type: "boolean" } },
        ...{ asked: MOMENT, ended: MOMENT },
      },
      ["plan", "index", "done", "asked", "ended"],
    ),
    "shard is not {plan, index, done, asked, ended}",
  ],
  full_refresh: [
    shape({ generation_id: ID, sync_id: ID, done: { type: "boolean" } }, ["done"]),
    "full_refresh is not {generation_id, sync_id, done} of two whole numbers and a boolean",
  ],
};

const NO_FILTERS = { source_slug: null, is_user: "all" };
const NO_IDS = { generation_id: null, sync_id: null };

const compile = schemaCompiler({ fill: false });
let compiled: SchemaCheck<Partial<DatedState>> | undefined;

/** Compiled for the first state that there is: a short command has none. */
function isShaped(value: JsonObject): value is Partial<DatedState> {
  compiled ??= compile<Partial<DatedState>>({
    type: "object",
    properties: Object.fromEntries(Object.entries(KEYS).map(([key, [schema]]) => [key, schema])),
  });
  return compiled(value);
}

/**
 * Reads the state of a dated stream. A hand-written one needs only `discoveredAt` (or Singer's `replication_key_value`);
 * of both the earlier counts. Unknown keys are ignored. Null for an empty state and for the marks that other sources leave
 * in streams without a cursor. Throws ConfigError for anything that cannot be relied on.
 */
export function parseDatedState(stream: string, value: unknown): DatedState | null {
  if (value === null || value === undefined) return null;
  if (!isObject(value)) throw unusable(stream, `it is of type ${kindOf(value)}, not an object`);
  if (Object.keys(value).every((key) => key.startsWith("__ab_"))) return null;
  refuseOtherVersion(stream, value);
  const discoveredAt = cursorOf(stream, value);
  if (!isShaped(value) || !daysOf(value).every(isDay)) throw unusable(stream, whatIsWrong(value));
  return {
    ...NEW_STATE,
    discoveredAt,
    missing_days: [...new Set(value.missing_days ?? [])].sort(),
    filters: value.filters ? { ...NO_FILTERS, ...value.filters } : null,
    from: value.from ?? null,
    undated: value.undated ?? "done",
    undated_checked: value.undated_checked ?? null,
    undated_rows: value.undated_rows ?? 0,
    recheck: (value.recheck ?? []).map(([first, last]) => (first <= last ? [first, last] : [last, first])),
    gap: value.gap ? { from: value.gap.from ?? null, to: value.gap.to } : null,
    shard: value.shard ?? null,
    full_refresh: value.full_refresh ? { ...NO_IDS, ...value.full_refresh } : null,
  };
}

function refuseOtherVersion(stream: string, { version = NEW_STATE.version }: JsonObject): void {
  if (version === NEW_STATE.version) return;
  if (typeof version === "number" && version > NEW_STATE.version) {
    throw unusable(
      stream,
      `it was written by a newer version of this program (state version ${version}): update the program`,
    );
  }
  throw unusable(stream, "version is not a version of this program's state");
}

/** Every text that stands where a day must. */
function daysOf({
  missing_days,
  from,
  undated_checked,
  recheck,
  gap,
}: Partial<DatedState>): readonly string[] {
  const days = [
    from,
    undated_checked,
    gap?.from,
    gap?.to,
    ...(missing_days ?? []),
    ...(recheck ?? []).flat(),
  ];
  return days.filter((day) => day !== null && day !== undefined);
}

/** The first key that is not what it must be. */
function whatIsWrong(value: JsonObject): string {
  for (const [key, [schema, what]] of Object.entries(KEYS)) {
    if (!(key in value)) continue;
    const isValid = compile(schema)(value[key]);
    if (!isValid || !daysOf({ [key]: value[key] } as Partial<DatedState>).every(isDay)) return what;
  }
  return "it is not of this program's form";
}

function cursorOf(
  stream: string,
  { discoveredAt, replication_key, replication_key_value }: JsonObject,
): string | null {
  const isOurs = (replication_key ?? "discoveredAt") === "discoveredAt";
  const singer = isOurs ? replication_key_value : undefined;
  if (discoveredAt === undefined && singer === undefined) {
    throw unusable(stream, "it has no discoveredAt: without it nothing tells what was delivered");
  }
  const moments = [
    momentOf(stream, discoveredAt, "discoveredAt"),
    momentOf(stream, singer, "replication_key_value"),
  ];
  return moments.filter((moment) => moment !== undefined).reduce(earlierOf);
}

/** As it is written here: UTC. A plain day is its first moment. */
function momentOf(stream: string, value: unknown, name: string): string | null | undefined {
  if (value === undefined || value === null) return value;
  const text = typeof value === "string" && isDay(value) ? `${value}T00:00:00Z` : value;
  const moment = typeof text === "string" ? parseInstant(text) : null;
  if (moment === null) throw unusable(stream, `${name} is not a date-time such as 2026-01-02T03:04:05Z`);
  return String(text).endsWith("Z") ? String(text) : toUtc(moment);
}

/** Null is before every moment: nothing was delivered. */
function earlierOf(a: string | null, b: string | null): string | null {
  const [left, right] = [parseInstant(a ?? ""), parseInstant(b ?? "")];
  if (left === null || right === null) return null;
  return compareInstants(left, right) <= 0 ? a : b;
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. Correct it, or remove it to read the stream from the start`,
  );
