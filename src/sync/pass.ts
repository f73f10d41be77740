import { BodyError, DataError } from "../base/errors.ts";
import { fromLatin1, plural, toLatin1 } from "../base/text.ts";
import { addDays, DAY_MS, type Day, dayOf, instant, OLDEST, startOf } from "../base/time.ts";
import { type LineBatch, NO_FACTS, type RawLine, type UsualNames } from "./event.ts";
import type { Outcome, RunRules } from "./outcome.ts";
import { IS_NEW, inGroup, inPass, type KeyDigests, type SeenRows } from "./seen-rows.ts";
import type { Batch, Count, Row } from "./service.ts";
import { type ClosedWindow, describe, type Window } from "./window.ts";

const SEEN = 1;
const BEFORE_COUNT = 2;
const DATED = 4;
const UNDATED = 8;

/** The rows of a window that its parts need not show again, by days since 1970. `group`: the seen rows' own, while it lasts. */
export type Kept = {
  readonly days: ReadonlyMap<number, number>;
  readonly newest: string | undefined;
  readonly group: number | undefined;
};

/**
 * The attempts at a window under one count, and what they show. Numbers count distinct keys, so that no repeated row can
 * replace a lost one. Rows that are shown but not passed on count too.
 */
export class Pass {
  readonly window: Window;
  /** The count that the attempts are compared with. */
  count: Count;
  /** The number of attempts, under all counts. */
  passes = 0;
  /** Keys that the attempts under this count showed together. */
  shown = 0;
  /** Keys of this attempt, and those of them with a cursor. An unreadable cursor counts as dated and as undated. */
  distinct = 0;
  dated = 0;
  undated = 0;
  /** Keys of this attempt with a cursor before the count, or more than a day after it: no slow clock wrote such a one. */
  beforeCount = 0;
  /** Rows of this attempt that no attempt before it showed. */
  fresh = 0;
  /** The most rows that a page says there are. */
  total = 0;
  /** Shown rows without a readable place among the days. */
  hasUnreadable = false;
  readonly #seen: SeenRows;
  readonly #rules: RunRules;
  readonly #from: number;
  readonly #end: number;
  #movedFrom = 0;
  #suppressed = 0;
  #group: number | undefined;
  /** The shown rows by days since 1970, without those of the current day. */
  #days = new Map<number, number>();
  #day = Number.NaN;
  #inDay = 0;
  /** The newest cursor that may be the stream's, and its moment. */
  #newest: string | undefined;
  #newestAt = Number.NEGATIVE_INFINITY;
  #withoutKey = 0;
  #newUnreadable = 0;
  #newSuppressed = 0;

