import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject, kindOf } from "../json.ts";
import type { StreamState } from "../sync/event.ts";
import type { Day } from "../sync/window.ts";
import { compareInstants, isDay, parseInstant, toUtc } from "../timestamp.ts";

/** What a state was made under; another config needs another state. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** A full refresh on its way, or one that is done, and the ids that the catalog gave it. */
export type FullRefresh = {
  readonly generation_id: number | null;
  readonly sync_id: number | null;
  readonly done: boolean;
};

/** Days before `from` that a later `start_date` let in and that are still to be read. */
export type Gap = { readonly from: Day | null; readonly to: Day };

/** The state of a dated stream, in the words in which it is saved. */
export type DatedBlob = {
  readonly version: 1;
  /** Everything up to here has been delivered, save `missing_days`. Null: nothing yet. */
  readonly discoveredAt: string | null;
  readonly missing_days: readonly Day[];
  /** Null: written by hand, and taken to match. */
  readonly filters: Filters | null;
  /** The first day that is covered; null: the beginning. */
  readonly from: Day | null;
  readonly undated: "pending" | "done";
  readonly full_refresh: FullRefresh | null;
  readonly gap: Gap | null;
};

export const STATE_VERSION = 1;

/**
 * Reads the blob of a dated stream. A hand-written one needs only `discoveredAt` (or Singer's `replication_key_value`);
 * of both the earlier counts. Unknown keys are ignored. Null for an empty blob and for the marks that other sources leave
 * in streams without a cursor. Throws ConfigError for anything that cannot be relied on.
 */
export function parseDatedState(blob: unknown): DatedBlob | null {
  if (blob === null || blob === undefined) return null;
  if (!isObject(blob)) throw unusable(`it is of type ${kindOf(blob)}, not an object`);
  if (Object.keys(blob).every((key) => key.startsWith("__ab_"))) return null;
  return {
    version: versionOf(blob),
    discoveredAt: cursorOf(blob),
    missing_days: missingDaysOf(blob),
    filters: filtersOf(blob),
    from: dayOrNull(blob, "from"),
    undated: undatedOf(blob),
    full_refresh: fullRefreshOf(blob),
    gap: gapOf(blob),
  };
}

/** Every key, every time: platforms merge states, and a key left out would survive from an older one. */
export function toDatedState(blob: DatedBlob): StreamState {
  const { discoveredAt, missing_days, filters, from, undated, full_refresh, gap } = blob;
  return { version: STATE_VERSION, discoveredAt, missing_days, filters, from, undated, full_refresh, gap };
}

function versionOf({ version = STATE_VERSION }: JsonObject): 1 {
  if (version === STATE_VERSION) return STATE_VERSION;
  if (typeof version === "number" && version > STATE_VERSION) {
    throw unusable(
      `it was written by a newer version of this program (state version ${version}): update the program`,
    );
  }
  throw unusable("version is not a version of this program's state");
}

function cursorOf(blob: JsonObject): string | null {
  const { discoveredAt, replication_key = "discoveredAt", replication_key_value } = blob;
  const singer = replication_key === "discoveredAt" ? replication_key_value : undefined;
  if (discoveredAt === undefined && singer === undefined) {
    throw unusable("it has no discoveredAt: without it nothing tells what was delivered");
  }
  const moments = [momentOf(discoveredAt, "discoveredAt"), momentOf(singer, "replication_key_value")];
  return moments.filter((moment) => moment !== undefined).reduce(earlierOf);
}

/** As it is written here: UTC. A plain day is its first moment. */
function momentOf(value: unknown, name: string): string | null | undefined {
  if (value === undefined || value === null) return value;
  const text = typeof value === "string" && isDay(value) ? `${value}T00:00:00Z` : value;
  const instant = typeof text === "string" ? parseInstant(text) : null;
  if (instant === null) throw unusable(`${name} is not a date-time such as 2026-01-02T03:04:05Z`);
  return String(text).endsWith("Z") ? String(text) : toUtc(instant);
}

/** Null is before every moment: nothing was delivered. */
function earlierOf(a: string | null, b: string | null): string | null {
  const [left, right] = [parseInstant(a ?? ""), parseInstant(b ?? "")];
  if (left === null || right === null) return null;
  return compareInstants(left, right) <= 0 ? a : b;
}

function missingDaysOf({ missing_days }: JsonObject): readonly Day[] {
  const days = missing_days ?? [];
  if (!Array.isArray(days) || !days.every(isDayValue))
    throw unusable("missing_days is not a list of days (YYYY-MM-DD)");
  return [...new Set(days)].sort();
}

function filtersOf({ filters }: JsonObject): Filters | null {
  if (filters === undefined || filters === null) return null;
  const { source_slug = null, is_user = "all" } = isObject(filters) ? filters : { is_user: null };
  const known = is_user === "all" || is_user === "true" || is_user === "false";
  if (!known || (source_slug !== null && typeof source_slug !== "string")) {
    throw unusable('filters is not {"source_slug": a text or null, "is_user": "all", "true" or "false"}');
  }
  return { source_slug, is_user };
}

function undatedOf({ undated }: JsonObject): "pending" | "done" {
  const progress = undated ?? "done";
  if (progress !== "pending" && progress !== "done")
    throw unusable('undated is neither "pending" nor "done"');
  return progress;
}

function fullRefreshOf({ full_refresh }: JsonObject): FullRefresh | null {
  if (full_refresh === undefined || full_refresh === null) return null;
  const { generation_id = null, sync_id = null, done } = isObject(full_refresh) ? full_refresh : {};
  if (!isId(generation_id) || !isId(sync_id) || typeof done !== "boolean") {
    throw unusable("full_refresh is not {generation_id, sync_id, done} of two whole numbers and a boolean");
  }
  return { generation_id, sync_id, done };
}

function gapOf({ gap }: JsonObject): Gap | null {
  if (gap === undefined || gap === null) return null;
  const inner = isObject(gap) ? gap : {};
  const to = dayOrNull(inner, "to");
  if (to === null) throw unusable("gap is not {from: a day or null, to: a day}");
  return { from: dayOrNull(inner, "from"), to };
}

function dayOrNull(fields: JsonObject, name: string): Day | null {
  const value = fields[name] ?? null;
  if (value === null || isDayValue(value)) return value;
  throw unusable(`${name} is not a day (YYYY-MM-DD)`);
}

const isDayValue = (value: unknown): value is Day => typeof value === "string" && isDay(value);

const isId = (value: unknown): value is number | null => value === null || Number.isInteger(value);

const unusable = (why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of a stream: ${why}. Correct it, or remove it to read the stream anew`,
  );
