import { ConfigError } from "../base/errors.ts";
import { type JsonObject, objectOf } from "../base/json.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { Config } from "../config/config.ts";
import type { StreamState } from "../sync/event.ts";
import { type Filters, type FullRefresh, NEW_STATE, type RowState } from "../sync/state.ts";
import { parseRowState } from "./parse-state.ts";

/** The meaning of the incoming state for a stream. `why`: a warning for the operator. */
export type Resume =
  /** Read from `state`, which is a new one where nothing can be gone on from. */
  | { readonly kind: "read"; readonly state: RowState; readonly why?: string }
  /** This very full refresh has been delivered before. */
  | { readonly kind: "delivered"; readonly state: StreamState };

export const filtersOf = ({ sourceSlug, isUser }: Pick<Config, "sourceSlug" | "isUser">): Filters => ({
  source_slug: sourceSlug,
  is_user: isUser,
});

export const isFullRefresh = ({ syncMode }: ConfiguredStream): boolean => syncMode === "full_refresh";

/** The mark of a full refresh in its checkpoints; null in those of an incremental read. */
function fullRefreshOf(configured: ConfiguredStream, done: boolean): FullRefresh | null {
  if (!isFullRefresh(configured)) return null;
  return { generation_id: configured.generationId, sync_id: configured.syncId, done };
}

/** The state of a stream before anything was read. */
function newState(configured: ConfiguredStream, filters: Filters): RowState {
  return { ...NEW_STATE, filters, full_refresh: fullRefreshOf(configured, false) };
}

/**
 * A full refresh continues only its own state: a platform that overwrites a table would otherwise replace it by a part. An
 * incremental read continues any state of the same service and filters.
 * @throws ConfigError for a state of another service or of other filters
 */
export function resumeRows(
  configured: ConfiguredStream,
  saved: unknown,
  filters: Filters,
  service: string | null = null,
): Resume {
  const fresh = { ...newState(configured, filters), service };
  const { name } = configured;
  if (isFullRefresh(configured) && !isSameRefresh(saved, configured)) return { kind: "read", state: fresh };
  const state = parseRowState(name, saved);
  if (state === null) return { kind: "read", state: fresh };
  refuseOtherService(name, state, service);
  refuseOtherFilters(name, state.filters ?? filters, filters);
  if (isFullRefresh(configured) && state.full_refresh?.done === true) return { kind: "delivered", state };
  const resumed = { ...state, filters, full_refresh: fresh.full_refresh, service };
  if (state.discoveredAt === null || state.days.length > 0) return { kind: "read", state: resumed };
  const why = `The state of "${name}" has a cursor and no days, so nothing in it says which rows were read: everything is read`;
  return { kind: "read", state: resumed, why };
}

function refuseOtherFilters(stream: string, made: Filters, now: Filters): void {
  if (made.source_slug === now.source_slug && made.is_user === now.is_user) return;
  throw new ConfigError(
    `Cannot use the state of "${stream}": it was made with source_slug ${made.source_slug ?? "(none)"} and is_user ${made.is_user}, ` +
      `the config has source_slug ${now.source_slug ?? "(none)"} and is_user ${now.is_user}. Reset the stream, or use a state of its own`,
  );
}

/** Throws ConfigError for a state that was made with another address. A state that names none belongs to any. */
export function refuseOtherService(stream: string, saved: unknown, service: string | null): void {
  const made = objectOf(saved)["service"] ?? null;
  if (made === null || service === null || made === service) return;
  throw new ConfigError(
    `Cannot use the state of "${stream}": it was made with another base_url, and says nothing of the service at this one. ` +
      'Reset the stream or use a state of its own; if this is the same service at a new address, remove "service" from the state',
  );
}

/** A stream that is always read from the start has nothing to continue from, but a full refresh that was delivered is not delivered twice. */
export function resumeWhole(configured: ConfiguredStream, saved: unknown, filters: Filters): Resume {
  if (isFullRefresh(configured) && isSameRefresh(saved, configured) && refreshIn(saved)["done"] === true)
    return { kind: "delivered", state: wholeState(configured) };
  return { kind: "read", state: newState(configured, filters) };
}

/** The state of a stream that is always read from the start. */
export function wholeState(configured: ConfiguredStream): StreamState {
  return { version: NEW_STATE.version, full_refresh: fullRefreshOf(configured, true) };
}

function isSameRefresh(saved: unknown, { generationId, syncId }: ConfiguredStream): boolean {
  const { generation_id, sync_id } = refreshIn(saved);
  return generationId !== null && syncId !== null && generation_id === generationId && sync_id === syncId;
}

const refreshIn = (saved: unknown): JsonObject => objectOf(objectOf(saved)["full_refresh"]);
