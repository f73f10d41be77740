import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../base/errors.ts";
import { type JsonObject, objectOf } from "../base/json.ts";
import type { ConfiguredStream } from "../catalog/airbyte.ts";
import type { StreamState } from "../sync/event.ts";
import { type Filters, filterText, NEW_STATE, type RowState } from "../sync/state.ts";
import { stateKey, streamOfKey } from "./envelopes.ts";
import { parseRowState } from "./parse-state.ts";

/** How a stream continues from the incoming state. `why`: a warning for the operator. */
export type Resume =
  /** The run continues from `state`. If the saved state cannot be used, `state` is a new state. */
  | { readonly kind: "read"; readonly state: RowState; readonly why?: string }
  /** An earlier run has delivered this full refresh, so the run reads nothing. */
  | { readonly kind: "delivered"; readonly state: StreamState };

export const isFullRefresh = ({ syncMode }: ConfiguredStream): boolean => syncMode === "full_refresh";

/** A full refresh continues only from its own state. It is delivered once. @throws ConfigError for another service or filters */
export function resume(
  configured: ConfiguredStream,
  saved: unknown,
  isDated: boolean,
  filters: Filters,
  service: string | null = null,
): Resume {
  const isFull = isFullRefresh(configured);
  const { name, generationId, syncId } = configured;
  const full_refresh = isFull ? { generation_id: generationId, sync_id: syncId, done: false } : null;
  const fresh: Resume = { kind: "read", state: { ...NEW_STATE, filters, full_refresh, service } };
  if (isFull && !isSameRefresh(saved, configured)) return fresh;
  const isDelivered = isFull && refreshIn(saved)["done"] === true;
  const { version } = NEW_STATE;
  if (!isDated)
    return isDelivered
      ? { kind: "delivered", state: { version, full_refresh: { ...full_refresh, done: true } } }
      : fresh;
  const state = parseRowState(name, saved);
  if (state === null) return fresh;
  refuseOtherService(name, state, service);
  refuseOtherFilters(name, state.filters ?? filters, filters);
  if (isDelivered) return { kind: "delivered", state };
  const resumed = { ...state, filters, full_refresh, service };
  if (state.discoveredAt === null || state.days.length > 0) return { kind: "read", state: resumed };
  const why = `The state of "${name}" has a cursor and no days. Everything is read again`;
  return { kind: "read", state: resumed, why };
}

function refuseOtherFilters(stream: string, made: Filters, now: Filters): void {
  if (isDeepStrictEqual(made, now)) return;
  const [before, after] = [made, now].map((filters) => filterText(filters) || "no filter");
  throw new ConfigError(
    `Cannot use the state of "${stream}": its filters were ${before}, and now are ${after}. ` +
      "Reset the stream, or use another state file or folder",
  );
}

/** @throws ConfigError for a state of another address. A state without an address belongs to every address. */
export function refuseOtherService(stream: string, saved: unknown, service: string | null): void {
  const made = objectOf(saved)["service"] ?? null;
  if (made === null || service === null || made === service) return;
  throw new ConfigError(
    `Cannot use the state of "${stream}": it is from another base_url. Reset the stream, or use another ` +
      'state file or folder. If the service only moved, remove "service" from the state',
  );
}

function isSameRefresh(saved: unknown, { generationId, syncId }: ConfiguredStream): boolean {
  const { generation_id, sync_id } = refreshIn(saved);
  return generationId !== null && syncId !== null && generation_id === generationId && sync_id === syncId;
}

const refreshIn = (saved: unknown): JsonObject => objectOf(objectOf(saved)["full_refresh"]);

/** A stream's part of the incoming state. The namespace counts only if several streams have this name. */
export function stateOf(
  { name, namespace }: ConfiguredStream,
  asked: readonly { readonly configured: ConfiguredStream }[],
  state: ReadonlyMap<string, unknown>,
): unknown {
  const own = state.get(stateKey(name, namespace));
  if (own !== undefined || asked.filter(({ configured }) => configured.name === name).length > 1) return own;
  const [only, another] = [...state].filter(([key]) => streamOfKey(key) === name);
  return another === undefined ? only?.[1] : undefined;
}
