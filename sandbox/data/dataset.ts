import { mix } from "./random.ts";
import { USAGE_SLOTS, type UsageSlot } from "./sources.ts";

/** One member of a dataset as it is now. `time` is when it was last checked (epoch ms), null if unknown. */
export type Row = { readonly index: number; readonly time: number | null; readonly usageSlot: UsageSlot };

/** `from` inclusive, `to` exclusive, in epoch ms; either of them leaves out the undated. */
export type Filter = {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly slots?: readonly boolean[] | undefined;
};

export type Span = { readonly offset?: number; readonly hidden?: ReadonlySet<number> | undefined };

export type DatasetOptions = {
  readonly dated: number;
  readonly undated: number;
  /** The moment before which all dated members were checked. */
  readonly newest: number;
  readonly spanMs: number;
  readonly seed: number;
};

type Change = {
  readonly index: number;
  readonly time: number | null;
  readonly usageSlot: UsageSlot;
  readonly born: number;
};

/** How a filter's rows lie: base rows [low, high) in index order less `excluded`, with `ahead` merged in by time. */
type Layout = {
  readonly filter: Filter;
  readonly low: number;
  readonly high: number;
  readonly excluded: readonly number[];
  readonly ahead: readonly Change[];
};

/**
 * Any number of dated members, newest first, that cost no memory: when a member was checked is a function of its
 * index, so a range of days is a range of indices. Only members that were checked again or arrived later are kept.
 */
export class Dataset {
  readonly #options: DatasetOptions;
  readonly #salt: number;
  readonly #slot: number;
  readonly #changes = new Map<number, Change>();
  readonly #history: Row[] = [];
  #revision = 0;
  #arrivals = 0;

  constructor(options: DatasetOptions) {
    this.#options = options;
    this.#salt = mix(options.seed ^ 0x5bd1e995);
    this.#slot = options.spanMs / Math.max(1, options.dated);
  }

  /** How many dated members there were at first; the identities that faults choose from. */
  get dated(): number {
    return this.#options.dated;
  }

