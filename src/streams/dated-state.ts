import type { Day } from "../time.ts";
import type { DayRange } from "./coverage.ts";

/** What a state was made under; another config needs another state. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** A full refresh on its way, or one that is done, and the ids that the catalog gave it. */
export type FullRefresh = {
  readonly generation_id: number | null;
  readonly sync_id: number | null;
  readonly done: boolean;
};

/** A part of a plan for several machines: which, how far, and when its first count was asked and its last window ended. */
export type Shard = {
  readonly plan: string;
  readonly index: number;
  readonly done: boolean;
  readonly asked: string | null;
  readonly ended: string | null;
};

/** The state of a dated stream, as it is written. Every key is written every time: platforms merge states. */
export type DatedState = {
  readonly version: 1;
  /** Everything up to here has been delivered, save `missing_days`. Null: nothing yet. */
  readonly discoveredAt: string | null;
  /** Days that could not be proven complete. */
  readonly missing_days: readonly Day[];
  /** Null: written by hand, and taken to match. */
  readonly filters: Filters | null;
  /** The first day that is covered; null: the beginning. */
  readonly from: Day | null;
  readonly undated: "pending" | "done";
  /** The day on which people without a date were last counted; null: never. */
  readonly undated_checked: Day | null;
  /** How many people without a date there were then. */
  readonly undated_rows: number;
  /** Ranges that people left while they were read: the next run proves them. */
  readonly recheck: readonly DayRange[];
  /** Days before `from` that have been read since an earlier start was asked for. */
  readonly gap: { readonly from: Day | null; readonly to: Day } | null;
  readonly shard: Shard | null;
  readonly full_refresh: FullRefresh | null;
};

/** What a stream's state is before anything was read. */
export const NEW_STATE: DatedState = {
  version: 1,
  discoveredAt: null,
  missing_days: [],
  filters: null,
  from: null,
  undated: "pending",
  undated_checked: null,
  undated_rows: 0,
  recheck: [],
  gap: null,
  shard: null,
  full_refresh: null,
};