  constructor(window: Window, count: Count, rules: RunRules, seen: SeenRows, kept?: Kept) {
    [this.window, this.count, this.#rules, this.#seen] = [window, count, rules, seen];
    const isFiltered = window.kind === "closed" || (window.kind === "open" && !window.undated);
    this.#from = isFiltered ? startOf(window.from) : Number.NEGATIVE_INFINITY;
    this.#end = window.kind === "closed" ? startOf(addDays(window.to, 1)) : Number.POSITIVE_INFINITY;
    if (kept === undefined || kept.group !== seen.group || window.kind !== "closed") return;
    const newestAt = instant(kept.newest ?? "");
    if (newestAt >= this.#from && newestAt < this.#end)
      [this.#newest, this.#newestAt] = [kept.newest, newestAt];
    this.#group = kept.group;
    this.#days = new Map([...kept.days].filter(([day]) => isIn(window, day)));
    for (const rows of this.#days.values()) this.shown += rows;
  }

  /**
   * Begins an attempt. Attempts at closed days, or at everything, add up while their count stays the same.
   * @param afterEnd whether the attempt before came to its end. If it showed more than was counted, it delivered all, and
   *   may have read a copy that lags.
   */
  begin(count: Count, afterEnd: boolean): void {
    const mayLag = afterEnd && count.known && this.distinct > this.count.rows;
    const isSame = count.rows === this.count.rows && !mayLag && !this.#seen.isFull;
    const addsUp = this.window.kind === "closed" || this.window.kind === "all";
    if (!addsUp || !isSame || this.#group !== this.#seen.group) {
      this.#seen.beginGroup();
      this.#forgetNumbers();
    }
    this.#seen.beginPass();
    this.count = count;
    this.#movedFrom = Math.min(count.asked, startOf(this.#rules.yesterday));
    this.passes += 1;
    [this.distinct, this.dated, this.undated, this.beforeCount, this.fresh] = [0, 0, 0, 0, 0];
    this.#withoutKey = 0;
  }

  /** Returns the lines that no pass over the same seen rows has emitted before. */
  accept({ rows, facts }: Batch): LineBatch {
    [this.#newUnreadable, this.#newSuppressed] = [0, 0];
    const isByKey = this.#rules.onMissingKey === "reject";
    const keys = this.#seen.digestsOf(rows.map(({ key, raw }) => (isByKey ? key : contentOf(raw))));
    const lines: RawLine[] = [];
    const names: UsualNames[] = [];
    rows.forEach((row, nth) => {
      if (!this.#add(row, keys, nth)) return;
      lines.push(row.raw);
      names.push(row.names);
    });
    const [unreadable, suppressed] = [this.#newUnreadable, this.#newSuppressed];
    if (unreadable + suppressed > 0)
      return { lines, names, facts: { ...(facts ?? NO_FACTS), unreadable, suppressed } };
    return facts === undefined ? { lines, names } : { lines, names, facts };
  }

  /** Whether the rows that were kept, or shown, still count. */
  get isKept(): boolean {
    return this.#group === this.#seen.group;
  }

  /** Forgets rows that may not be what the service sent, so that they are passed on again. */
  forget(): void {
    this.#seen.forget();
    this.#forgetNumbers();
  }

  /** Keeps the shown rows for the parts of the window. @param isSame whether the parts' counts add up to the window's */
  keep(isSame: boolean): Kept {
    this.#beginDay(Number.NaN);
    return {
      ...{ days: this.#days, newest: this.#newest },
      group: isSame && !this.hasUnreadable && !this.#seen.isFull ? this.#group : undefined,
    };
  }

  /** The part of an outcome that says what was shown. */
  get facts(): Pick<Outcome, "window" | "rows" | "suppressed" | "days" | "newest" | "counted" | "passes"> {
    const { window, count, passes } = this;
    this.#beginDay(Number.NaN);
    const days = new Map<Day, number>();
    for (const [number, rows] of this.#days) {
      const day = dayOf(number * DAY_MS);
      if (rows > 0 && day < this.#rules.yesterday) days.set(day, rows);
    }
    const [rows, counted] =
      window.kind === "undated" ? [this.undated, count.undated] : [this.shown, count.rows + count.undated];
    return {
      ...{ window, rows, suppressed: this.#suppressed, days, newest: this.#newest, passes },
      counted: count.known ? counted : null,
    };
  }

  /** Whether rows are passed on without being remembered. */
  get isFull(): boolean {
    return this.#seen.isFull;
  }

  /** @throws BodyError if a row lacked its key and the stream cannot do without */
  refuseMissingKeys(): void {
    if (this.#withoutKey === 0) return;
    throw new BodyError(
      `Cannot read ${describe(this.window)}: ${plural(this.#withoutKey, "row")} came without a key. The others were read`,
    );
  }

  #forgetNumbers(): void {
    this.#group = this.#seen.group;
    this.#days = new Map();
    [this.#day, this.#inDay] = [Number.NaN, 0];
    [this.#newest, this.#newestAt] = [undefined, Number.NEGATIVE_INFINITY];
    [this.shown, this.#suppressed] = [0, 0];
    this.hasUnreadable = false;
  }

  /** Whether the row's line is to be emitted. */
  #add(row: Row, keys: KeyDigests, nth: number): boolean {
    const { onMissingKey, until, latest } = this.#rules;
    const { cursor, isSuppressed = false } = row;
    if (row.key === "" && onMissingKey === "reject") {
      this.#withoutKey += 1;
      return false;
    }
    const at = cursor === null ? Number.NaN : instant(cursor);
    if (this.#hasMoved(at)) return false;
    const flags = this.#flagsOf(cursor, at);
    const known = this.#seen.add(keys, nth, this.#identityOf(row, at), flags);
    const isNew = (known & IS_NEW) !== 0;
    this.#tally(flags, known, at);
    if (isNew) this.fresh += 1;
    if (isSuppressed) {
      if (isNew && !(at > until)) this.#newSuppressed += 1;
      if (!(inGroup(known) & SEEN)) this.#suppressed += 1;
      return false;
    }
    if (flags & DATED && flags & UNDATED && isNew) this.#newUnreadable += 1;
    if (at > until || (row.key === "" && (onMissingKey === "drop" || row.raw === "{}"))) return false;
    const isNewest = at > this.#newestAt || (at === this.#newestAt && (cursor ?? "") > (this.#newest ?? ""));
    if (isNewest && at <= latest && at >= OLDEST) [this.#newestAt, this.#newest] = [at, cursor ?? undefined];
    return isNew;
  }

  /** The moment, or the content, distinguishes the rows of one key. Two companies may share a key, so their content is their key. */
  #identityOf({ cursor, raw }: Row, at: number): string | number {
    if (this.#rules.onMissingKey !== "reject") return 0;
    return Number.isNaN(at) ? contentOf(raw) : identityOf(cursor ?? "", at);
  }

  /**
   * Whether the row has left the days of a closed window for yesterday or today: the open window reads it.
   * @throws DataError for a row of other days, which only a service that does not honour its filters shows
   */
  #hasMoved(at: number): boolean {
    if (Number.isNaN(at) || (at >= this.#from && at < this.#end)) return false;
    if (at < this.#from || at < this.#movedFrom) throw outside(this.window);
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
    if (news & SEEN) this.distinct += 1;
    if (news & BEFORE_COUNT) this.beforeCount += 1;
    if (news & DATED) this.dated += 1;
    if (news & UNDATED) this.undated += 1;
    if (flags & UNDATED && flags & DATED) this.hasUnreadable = true;
    if (inGroup(known) & SEEN) return;
    this.shown += 1;
    if (!(flags & DATED)) return;
    // A closed window's row with an unreadable cursor counts on its first day.
    const day = Math.floor((Number.isNaN(at) ? this.#from : at) / DAY_MS);
    if (day !== this.#day) this.#beginDay(day);
    this.#inDay += 1;
  }

  /** Neighbours share their day, so that the map is asked once for each run of them. */
  #beginDay(day: number): void {
    if (this.#inDay > 0 && Number.isFinite(this.#day))
      this.#days.set(this.#day, (this.#days.get(this.#day) ?? 0) + this.#inDay);
    [this.#day, this.#inDay] = [day, 0];
  }
}

const isIn = ({ from, to }: ClosedWindow, day: number): boolean =>
  day * DAY_MS >= startOf(from) && day * DAY_MS <= startOf(to);

/** Whether rows of a window's days were shown before it was counted. */
export const wereShown = (window: Window, kept: Kept | undefined): boolean =>
  window.kind === "closed" && [...(kept?.days ?? [])].some(([day, rows]) => rows > 0 && isIn(window, day));

/** The moment of a cursor in ms, or a text that is finer where the cursor is. */
function identityOf(cursor: string, at: number): number | string {
  if (cursor.length === 24 && cursor.charCodeAt(23) === 90) return at;
  const finer = /[.,]\d{3}(\d*[1-9])0*(?:\D|$)/.exec(cursor)?.[1];
  // An epoch number that says no more than the millisecond, in any unit.
  if ([at / 1_000, at, at * 1_000, at * 1_000_000].some((number) => String(number) === cursor)) return at;
  if (/^-?\d+(?:\.\d+)?$/.test(cursor)) return cursor;
  return finer === undefined ? at : `${at}.${finer}`;
}

/** A row's content without the spaces and escapes that an endpoint chose. */
function contentOf(raw: RawLine): string {
  if (!raw.includes("\\u")) return JSON.stringify(JSON.parse(raw));
  return toLatin1(JSON.stringify(JSON.parse(fromLatin1(raw))));
}

function outside(window: Window): DataError {
  return new DataError(
    `Cannot trust the service's date filters: a request for ${describe(window)} brought rows of other days. ` +
      "Tell the service's owner. Nothing that is read this way can be proven complete",
  );
}

/**
 * Judges the latest attempt of a pass. Rows only leave closed days, so that the count must be met exactly there. From yesterday
 * on rows arrive while they are read, so that the count is a lower bound.
 * @param after the second count; undefined: it was not asked for
 * @param isClean whether the attempt came to its end
 */
export function judge(
  pass: Pass,
  after: Count | undefined,
  isClean: boolean,
  yesterday: Day,
): Outcome["kind"] | "failed" {
  const { window, count, shown, distinct, dated } = pass;
  if (window.kind === "open") {
    const isExact =
      pass.beforeCount === count.rows && pass.undated >= count.undated && distinct - dated <= count.undated;
    const isEnough =
      window.from < yesterday ? isExact : dated >= Math.min(count.rows, after?.rows ?? count.rows);
    return isClean && isEnough ? "proven" : "failed";
  }
  if (!count.known) return isClean && shown >= pass.total ? "proven" : "failed";
  if (shown === count.rows) return "proven";
  if (after === undefined) return "failed";
  if (shown > count.rows) return shown === after.rows ? "proven" : "failed";
  return isClean && distinct >= after.rows ? "again" : "failed";
}
