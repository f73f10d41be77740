import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject, kindOf } from "../json.ts";
import { type Coverage, type DayRange, put, type Span, spanOf, without } from "../streams/coverage.ts";
import { type DatedState, NEW_STATE } from "../streams/dated-state.ts";
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
  parseInstant,
  toUtc,
} from "../time.ts";

export type { DatedState, Filters, FullRefresh } from "../streams/dated-state.ts";

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isDate: Check = (value) => typeof value === "string" && isDay(value);
const isRows: Check = (value) => Number.isInteger(value) && Number(value) >= 0;
const isOneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || value === undefined || check(value);
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isTuple =
  (...checks: readonly Check[]): Check =>
  (value) =>
    Array.isArray(value) && value.length === checks.length && checks.every((check, nth) => check(value[nth]));
const isShape =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(checks).every(([key, check]) => check(value[key]));
const isSpan: Check = (value) =>
  isTuple(isDate, isDate, orNull(isRows))(value) ||
  isTuple(isDate, isDate, orNull(isRows), isOneOf("again", "missing"))(value);
const isId = orNull(Number.isInteger);

/** What each key of a state must be, if it is there and not null, and how a message says so. */
const KEYS: Readonly<Record<string, readonly [check: Check, what: string]>> = {
  days: [
    isListOf(isSpan),
    'days is not a list of [first day, last day, rows or null, "again" or "missing" or nothing]',
  ],
  service: [isText, "service is not a text"],
  witness: [isObject, "witness is not an object"],
  undated: [
    (value) =>
      isOneOf("pending", "done")(value) || isShape({ rows: isRows, seen: orNull(isListOf(isText)) })(value),
    "undated is not {rows: a whole number, seen: a list of texts or null}",
  ],
  checked: [isDate, "checked is not a day (YYYY-MM-DD)"],
  filters: [
    isShape({ source_slug: orNull(isText), is_user: isOneOf(undefined, "all", "true", "false") }),
    'filters is not {"source_slug": a text or null, "is_user": "all", "true" or "false"}',
  ],
  plan: [isText, "plan is not a text"],
  sources: [isListOf(isText), "sources is not a list of texts"],
  full_refresh: [
    isShape({ generation_id: isId, sync_id: isId, done: isOneOf(true, false) }),
    "full_refresh is not {generation_id, sync_id, done} of two whole numbers and a boolean",
  ],
  // Of version 1.
  missing_days: [isListOf(isDate), "missing_days is not a list of days (YYYY-MM-DD)"],
  from: [isDate, "from is not a day (YYYY-MM-DD)"],
  undated_checked: [isDate, "undated_checked is not a day (YYYY-MM-DD)"],
  undated_rows: [isRows, "undated_rows is not a whole number"],
  recheck: [isListOf(isTuple(isDate, isDate)), "recheck is not a list of [first day, last day]"],
  shard: [
    isShape({ plan: isText, done: isOneOf(true, false), asked: orNull(isText) }),
    "shard is not {plan, index, done, asked, ended}",
  ],
  gap: [isShape({ from: orNull(isDate), to: isDate }), "gap is not {from: a day or null, to: a day}"],
};

/** What version 1 said of days and of people without a date. */
type Version1 = {
  readonly from: Day | null;
  readonly gap: { readonly from?: Day | null; readonly to: Day } | null;
  readonly missing_days: readonly Day[] | null;
  readonly recheck: readonly DayRange[] | null;
  readonly undated: "pending" | "done" | null;
  readonly undated_checked: Day | null;
  readonly undated_rows: number | null;
  readonly shard: { readonly plan: string; readonly done: boolean; readonly asked: string | null } | null;
};
type SavedKeys = { readonly version?: 1 | 2 } & Partial<
  Omit<DatedState, "undated" | "version"> & Omit<Version1, "undated">
