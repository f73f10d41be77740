import { BodyError, type ConnectorError, DataError, ScrambledError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { addDays, DAY_MS, type Day, dayOf, instant, OLDEST, startOf } from "../base/time.ts";
import type { Status } from "./coverage.ts";
import type { LineBatch, RawLine, UsualNames, Why, WindowRecord } from "./event.ts";
import { numbersText } from "./incomplete.ts";
import type { Planned } from "./plan.ts";
import type { RunRules } from "./prepare.ts";
import { IS_NEW, inGroup, inPass, type KeyDigests } from "./seen-rows.ts";
import type { Batch, Count, Row } from "./service.ts";
import { contentOf, identityOf, Shown } from "./shown.ts";
import type { Filters } from "./state.ts";
import { describe, hasUndated, type Window } from "./window.ts";

/** The result for a window, or for a part of the window. The outcomes of a window cover all its days, oldest first. */
export type Outcome = {
  readonly window: Window;
  readonly record: Omit<WindowRecord, keyof Filters>;
  /** The shown rows of each closed day. */
  readonly days: ReadonlyMap<Day, number>;
  /** The number of people without a date, if the window includes them. */
  readonly undated?: number | undefined;
  /** The newest shown cursor that may become the stream's cursor, as the service writes it. */
  readonly newest?: string | undefined;
  /** For `missing`: whether an attempt reached its end. If no attempt reached its end, the service seems to be down. */
  readonly isRead: boolean;
  /** The number of exports among the attempts. */
  readonly exports: number;
  /** For `missing`: the failure of the last attempt; undefined: the attempt reached its end, and the numbers differ. */
  readonly cause?: ConnectorError;
};

const SEEN = 1;
const BEFORE_COUNT = 2;
const DATED = 4;
const UNDATED = 8;

/**
 * The numbers of distinct keys that one attempt shows, also of suppressed rows. Two kinds of rows do not count: rows that moved from
 * closed days to yesterday or today, and rows without a required key. A row with an unreadable cursor is dated and undated.
 */
class ShownRows {
  distinct = 0;
  dated = 0;
  undated = 0;
  /** Rows that the count must contain. Their cursor is before the count, or more than a day after the count (a wrong date). */
  beforeCount = 0;
  /** Rows that no earlier attempt showed. */
  fresh = 0;
  withoutKey = 0;
}

/**
 * The attempts at a window under one count, and the rows that they show.
 * All numbers count distinct keys, because a repeated row must not replace a lost row. Rows that are not emitted count too.
 */
export class Pass {
  readonly window: Window;
  readonly why: Why;
  readonly rules: RunRules;
  /** The count before the latest attempt, and the count after it; undefined: there was no second count. */
  count: Count;
  after: Count | undefined;
  /** The number of attempts under all counts, and the number of exports among the attempts. */
  passes = 0;
  exports = 0;
  /** The number of distinct keys that the attempts under this count showed together. */
  shown = 0;
  /** Whether rows of the window were shown under any count. */
  readonly wasShown: boolean;
  /** Whether an attempt read all pages, and the counts before and after it are equal. */
  isWalked = false;
  /** The rows of the latest attempt. */
  latest = new ShownRows();
  /** The highest total on a page. */
  total = 0;
  readonly #began: number;
  readonly #shown: Shown;
  readonly #from: number;
  readonly #end: number;
  #group: number | undefined;
  /** Whether the rows that this window showed count for its parts. Then the parts need not show these rows again. */
  #isKept = false;
  #error: ConnectorError | undefined;
  #isRead = false;
  #suppressed = 0;

  /** @param whole the pass over the larger window, if this window is a part of one */
  constructor({ window, why }: Planned, count: Count, rules: RunRules, whole?: Pass) {
    [this.window, this.why, this.count, this.rules] = [window, why, count, rules];
    this.#began = rules.service.now();
    this.#shown = whole === undefined ? new Shown(this.counted) : whole.#shown;
    const isFiltered = window.kind === "closed" || (window.kind === "open" && !window.undated);
    this.#from = isFiltered ? startOf(window.from) : Number.NEGATIVE_INFINITY;
    this.#end = window.kind === "closed" ? startOf(addDays(window.to, 1)) : Number.POSITIVE_INFINITY;
    const days = this.#shown.daysBetween(this.#from, this.#end);
    this.wasShown = days.length > 0;
    const { group } = this.#shown.seen;
    if (whole === undefined || !whole.#isKept || whole.#group !== group) return;
    [this.#group, this.isWalked] = [group, whole.isWalked];
    for (const [, rows] of days) this.shown += rows;
  }

  /** The number of counted rows, also of people without a date. */
  get counted(): number {
    const { rows, undated } = this.count;
    return this.window.kind === "undated" ? undated : rows + undated;
  }

  /** Whether the latest attempt reached its end. */
  get isClean(): boolean {
    return this.#error === undefined;
  }

  /** The reason why the latest attempt proves nothing. */
  get cause(): ConnectorError {
    const counted = this.count.known ? this.counted : null;
    const numbers = numbersText({ counted, shown: this.shown, passes: this.passes }, this.exports);
    return this.#error ?? new BodyError(`Cannot prove ${describe(this.window)} complete: ${numbers}`);
  }

  /** Whether the memory for shown rows is full. A row that arrives twice is then emitted twice. */
  get isFull(): boolean {
    return this.#shown.seen.isFull;
  }

  /** Begins an attempt. The rows of attempts at closed days, or at everything, add up while the count does not change. */
  begin(count: Count): void {
    const { seen } = this.#shown;
    // If more rows arrive than the service counts, the rows may be from an old copy of the data. The copy may contain rows that no
    // longer exist. Later attempts do not show these rows, so the sum begins again.
    const mayLag = this.isClean && count.known && this.latest.distinct > this.count.rows;
    const isSame = count.rows === this.count.rows && !mayLag && !seen.isFull;
    const addsUp = this.window.kind === "closed" || this.window.kind === "all";
    if (!addsUp || !isSame || this.#group !== seen.group) {
      this.#shown.beginGroup();
      this.#countNothing();
    }
    seen.beginPass();
    [this.count, this.after, this.latest] = [count, undefined, new ShownRows()];
    this.passes += 1;
  }

  /** Returns the lines that no attempt at the window, or at the larger window, has emitted before. */
  accept(rows: Batch): LineBatch {
    const isByKey = this.rules.onMissingKey === "reject";
    const keys = this.#shown.seen.digestsOf(rows.map(({ key, raw }) => (isByKey ? key : contentOf(raw))));
    const batch = { lines: [] as RawLine[], names: [] as UsualNames[], suppressed: 0, unreadable: 0 };
    rows.forEach((row, nth) => {
      if (!this.#add(row, keys, nth, batch)) return;
      batch.lines.push(row.raw);
      batch.names.push(row.names);
    });
    return batch;
  }

  /** Ends an attempt that reached its end. @throws BodyError if a row lacked its required key */
  end(): void {
    const { withoutKey } = this.latest;
    const text = `${plural(withoutKey, "row")} arrived without a key. The other rows were read`;
    if (withoutKey > 0) throw new BodyError(`Cannot read ${describe(this.window)}: ${text}`);
    [this.#error, this.#isRead] = [undefined, true];
  }

  /** Ends an attempt that failed. Rows of a damaged body are forgotten, so that the correct rows are emitted. */
  fail(error: ConnectorError): void {
    this.#error = error;
    if (!(error instanceof ScrambledError)) return;
    this.#shown.forget();
    this.#countNothing();
  }

  /** Keeps the shown rows for the parts of the window. @param isSame whether the counts of the parts show that no row moved */
  keep(isSame: boolean): void {
    this.#isKept = isSame && !this.#shown.hasUnplaced && !this.isFull;
  }

  outcome(verdict: Status): Outcome {
    const { window, count, passes, shown } = this;
    const days = new Map<Day, number>();
    for (const [day, rows] of this.#shown.daysBetween(this.#from, this.#end))
      if (rows > 0) days.set(dayOf(day * DAY_MS), rows);
    return {
      ...{ window, days, isRead: this.#isRead, exports: this.exports },
      record: {
        kind: window.kind,
        discovered_from: "from" in window ? window.from : null,
        discovered_to: window.kind === "closed" ? window.to : null,
        counted: count.known ? this.counted : null,
        ...{ verdict, shown, suppressed: this.#suppressed, passes },
        seconds: Math.max(0, this.rules.service.now() - this.#began) / 1_000,
      },
      ...(this.#group === this.#shown.seen.group && { newest: this.#newestOf(days) }),
      ...(hasUndated(window) && { undated: count.known ? count.undated : this.latest.undated }),
      ...(verdict === "missing" && this.#error !== undefined && { cause: this.#error }),
    };
  }

  /** The newest cursor. Only one half contains the newest cursor; another half gets the first moment of its newest day. */
  #newestOf(days: Outcome["days"]): string | undefined {
    const newest = this.#shown.newestBetween(this.#from, this.#end);
    const [day] = [...days.keys()].sort().slice(-1);
    return newest ?? (day !== undefined && this.window.kind === "closed" ? `${day}T00:00:00Z` : undefined);
  }

  #countNothing(): void {
    this.#group = this.#shown.seen.group;
    [this.shown, this.#suppressed] = [0, 0];
  }

  /** Whether the row's line is to be emitted. */
  #add(row: Row, keys: KeyDigests, nth: number, batch: { suppressed: number; unreadable: number }): boolean {
    const { onMissingKey, until, latest } = this.rules;
    const { cursor, isSuppressed = false } = row;
    if (row.key === "" && onMissingKey === "reject") {
      this.latest.withoutKey += 1;
      return false;
    }
    const at = cursor === null ? Number.NaN : instant(cursor);
    if (this.#hasMoved(at)) return false;
    const flags = this.#flagsOf(cursor, at);
    const known = this.#shown.seen.add(keys, nth, this.#identityOf(row, at), flags);
    const isNew = (known & IS_NEW) !== 0;
    this.#tally(flags, known, at);
    if (isNew) this.latest.fresh += 1;
    if (isSuppressed) {
      if (isNew && !(at > until)) batch.suppressed += 1;
      if (!(inGroup(known) & SEEN)) this.#suppressed += 1;
      return false;
    }
    if (flags & DATED && flags & UNDATED && isNew) batch.unreadable += 1;
    if (at > until || (row.key === "" && (onMissingKey === "drop" || row.raw === "{}"))) return false;
    if (at <= latest && at >= OLDEST) this.#shown.addCursor(cursor ?? "", at);
    return isNew;
  }

  /** The moment or content that distinguishes rows of one key. 0: the content is already the key, because companies share keys. */
  #identityOf({ cursor, raw }: Row, at: number): string | number {
    if (this.rules.onMissingKey !== "reject") return 0;
    return Number.isNaN(at) ? contentOf(raw) : identityOf(cursor ?? "", at);
  }

  /**
   * Whether a row has moved from closed days to yesterday or today. The open window reads the moved row.
   * @throws DataError for a row of days that were not requested, because the service then ignores its date filters
   */
  #hasMoved(at: number): boolean {
    if (Number.isNaN(at) || (at >= this.#from && at < this.#end)) return false;
    if (at < this.#from || at < Math.min(this.count.asked, startOf(this.rules.yesterday)))
      throw outside(this.window);
    return true;
  }

  #flagsOf(cursor: string | null, at: number): number {
    if (cursor === null || at < OLDEST) return SEEN | UNDATED;
    if (Number.isNaN(at)) return SEEN | DATED | UNDATED;
    const { asked, answered } = this.count;
    const wasThere = at < asked || at > answered + DAY_MS;
    return wasThere ? SEEN | DATED | BEFORE_COUNT : SEEN | DATED;
  }

  #tally(flags: number, known: number, at: number): void {
    const news = flags & ~inPass(known);
    if (news & SEEN) this.latest.distinct += 1;
    if (news & BEFORE_COUNT) this.latest.beforeCount += 1;
    if (news & DATED) this.latest.dated += 1;
    if (news & UNDATED) this.latest.undated += 1;
    if (flags & UNDATED) this.#shown.hasUnplaced = true;
    if (inGroup(known) & SEEN) return;
    this.shown += 1;
    if (!(flags & DATED)) return;
    // A row with an unreadable cursor counts on the first day of its window.
    this.#shown.addTo(Math.floor((Number.isNaN(at) ? this.#from : at) / DAY_MS));
  }
}

const outside = (window: Window): DataError =>
  new DataError(
    `Cannot trust the service's date filters: a request for ${describe(window)} sent rows of other days. ` +
      "Tell the service's owner. Nothing that is read this way can be proven complete",
  );
