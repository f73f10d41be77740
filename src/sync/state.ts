import type { Day } from "../base/time.ts";
import type { Coverage } from "./coverage.ts";

/** The filters of a config, by the names of their settings. A state is valid only for the filters that it was made with. */
export type Filters = { readonly source_slug: string | null; readonly is_user: string };

/** The filters that every row passes. A state that does not name a filter was made without the filter. */
export const NO_FILTERS: Filters = { source_slug: null, is_user: "all" };

/** The service's parameters for the filters. */
const PARAMETERS: Readonly<Record<keyof Filters, string>> = { source_slug: "source", is_user: "is_user" };

type FilterSettings = { readonly sourceSlug: string | null; readonly isUser: string };

export const filtersOf = ({ sourceSlug, isUser }: FilterSettings): Filters => ({
  source_slug: sourceSlug,
  is_user: isUser,
});

export const FILTER_NAMES = Object.keys(NO_FILTERS) as readonly (keyof Filters)[];
const setIn = (filters: Filters) => FILTER_NAMES.filter((name) => filters[name] !== NO_FILTERS[name]);

/** The filters as parameters of a request; empty: every row passes. */
export const queryOf = (filters: Filters): Readonly<Record<string, string>> =>
  Object.fromEntries(setIn(filters).map((name) => [PARAMETERS[name], `${filters[name]}`]));

/** "source_slug crm, is_user true"; empty: every row passes. */
export const filterText = (filters: Filters): string =>
  Array.from(setIn(filters), (name) => `${name} ${filters[name]}`).join(", ");

/** A full refresh with the ids from the catalog. */
type FullRefresh = {
  readonly generation_id: number | null;
  readonly sync_id: number | null;
  readonly done: boolean;
};

/** The state of a stream of rows. Every key is always written, because platforms merge states. */
export type RowState = {
  readonly version: 4;
  /** The newest cursor of a shown row that is not later than the first count of its run; null: no row yet. */
  readonly discoveredAt: string | null;
  readonly days: Coverage;
  /** The number of people without a date at their last reading; null: they must be read. `read`: as in a span. */
  readonly undated: { readonly rows: number; readonly read?: Day } | null;
  /** The UTC day of the last complete daily check. */
  readonly checked: Day | null;
  /** The sources of the last list for which all rows were read; null: the list was never read. */
  readonly sources: readonly string[] | null;
  readonly filters: Filters | null;
  /** Digests of the service's address and of the API key's id. */
  readonly service: string | null;
  readonly key: string | null;
  /** The time of the run's first count. The union of several shards continues from the earliest time. */
  readonly asked: string | null;
  readonly full_refresh: FullRefresh | null;
};

/** The state of a stream before its first reading. */
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