> & {
    readonly undated?: DatedState["undated"] | Version1["undated"];
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
  const cursors = cursorsOf(stream, saved);
  for (const [key, [check, what]] of Object.entries(KEYS)) {
    if (!orNull(check)(saved[key])) throw unusable(stream, what);
  }
  const value: SavedKeys = saved;
  const discoveredAt = cursors.reduce(earlierOf, null);
  const { filters, full_refresh } = value;
  const isOurs = value.version !== 1 && value.days !== undefined;
  const days = isOurs ? (value.days ?? []).map(inOrder).reduce(put, []) : daysOfVersion1(value, discoveredAt);
  const moved = new Set(cursors.filter((cursor) => cursor !== null)).size > 1 && discoveredAt !== null;
  return {
    ...NEW_STATE,
    discoveredAt,
    // Days from an earlier cursor on are read again.
    days: moved ? without(days, [readFrom(discoveredAt), dayOf(LAST)]) : days,
    service: value.service ?? null,
    witness: value.witness ?? null,
    undated: undatedOf(value, isOurs),
    checked: (isOurs ? value.checked : value.undated_checked) ?? null,
    filters: filters ? { ...NO_FILTERS, ...filters } : null,
    plan: value.plan ?? value.shard?.plan ?? null,
    sources: value.sources ?? null,
    asked: momentOf(stream, saved["asked"] ?? value.shard?.asked, "asked") ?? null,
    full_refresh: full_refresh ? { ...NO_IDS, ...full_refresh } : null,
  };
}

/** The day from which a run reads that goes on from a cursor with the least lookback. */
const readFrom = (cursor: string): Day => addDays(dayOf(instant(cursor)), -1);

/** What a state of version 1, or one that was written by hand, says was read; nobody knows how many rows that were. */
function daysOfVersion1(saved: SavedKeys, discoveredAt: string | null): Coverage {
  const { from, gap, recheck, missing_days, shard } = saved;
  const spans: Span[] = [];
  if (discoveredAt !== null) {
    // The last day of a shard that is done is proven.
    const day = dayOf(instant(discoveredAt));
    const isProven = shard?.done === true && discoveredAt === endOf(day);
    spans.push([from ?? BEGINNING, isProven ? day : addDays(readFrom(discoveredAt), -1), null]);
  }
  if (gap) spans.push([gap.from ?? BEGINNING, gap.to, null]);
  for (const [first, last] of recheck ?? []) spans.push(inOrder([first, last, null, "again"]));
  for (const day of missing_days ?? []) spans.push([day, day, null, "missing"]);
  return spans.filter(([first, last]) => first <= last).reduce<Coverage>(put, []);
}

const inOrder = ([first, last, rows, status]: Span): Span =>
  spanOf(first <= last ? [first, last] : [last, first], rows, status);

/** With a start_date version 1 had never read them, whatever it said. */
function undatedOf({ undated, from, undated_rows }: SavedKeys, isOurs: boolean): DatedState["undated"] {
  if (undated !== null && typeof undated === "object")
    return { rows: undated.rows, seen: undated.seen ?? null };
  const isPending = isOurs || undated === "pending" || (from ?? null) !== null;
  return isPending ? null : { rows: undated_rows ?? 0, seen: null };
}

function refuseOtherVersion(stream: string, { version = NEW_STATE.version }: JsonObject): void {
  if (version === 1 || version === NEW_STATE.version) return;
  if (typeof version === "number" && version > NEW_STATE.version) {
    throw unusable(
      stream,
      `it was written by a newer version of this program (state version ${version}): update the program`,
    );
  }
  throw unusable(stream, "version is not a version of this program's state");
}

/** The stream's own cursor and Singer's, as far as they are there. */
function cursorsOf(
  stream: string,
  { discoveredAt, replication_key, replication_key_value }: JsonObject,
): readonly (string | null)[] {
  const isOurs = (replication_key ?? "discoveredAt") === "discoveredAt";
  const singer = isOurs ? replication_key_value : undefined;
  if (discoveredAt === undefined && singer === undefined) {
    throw unusable(stream, "it has no discoveredAt: without it nothing tells what was delivered");
  }
  const moments = [
    momentOf(stream, discoveredAt, "discoveredAt"),
    momentOf(stream, singer, "replication_key_value"),
  ];
  return moments.filter((moment) => moment !== undefined);
}

/** As it is written here: UTC. A plain day is its first moment. */
function momentOf(stream: string, value: unknown, name: string): string | null | undefined {
  if (value === undefined || value === null) return value;
  const text = typeof value === "string" && isDay(value) ? `${value}T00:00:00Z` : value;
  const moment = typeof text === "string" ? parseInstant(text) : null;
  if (moment === null) throw unusable(stream, `${name} is not a date-time such as 2026-01-02T03:04:05Z`);
  return String(text).endsWith("Z") ? String(text) : toUtc(moment);
}

/** A null says nothing beside a moment. */
function earlierOf(a: string | null, b: string | null): string | null {
  const [left, right] = [parseInstant(a ?? ""), parseInstant(b ?? "")];
  if (left === null || right === null) return a ?? b;
  return compareInstants(left, right) <= 0 ? a : b;
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. Correct it, or remove it to read the stream from the start`,
  );
