/** How faults bend what a request gets to see. Numbers of rows are numbers of fixed members, the same every time. */
export type View = {
  readonly omitted: number;
  /** Whether lists leave the omitted members out too. */
  readonly omittedFromLists: boolean;
  readonly repeated: number;
  /** What the service says a total is. */
  readonly total: (total: number) => number | null;
  /** The page that is really served for a page. */
  readonly page: (page: number) => number;
  /** Whether the page in the middle lacks half of its rows. */
  readonly shortPage: boolean;
  readonly ignoresFilters: boolean;
};

export const FAITHFUL: View = {
  omitted: 0,
  omittedFromLists: false,
  repeated: 0,
  total: (total) => total,
  page: (page) => page,
  shortPage: false,
  ignoresFilters: false,
};

/** `count` of the members 0 to `size` - 1, spread evenly; `phase` in [0, 1) shifts the choice. */
export function spread(size: number, count: number, phase: number): ReadonlySet<number> {
  const wanted = Math.min(size, count);
  return new Set(Array.from({ length: wanted }, (_, nth) => Math.floor(((nth + phase) * size) / wanted)));
}

export const omittedMembers = (size: number, { omitted }: View): ReadonlySet<number> =>
  spread(size, omitted, 0.75);

export const repeatedMembers = (size: number, { repeated }: View): ReadonlySet<number> =>
  spread(size, repeated, 0.25);
