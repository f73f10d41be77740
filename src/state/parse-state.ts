import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, kindOf } from "../base/json.ts";
import { type SchemaCheck, schemaCompiler } from "../base/json-schema.ts";
import {
  addDays,
  BEGINNING,
  compareInstants,
  type Day,
  dayOf,
  endOf,
  instant,
  isDay,
  LAST,
  later,
  parseInstant,
  toUtc,
} from "../base/time.ts";
import { type Coverage, type DayRange, put, type Span, spanOf, without } from "../sync/coverage.ts";
import { type DatedState, NEW_STATE } from "../sync/state.ts";

const text = { type: "string" };
const day = { type: "string", format: "date" };
const rows = { type: "integer", minimum: 0 };
const id = { type: ["integer", "null"] };
const listOf = (items: object): object => ({ type: "array", items });
const orNull = (schema: object): object => ({ anyOf: [schema, { type: "null" }] });
const recordOf = (properties: object, ...required: readonly string[]): object => ({
  ...{ type: "object", properties, required },
});

const span = [day, day, { ...rows, type: ["integer", "null"] }, { enum: ["again", "missing", null] }, rows];
const undated = recordOf({ rows, seen: orNull(listOf(text)) }, "rows");

/** What each key of a state must be, if it is there and not null. */
const SCHEMA = {
  properties: {
    days: listOf({ type: "array", items: span, minItems: 3, maxItems: 5 }),
    service: text,
    witness: recordOf(
      { keys: listOf(text), cursor: { ...text, format: "date-time" }, key: text },
      "keys",
      "cursor",
      "key",
    ),
    undated: { anyOf: [undated, { enum: ["pending", "done"] }] },
    checked: day,
    filters: recordOf({ source_slug: orNull(text), is_user: { enum: ["all", "true", "false"] } }),
    plan: text,
    sources: listOf(text),
    full_refresh: recordOf({ generation_id: id, sync_id: id, done: { type: "boolean" } }, "done"),
    // Of version 1.
    missing_days: listOf(day),
    from: day,
    undated_checked: day,
    undated_rows: rows,
    recheck: listOf({ type: "array", items: [day, day], minItems: 2, maxItems: 2 }),
    shard: recordOf({ plan: text, done: { type: "boolean" }, asked: orNull(text) }, "plan", "done"),
    gap: recordOf({ from: orNull(day), to: day }, "to"),
  },
};
let checkOfKeys: SchemaCheck | undefined;

/** What version 1 said of days and of people without a date. Any key may be left out. */
type Version1 = {
  readonly from?: Day | null;
  readonly gap?: { readonly from?: Day | null; readonly to: Day } | null;
  readonly missing_days?: readonly Day[] | null;
  readonly recheck?: readonly DayRange[] | null;
  readonly undated?: DatedState["undated"] | "pending" | "done";
  readonly undated_checked?: Day | null;
  readonly undated_rows?: number | null;
  readonly shard?: { readonly plan: string; readonly done: boolean; readonly asked: string | null } | null;
};

const NO_FILTERS = { source_slug: null, is_user: "all" };
const NO_IDS = { generation_id: null, sync_id: null };

/**
 * Reads the state of a dated stream, of version 1 too. A hand-written one needs only `discoveredAt` (or Singer's
 * `replication_key_value`); of both the earlier counts. Unknown keys are ignored. Null for an empty state and for the marks
 * that other sources leave in streams without a cursor. Throws ConfigError for anything that cannot be relied on.
 */
export function parseDatedState(stream: string, saved: unknown): DatedState | null {
  if (saved === null || saved === undefined) return null;
  if (!isObject(saved)) throw unusable(stream, `it is of type ${kindOf(saved)}, not an object`);
  if (Object.keys(saved).every((key) => key.startsWith("__ab_"))) return null;
  refuseOtherVersion(stream, saved);
  const [discoveredAt = null, ...others] = cursorsOf(stream, saved);
  refuseOtherShape(stream, saved);
  const isOurs = saved["version"] !== 1 && saved["days"] !== undefined;
  const said: JsonObject = isOurs ? saved : { ...saved, ...upgraded(saved, discoveredAt) };
  const state = Object.fromEntries(
    Object.entries(NEW_STATE).map(([key, none]) => [key, said[key] ?? none]),
  ) as DatedState;
  const { filters, full_refresh, undated } = state;
  const days = state.days.map(inOrder).reduce(put, []).flatMap(sinceBeginning);
  return {
    ...state,
    version: NEW_STATE.version,
    discoveredAt,
    // Days from an earlier cursor on are read again.
    days:
      discoveredAt !== null && others.length > 0
        ? without(days, [readFrom(discoveredAt), dayOf(LAST)])
        : days,
    undated: isObject(undated) ? { rows: undated.rows, seen: undated.seen ?? null } : null,
    filters: filters && { ...NO_FILTERS, ...filters },
    asked: momentOf(stream, state.asked, "asked"),
    full_refresh: full_refresh && { ...NO_IDS, ...full_refresh },
  };
}

