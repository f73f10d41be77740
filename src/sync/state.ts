import type { Day } from "../base/time.ts";
import type { Coverage } from "./coverage.ts";

/** The newest keys that an earlier run has shown. */
export type Witness = {
  /** Digests of the keys. */
  readonly keys: readonly string[];
  /** The oldest of their cursors. */
  readonly cursor: string;
  /** A digest of the id of the API key under which they were shown. */
  readonly key: string;
};

/** What a state was made under; another config needs another state. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** A full refresh on its way, or one that is done, and the ids that the catalog gave it. */
export type FullRefresh = {
  readonly generation_id: number | null;
  readonly sync_id: number | null;
  readonly done: boolean;
};

/** The state of a dated stream, as it is written. Every key is written every time: platforms merge states. */
export type DatedState = {
  readonly version: 2;
  /** The newest row shown that is not later than the first count of the run that showed it. Null: none was shown. */
  readonly discoveredAt: string | null;
  /** Ends before the yesterday of the run that wrote it. */
  readonly days: Coverage;
  /** A digest of the service's address; null matches any. */
  readonly service: string | null;
  /** By which the organization is known again under another API key. */
  readonly witness: Witness | null;
  /** The people without a date that were delivered, and digests of them (null: unknown). Null: still to be read. */
  readonly undated: { readonly rows: number; readonly seen: readonly string[] | null } | null;
  /** The day of the last daily check, which looks for late rows, people without a date and new sources. */
  readonly checked: Day | null;
  /** Null: written by hand, and taken to match. */
  readonly filters: Filters | null;
  /** The digest of the plan of shards that the run was a part of. */
  readonly plan: string | null;
  /** The sources that the key could read, and whose days were read. Null: never asked. */
  readonly sources: readonly string[] | null;
  /** When the run's first count was asked: whoever moved later is found from that day on. */
  readonly asked: string | null;
  readonly full_refresh: FullRefresh | null;
};

/** What a stream's state is before anything was read. */
export const NEW_STATE: DatedState = {
  version: 2,
  discoveredAt: null,
  days: [],
  service: null,
  witness: null,
  undated: null,
  checked: null,
  filters: null,
  plan: null,
  sources: null,
  asked: null,
  full_refresh: null,
};
