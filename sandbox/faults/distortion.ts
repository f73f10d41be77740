/** The wrong beliefs of the service. Numbers of rows are numbers of fixed members, the same in every request. */
export type Distortion = {
  readonly omitted: number;
  /** Whether lists leave the omitted members out too. */
  readonly omittedFromLists: boolean;
  /** Whether no answer shows the omitted members or the last source. */
  readonly hides: boolean;
  /** How a filter by the first days of the calendar is treated: as no filter, or refused. */
  readonly beginning?: string;
  readonly repeated: number;
  /** The total that the service reports. */
  readonly total: (total: number) => number | null;
  /** The page that is really served for a page. */
  readonly page: (page: number) => number;
  /** Whether the page in the middle lacks half of its rows. */
  readonly shortPage: boolean;
  readonly ignoresFilters: boolean;
  /** Lists show nothing after this place. */
  readonly listEnd: number;
  /** Lists answer 500 where they would show what is behind this place. */
  readonly listDepth: number;
  /** How many seconds the replica is behind that lists and exports come from; totals are of now. */
  readonly lag: number;
  /** Lists order rows whose dates share a span of this many ms at random; 0 keeps their order. */
  readonly shuffleMs: number;
  /** Makes the shuffle of a request another one. */
  readonly shuffle: number;
  /** A row as lists and streams spell it. `size`: how many members the dataset began with. */
  readonly row: (wireText: string, index: number, size: number) => string;
  /** How far the Date header is from the clock that dates the rows. */
  readonly dateMs: number;
};

export const FAITHFUL: Distortion = {
  omitted: 0,
  omittedFromLists: false,
  hides: false,
  repeated: 0,
  total: (total) => total,
  page: (page) => page,
  shortPage: false,
  ignoresFilters: false,
  listEnd: Number.POSITIVE_INFINITY,
  listDepth: Number.POSITIVE_INFINITY,
  lag: 0,
  shuffleMs: 0,
  shuffle: 0,
  row: (wireText) => wireText,
  dateMs: 0,
};

/** `count` of the members 0 to `size` - 1, spread evenly; `phase` in [0, 1) shifts the choice. */
export function spread(size: number, count: number, phase: number): ReadonlySet<number> {
  const wanted = Math.min(size, count);
  return new Set(Array.from({ length: wanted }, (_, nth) => Math.floor(((nth + phase) * size) / wanted)));
}

export const omittedMembers = (size: number, { omitted }: Distortion): ReadonlySet<number> =>
  spread(size, omitted, 0.75);

export const repeatedMembers = (size: number, { repeated }: Distortion): ReadonlySet<number> =>
  spread(size, repeated, 0.25);