/** The day from which a run reads that goes on from a cursor with the least lookback. */
const readFrom = (cursor: string): Day => addDays(dayOf(instant(cursor)), -1);

const inOrder = ([first, last, rows, status, held]: Span): Span =>
  spanOf(first <= last ? [first, last] : [last, first], rows, status ?? undefined, held);

/** Earlier states begin in the year 1. The few rows that no day holds any more stay in the number until the days are counted. */
const sinceBeginning = ([first, last, rows, status, held]: Span): Coverage =>
  last < BEGINNING ? [] : [spanOf([later(first, BEGINNING), last], rows, status, held)];

/** What a state of version 1, or one that was written by hand, says in the words of today. Nobody knows how many rows its days held. */
function upgraded(saved: Version1 & { readonly asked?: unknown }, discoveredAt: string | null): JsonObject {
  const { from = null, gap, shard, undated } = saved;
  const read: Span[] = [];
  if (discoveredAt !== null) {
    // The last day of a shard that is done is proven.
    const day = dayOf(instant(discoveredAt));
    const isProven = shard?.done === true && discoveredAt === endOf(day);
    read.push([from ?? BEGINNING, isProven ? day : addDays(readFrom(discoveredAt), -1), null]);
  }
  if (gap) read.push([gap.from ?? BEGINNING, gap.to, null]);
  const again = (saved.recheck ?? []).map(([first, last]): Span => [first, last, null, "again"]);
  const missing = (saved.missing_days ?? []).map((day): Span => [day, day, null, "missing"]);
  const days: Coverage = [...read.filter(([first, last]) => first <= last), ...again, ...missing];
  // With a start_date version 1 had never read the people without a date, whatever it said.
  const isPending = undated === "pending" || from !== null;
  const counted = isPending ? null : { rows: saved.undated_rows ?? 0, seen: null };
  return {
    days,
    undated: isObject(undated) ? undated : counted,
    checked: saved.undated_checked,
    ...(shard && { plan: shard.plan, asked: saved.asked ?? shard.asked }),
  };
}

function refuseOtherVersion(stream: string, { version = NEW_STATE.version }: JsonObject): void {
  if (version === 1 || version === NEW_STATE.version) return;
  const isNewer = typeof version === "number" && version > NEW_STATE.version;
  const newer = "it was written by a newer version of this program (state version";
  throw unusable(
    stream,
    isNewer ? `${newer} ${version}): update the program` : "version is not a version of this program's state",
  );
}

function refuseOtherShape(stream: string, saved: JsonObject): void {
  checkOfKeys ??= schemaCompiler({
    fill: false,
    formats: { date: isDay, "date-time": (text: string) => parseInstant(text) !== null },
  })(SCHEMA);
  const said = Object.entries(saved).filter(([, value]) => value !== null);
  if (checkOfKeys(Object.fromEntries(said))) return;
  const [{ instancePath = "", message = "" } = {}] = checkOfKeys.errors ?? [];
  const place = instancePath.slice(1);
  throw unusable(stream, `${place.split("/", 1)[0]} is not as this program writes it: ${place} ${message}`);
}

/** The stream's own cursor and Singer's, the earlier first, as far as they say something. */
function cursorsOf(
  stream: string,
  { discoveredAt, replication_key, replication_key_value }: JsonObject,
): readonly string[] {
  const isOurs = (replication_key ?? "discoveredAt") === "discoveredAt";
  const singer = isOurs ? replication_key_value : undefined;
  if (discoveredAt === undefined && singer === undefined) {
    throw unusable(stream, "it has no discoveredAt: without it nothing tells what was delivered");
  }
  const moments = [
    momentOf(stream, discoveredAt, "discoveredAt"),
    momentOf(stream, singer, "replication_key_value"),
  ];
  return [...new Set(moments.filter((moment) => moment !== null))].sort(byMoment);
}

/** As it is written here: UTC. A plain day is its first moment. */
function momentOf(stream: string, value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" && isDay(value) ? `${value}T00:00:00Z` : value;
  const moment = typeof text === "string" ? parseInstant(text) : null;
  if (moment === null) throw unusable(stream, `${name} is not a date-time such as 2026-01-02T03:04:05Z`);
  return String(text).endsWith("Z") ? String(text) : toUtc(moment);
}

function byMoment(a: string, b: string): number {
  const [left, right] = [parseInstant(a), parseInstant(b)];
  return left === null || right === null ? 0 : compareInstants(left, right);
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. Correct it, or remove it to read the stream from the start`,
  );
