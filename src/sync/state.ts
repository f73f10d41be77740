import type { Day } from "../base/time.ts";
import type { Coverage } from "./coverage.ts";

/** The filters of a config, by the names of their settings. A state that was made with others cannot be used. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** The filters that every row passes. A state that does not name a filter was made without it. */
export const NO_FILTERS: Filters = { source_slug: null, is_user: "all" };

/** The service's parameters for the filters. */
const PARAMETERS: Readonly<Record<keyof Filters, string>> = { source_slug: "source", is_user: "is_user" };

type FilterSettings = { readonly sourceSlug: string | null; readonly isUser: string };

export const filtersOf = ({ sourceSlug, isUser }: FilterSettings): Filters => ({
  ...{ source_slug: sourceSlug, is_user: isUser },
});

export const FILTER_NAMES = Object.keys(NO_FILTERS) as readonly (keyof Filters)[];
const setIn = (filters: Filters) => FILTER_NAMES.filter((name) => filters[name] !== NO_FILTERS[name]);

/** The filters as a request carries them; empty: every row passes. */
export const queryOf = (filters: Filters): Readonly<Record<string, string>> =>
  Object.fromEntries(setIn(filters).map((name) => [PARAMETERS[name], `${filters[name]}`]));

/** "source_slug crm, is_user true"; empty: every row passes. */
export const filterText = (filters: Filters): string =>
  Array.from(setIn(filters), (name) => `${name} ${filters[name]}`).join(", ");

/** A full refresh, and the ids that the catalog gave it. */
type FullRefresh = {
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
  /** The people without a date that were counted when they were last read; null: they must be read. `read`: as of a span. */
  readonly undated: { readonly rows: number; readonly read?: Day } | null;
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
