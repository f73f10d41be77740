import type { Day } from "../base/time.ts";
import type { Coverage } from "./coverage.ts";

/** The filters of the config that made a state. Another config needs another state. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** A full refresh, and the ids that the catalog gave it. */
export type FullRefresh = {
  readonly generation_id: number | null;
  readonly sync_id: number | null;
  readonly done: boolean;
};

/** The state of a stream of rows, as it is written. Every key is written every time, because platforms merge states. */
export type RowState = {
  readonly version: 4;
  /** The newest row shown that is not later than the first count of the run that showed it; null: none yet. */
  readonly discoveredAt: string | null;
  readonly days: Coverage;
  /** The people without a date that were counted when they were last read; null: they must be read. */
  readonly undated: { readonly rows: number } | null;
  /** The UTC day of the last complete daily check. */
  readonly checked: Day | null;
  /** The sources of the last list whose rows are all read; null: the list was never read. */
  readonly sources: readonly string[] | null;
  readonly filters: Filters | null;
  /** A digest of the service's address, and one of the API key's id. */
  readonly service: string | null;
  readonly key: string | null;
  /** When the run's first count was asked. The union of several shards continues from the earliest. */
  readonly asked: string | null;
  readonly full_refresh: FullRefresh | null;
};

/** The state of a stream before anything was read. */
export const NEW_STATE: RowState = {
  version: 4,
  discoveredAt: null,
  days: [],
  undated: null,
  checked: null,
  sources: null,
  filters: null,
  service: null,
  key: null,
  asked: null,
  full_refresh: null,
};
