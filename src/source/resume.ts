import type { Config } from "../config.ts";
import { isObject } from "../json.ts";
import type { StreamState } from "../sync/event.ts";
import type { Progress } from "../sync/frontier.ts";
import type { ConfiguredStream } from "./catalog.ts";
import {
  type Filters,
  type FullRefresh,
  parseDatedState,
  STATE_VERSION,
  toDatedState,
} from "./dated-state.ts";

/** What the incoming state means for a stream. `why`: what the operator should know about it. */
export type Resume =
  | { readonly kind: "anew"; readonly why?: string }
  | { readonly kind: "resume"; readonly progress: Progress }
  /** This very full refresh has been delivered before. */
  | { readonly kind: "done"; readonly state: StreamState };

export const filtersOf = ({ sourceSlug, isUser }: Config): Filters => ({
  source_slug: sourceSlug,
  is_user: isUser,
});

export const isFullRefresh = ({ syncMode }: ConfiguredStream): boolean => syncMode === "full_refresh";

/** The mark of a full refresh in its checkpoints; null in those of an incremental read. */
export function fullRefreshOf(configured: ConfiguredStream, done: boolean): FullRefresh | null {
  if (!isFullRefresh(configured)) return null;
  return { generation_id: configured.generationId, sync_id: configured.syncId, done };
}

/**
 * A full refresh goes on from a state only if that is of the very same refresh: a platform that overwrites a table would
 * otherwise commit a part of it as the whole. An incremental read goes on from any state that was made under its filters.
 */
export function resumeDated(configured: ConfiguredStream, blob: unknown, filters: Filters): Resume {
  if (isFullRefresh(configured) && !isSameRefresh(blob, configured)) return { kind: "anew" };
  if (isPlainState(blob)) {
    return {
      kind: "anew",
      why: `The state of "${configured.name}" is of a time when its records had no date: the stream is read anew`,
    };
  }
  const saved = parseDatedState(blob);
  if (saved === null) return { kind: "anew" };
  if (saved.filters !== null && !sameFilters(saved.filters, filters)) {
    return {
      kind: "anew",
      why:
        `The state of "${configured.name}" was made with source_slug ${saved.filters.source_slug ?? "(none)"} and is_user ` +
        `${saved.filters.is_user}, the config now says otherwise: the stream is read anew`,
    };
  }
  if (isFullRefresh(configured) && saved.full_refresh?.done === true) {
    return { kind: "done", state: toDatedState(saved) };
  }
  const { discoveredAt, missing_days: missing, from, undated, gap } = saved;
  return { kind: "resume", progress: { discoveredAt, missing, from, undated, gap } };
}

/** A stream that is read whole has nothing to go on from, but a full refresh that was delivered is not delivered twice. */
export function resumePlain(configured: ConfiguredStream, blob: unknown): Resume {
  const done = isFullRefresh(configured) && isSameRefresh(blob, configured) && isDone(blob);
  return done ? { kind: "done", state: plainState(configured) } : { kind: "anew" };
}

export function datedState(
  configured: ConfiguredStream,
  filters: Filters,
): (progress: Progress, done: boolean) => StreamState {
  return ({ discoveredAt, missing, from, undated, gap }, done) =>
    toDatedState({
      version: STATE_VERSION,
      discoveredAt,
      missing_days: missing,
      filters,
      from,
      undated,
      full_refresh: fullRefreshOf(configured, done),
      gap,
    });
}

export function plainState(configured: ConfiguredStream): StreamState {
  return { version: STATE_VERSION, full_refresh: fullRefreshOf(configured, true) };
}

/** Whether `plainState` made it: it says that it is ours, and nothing about days. Singer's nulls say nothing. */
function isPlainState(blob: unknown): boolean {
  return (
    isObject(blob) &&
    blob["version"] === STATE_VERSION &&
    "full_refresh" in blob &&
    !DATED_KEYS.some((key) => (blob[key] ?? null) !== null)
  );
}

const DATED_KEYS = [
  "discoveredAt",
  "replication_key_value",
  "missing_days",
  "filters",
  "from",
  "undated",
  "gap",
];

function isSameRefresh(blob: unknown, { generationId, syncId }: ConfiguredStream): boolean {
  if (!isObject(blob) || !isObject(blob["full_refresh"]) || generationId === null || syncId === null)
    return false;
  const { generation_id, sync_id } = blob["full_refresh"];
  return generation_id === generationId && sync_id === syncId;
}

function isDone(blob: unknown): boolean {
  return isObject(blob) && isObject(blob["full_refresh"]) && blob["full_refresh"]["done"] === true;
}

function sameFilters(a: Filters, b: Filters): boolean {
  return a.source_slug === b.source_slug && a.is_user === b.is_user;
}