  /** The rows of a replica that lacks what was checked after this moment (epoch ms). */
  until(last: number): Dataset {
    const replica = new Dataset(this.#options);
    for (const { index, time, usageSlot } of this.#history.filter(({ time }) => (time ?? 0) <= last))
      replica.check(index, time, usageSlot);
    return replica;
  }

  count(filter: Filter): number {
    const layout = this.#layout(filter);
    return this.#rank(layout, layout.high) + layout.ahead.length;
  }

  /**
   * The members that match, newest first, the undated last. Each is judged when its turn comes: one that has been
   * checked again in between is shown as it is now, or not at all if it no longer matches.
   */
  *rows(filter: Filter, { offset = 0, hidden }: Span = {}): Generator<Row> {
    const layout = this.#layout(filter, hidden);
    const started = this.#revision;
    let ahead = this.#aheadBefore(layout, offset);
    let index = this.#indexAt(layout, offset - ahead);
    for (; index < layout.high; index++) {
      const time = this.#baseTime(index);
      while (ahead < layout.ahead.length && isNewer(layout.ahead[ahead], time)) {
        yield* this.#current(layout.ahead[ahead++], filter);
      }
      const change = this.#changes.size > 0 ? this.#changes.get(index) : undefined;
      if (hidden?.has(index)) continue;
      if (change === undefined) {
        if (isIn(filter, index % USAGE_SLOTS)) yield { index, time, usageSlot: index % USAGE_SLOTS };
      } else if (change.born > started && matches(filter, change)) yield change;
    }
    while (ahead < layout.ahead.length) yield* this.#current(layout.ahead[ahead++], filter);
  }

  /** Members of the filter's dated rows, spread evenly over them; `phase` in [0, 1) shifts the choice. */
  choose(filter: Filter, count: number, phase: number): Row[] {
    const dated: Filter = filter.from === undefined ? { ...filter, from: Number.NEGATIVE_INFINITY } : filter;
    const total = this.count(dated);
    const wanted = Math.min(count, total);
    const offsets = Array.from({ length: wanted }, (_, nth) => Math.floor(((nth + phase) * total) / wanted));
    return offsets.flatMap((offset) => {
      const next = this.rows(dated, { offset }).next();
      return next.done ? [] : [next.value];
    });
  }

  /** The newest dated members are first; these are the oldest of a filter, the very oldest first. */
  oldest(filter: Filter, count: number): Row[] {
    const dated: Filter = { ...filter, from: filter.from ?? Number.NEGATIVE_INFINITY };
    const total = this.count(dated);
    return [...this.rows(dated, { offset: Math.max(0, total - count) })].reverse();
  }

  /** Members without a date, at most `count`. */
  undated(count: number): Row[] {
    const rows = this.rows({}, { offset: this.count({ from: Number.NEGATIVE_INFINITY }) });
    return [...take(rows, count)];
  }

  /** From now on the member has this time (null: unknown) and this usage slot. */
  check(index: number, time: number | null, usageSlot: UsageSlot): void {
    this.#revision++;
    this.#history.push({ index, time, usageSlot });
    const born = this.#changes.get(index)?.born ?? this.#revision;
    this.#changes.set(index, { index, time, usageSlot, born });
  }

  /** New members come, with this time or without one. */
  arrive(count: number, time: number | null): void {
    const { dated, undated } = this.#options;
    for (let nth = 0; nth < count; nth++) {
      const index = dated + undated + this.#arrivals++;
      this.check(index, time, index % USAGE_SLOTS);
    }
  }

  #baseTime(index: number): number | null {
    const { dated, newest } = this.#options;
    if (index >= dated) return null;
    const jitter = mix(index ^ this.#salt) / 2 ** 32;
    return Math.floor(newest - (index + jitter) * this.#slot);
  }

  /** The first dated index whose base time is before `time`. */
  #firstBefore(time: number): number {
    return bisect(
      0,
      this.#options.dated,
      (index) => (this.#baseTime(index) ?? Number.NEGATIVE_INFINITY) < time,
    );
  }

  #layout(filter: Filter, hidden?: ReadonlySet<number>): Layout {
    const { dated, undated } = this.#options;
    const isDated = filter.from !== undefined || filter.to !== undefined;
    const low = filter.to === undefined ? 0 : this.#firstBefore(filter.to);
    const high = isDated ? this.#firstBefore(filter.from ?? Number.NEGATIVE_INFINITY) : dated + undated;
    const excluded = [...new Set([...this.#changes.keys(), ...(hidden ?? [])])]
      .filter((index) => index >= low && index < high && isIn(filter, index % USAGE_SLOTS))
      .sort((a, b) => a - b);
    const ahead = [...this.#changes.values()]
      .filter((change) => matches(filter, change) && !hidden?.has(change.index))
      .sort((a, b) => later(a.time, b.time) || b.index - a.index);
    return { filter, low, high: Math.max(low, high), excluded, ahead };
  }

  /** How many base rows of the layout lie before an index. */
  #rank({ filter, low, excluded }: Layout, index: number): number {
    const gone = bisect(0, excluded.length, (nth) => (excluded[nth] ?? 0) >= index);
    return countSlots(filter, low, index) - gone;
  }

  /** Where the base row with this rank is. */
  #indexAt(layout: Layout, rank: number): number {
    if (rank <= 0) return layout.low;
    return bisect(layout.low, layout.high, (index) => this.#rank(layout, index) >= rank);
  }

  /** How many of the merged-in rows are before an offset. */
  #aheadBefore(layout: Layout, offset: number): number {
    if (offset === 0) return 0;
    return bisect(0, layout.ahead.length, (nth) => {
      const time = layout.ahead[nth]?.time ?? Number.NEGATIVE_INFINITY;
      const older = Math.min(layout.high, Math.max(layout.low, this.#firstBefore(time)));
      return nth + this.#rank(layout, older) >= offset;
    });
  }

  *#current(snapshot: Change | undefined, filter: Filter): Generator<Row> {
    const change = snapshot && this.#changes.get(snapshot.index);
    if (change !== undefined && matches(filter, change)) yield change;
  }
}

/** Whether a merged-in row is before a base row of that time. */
function isNewer(change: Change | undefined, time: number | null): boolean {
  return change !== undefined && (time === null || (change.time ?? Number.NEGATIVE_INFINITY) > time);
}

const isIn = ({ slots }: Filter, usageSlot: UsageSlot): boolean =>
  slots === undefined || slots[usageSlot] === true;

function matches(filter: Filter, { time, usageSlot }: Change): boolean {
  const { from, to } = filter;
  if (!isIn(filter, usageSlot)) return false;
  if (time === null) return from === undefined && to === undefined;
  return time >= (from ?? Number.NEGATIVE_INFINITY) && time < (to ?? Number.POSITIVE_INFINITY);
}

/** How many indices of [low, high) have a usageSlot that the filter lets through. */
function countSlots({ slots }: Filter, low: number, high: number): number {
  if (slots === undefined) return high - low;
  return slotsBelow(slots, high) - slotsBelow(slots, low);
}

function slotsBelow(slots: readonly boolean[], high: number): number {
  const whole = slots.filter(Boolean).length * Math.floor(high / USAGE_SLOTS);
  return whole + slots.slice(0, high % USAGE_SLOTS).filter(Boolean).length;
}

/** The first number of [low, high) that meets the condition, which then stays true; `high` if none does. */
function bisect(low: number, high: number, holds: (value: number) => boolean): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Compares for newest first; what has no time comes last. */
function later(a: number | null, b: number | null): number {
  if (a === b) return 0;
  return (b ?? Number.NEGATIVE_INFINITY) > (a ?? Number.NEGATIVE_INFINITY) ? 1 : -1;
}

function* take<T>(values: Iterable<T>, count: number): Generator<T> {
  let left = count;
  for (const value of values) {
    if (left-- <= 0) return;
    yield value;
  }
}
