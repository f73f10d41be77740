import { BodyError, DataError } from "../base/errors.ts";
import { fingerprint, fromLatin1, plural, toLatin1 } from "../base/text.ts";
import { addDays, DAY_MS, type Day, dayOf, instant, OLDEST, startOf } from "../base/time.ts";
import { type LineBatch, NO_FACTS, type RawLine, type UsualNames } from "./event.ts";
import { IS_NEW, inGroup, inPass, type KeyDigests, type SeenRows } from "./seen-rows.ts";
import { type Batch, type Count, type Row, untrusted } from "./service.ts";
import { describe, type Window } from "./window.ts";
import type { FailedAttempt, RunRules, WindowOutcome } from "./window-result.ts";

const SEEN = 1;
const BEFORE_COUNT = 2;
const DATED = 4;
const UNDATED = 8;

/** People without a date are remembered up to this number. */
export const MOST_REMEMBERED = 1_000;

/**
 * One reading of a window. Its numbers count distinct keys, so that no repeated row can stand in for a lost one.
 * Rows that are shown but not passed on count as shown.
 */
export class Pass {
  /**
   * Keys that were there when the count was asked for: their cursor is earlier. In an open window also those dated more
   * than a day ahead, since no clock that is merely slow can have made them.
   */
  beforeCount = 0;
  /** Keys with a cursor. One that no rule can read counts here and as undated, because the service may take it for either. */
  dated = 0;
  undated = 0;
  /** All keys. */
  distinct = 0;
  /** Keys of `beforeCount` or `undated` that no earlier pass of the group has shown. */
  added = 0;
  /** The newest cursor that this pass showed and that can be the stream's, as it was spelt. */
  newest: string | undefined;
  readonly #window: Window;
  readonly #count: Count;
  readonly #seen: SeenRows;
  readonly #rules: RunRules;
  readonly #from: number;
  readonly #end: number;
  readonly #movedFrom: number;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** Days since 1970 of the rows that are counted just now, and how many they are. */
  #day = 0;
  #inDay = 0;
  #rowsByDay = new Map<Day, number>();
  #suppressedByDay = new Map<Day, number>();
  readonly #undated = new Set<string>();
  #withoutKey = 0;
  /** Rows that are new and have a cursor that no rule can read; new ones that are suppressed. */
  #unreadable = 0;
  #suppressed = 0;

  constructor(window: Window, count: Count, seen: SeenRows, rules: RunRules) {
    this.#window = window;
    this.#count = count;
    this.#seen = seen;
    this.#rules = rules;
    const isFiltered = window.kind === "closed" || (window.kind === "open" && !window.undated);
    this.#from = isFiltered ? startOf(window.from) : Number.NEGATIVE_INFINITY;
    this.#end = window.kind === "closed" ? startOf(addDays(window.to, 1)) : Number.POSITIVE_INFINITY;
    this.#movedFrom = Math.min(count.asked, startOf(rules.yesterday));
    seen.beginPass();
    rules.tally?.begin(this, count);
  }

  /** The keys that a count of the window is compared with. */
  get shown(): number {
    return this.#window.kind === "closed" ? this.beforeCount : this.distinct;
  }

  /** Whether it need not be read to its end, because rows of closed days only leave. */
  get hasTooMany(): boolean {
    return this.#window.kind === "closed" && this.beforeCount > this.#count.rows;
  }

  /** Returns the lines that no pass over the same seen rows has emitted before. */
  accept({ rows, facts }: Batch): LineBatch {
    const before = { unreadable: this.#unreadable, suppressed: this.#suppressed };
    const keys = this.#seen.digestsOf(rows.map(({ key, raw }) => (key === "" ? contentOf(raw) : key)));
    const lines: RawLine[] = [];
    const names: UsualNames[] = [];
    rows.forEach((row, nth) => {
      if (!this.#add(row, keys, nth)) return;
      lines.push(row.raw);
      names.push(row.names);
    });
    const [unreadable, suppressed] = [
      this.#unreadable - before.unreadable,
      this.#suppressed - before.suppressed,
    ];
    this.#rules.tally?.add(lines.length, suppressed);
    if (unreadable + suppressed > 0)
      return { lines, names, facts: { ...(facts ?? NO_FACTS), unreadable, suppressed } };
    return facts === undefined ? { lines, names } : { lines, names, facts };
  }

  /**
   * Begins one of several exports of the pass. Returns what to call before it is made again: what was remembered of it is
   * not counted twice, and where too many rows were shown to remember, what it has shown counts for nothing.
   */
  beginPart(): () => void {
    const { beforeCount, dated, undated, distinct } = this;
    const [rows, suppressed] = [new Map(this.rowsByDay), new Map(this.#suppressedByDay)];
    return () => {
      if (!this.#seen.isFull) return;
      this.#seen.forget();
      Object.assign(this, { beforeCount, dated, undated, distinct });
      this.#inDay = 0;
      this.#rowsByDay = new Map(rows);
      this.#suppressedByDay = new Map(suppressed);
    };
  }

  /** How many keys of `beforeCount` each day holds. */
  get rowsByDay(): ReadonlyMap<Day, number> {
    this.#endDay();
    return this.#rowsByDay;
  }

  /** How many of them are suppressed; days without any are left out. */
  get suppressedByDay(): ReadonlyMap<Day, number> {
    return this.#suppressedByDay;
  }

  /** Digests of the rows without a date; undefined if there are too many to remember. */
  get undatedSeen(): readonly string[] | undefined {
    return this.#undated.size > MOST_REMEMBERED ? undefined : [...this.#undated];
  }

  /** @throws BodyError if a row lacked its key and the stream cannot do without */
  refuseMissingKeys(): void {
    if (this.#withoutKey === 0) return;
    throw new BodyError(
      `Cannot read ${describe(this.#window)}: ${plural(this.#withoutKey, "row")} came without a key. The others were read`,
    );
  }

  /** Whether the row's line is to be emitted. */
  #add(row: Row, keys: KeyDigests, nth: number): boolean {
    const { onMissingKey, until, latest } = this.#rules;
    if (row.key === "" && onMissingKey === "reject") {
      this.#withoutKey += 1;
      return false;
    }
    const at = row.cursor === null ? Number.NaN : instant(row.cursor);
    if (this.#hasMoved(at)) return false;
    const isByContent = Number.isNaN(at) || onMissingKey !== "reject";
    const identity = isByContent ? contentOf(row.raw) : identityOf(row.cursor ?? "", at);
    const flags = this.#flagsOf(row, at);
    const known = this.#seen.add(keys, nth, identity, flags);
    this.#tally(flags, inPass(known), inGroup(known), at);
    if (row.isSuppressed === true) return this.#hold(flags & ~inPass(known), known, at);
    if (flags & DATED && flags & UNDATED && known & IS_NEW) this.#unreadable += 1;
    if (at > until || (row.key === "" && (onMissingKey === "drop" || row.raw === "{}"))) return false;
    const isNewest =
      at > this.#newestAt || (at === this.#newestAt && (row.cursor ?? "") > (this.newest ?? ""));
    if (isNewest && at <= latest && at >= OLDEST) {
      this.#newestAt = at;
      this.newest = row.cursor ?? undefined;
    }
    if (at <= latest && row.key !== "") this.#rules.newestKeys.see(row.key, at);
    const isDelivered = (flags & UNDATED) !== 0 && this.#isDelivered(undatedDigest(row.key, `${identity}`));
    return (known & IS_NEW) !== 0 && !isDelivered;
  }

  /** A suppressed row counts as shown, and leaves no other trace. @param news its flags that the pass had not seen of its key */
  #hold(news: number, known: number, at: number): false {
    if (known & IS_NEW && !(at > this.#rules.until)) this.#suppressed += 1;
    if (news & BEFORE_COUNT) {
      const day = dayOf(Number.isNaN(at) ? this.#from : at);
      this.#suppressedByDay.set(day, (this.#suppressedByDay.get(day) ?? 0) + 1);
    }
    return false;
  }

  /** Remembers a row without a date. Returns whether an earlier run has delivered it just as it is. */
  #isDelivered(digest: string): boolean {
    const { undatedSeen } = this.#rules;
    if (this.#window.kind === "closed") return false;
    if (this.#undated.size <= MOST_REMEMBERED || undatedSeen.size > 0) this.#undated.add(digest);
    return this.#window.kind === "undated" && undatedSeen.has(digest);
  }

  /**
   * Whether the row has left the days of a closed window for yesterday or today: the open window brings it.
   * @throws DataError for a row of other days, which only a service that does not honour its filters shows
   */
  #hasMoved(at: number): boolean {
    if (Number.isNaN(at) || (at >= this.#from && at < this.#end)) return false;
    if (at < this.#from || at < this.#movedFrom) throw outside(this.#window);
    return true;
  }

  #flagsOf({ cursor }: Row, at: number): number {
    const isClosed = this.#window.kind === "closed";
    if (cursor === null || at < OLDEST) return SEEN | UNDATED;
    if (Number.isNaN(at)) {
      return SEEN | DATED | UNDATED | (isClosed ? BEFORE_COUNT : 0);
    }
    const { asked, answered } = this.#count;
    const wasThere = at < asked || (!isClosed && at > answered + DAY_MS);
    return wasThere ? SEEN | DATED | BEFORE_COUNT : SEEN | DATED;
  }

  #tally(flags: number, had: number, hadInGroup: number, at: number): void {
    const news = flags & ~had;
    if (news & SEEN) this.distinct += 1;
    if (news & BEFORE_COUNT) {
      this.beforeCount += 1;
      const day = Math.floor((Number.isNaN(at) ? this.#from : at) / DAY_MS);
      if (day !== this.#day) this.#endDay(day);
      this.#inDay += 1;
    }
    if (news & DATED) this.dated += 1;
    if (news & UNDATED) this.undated += 1;
    const settled = BEFORE_COUNT | UNDATED;
    if (news & settled && !(hadInGroup & settled)) this.added += 1;
  }

  /** Neighbours share their day, so the map is asked once for each run of them. */
  #endDay(next = this.#day): void {
    if (this.#inDay > 0) {
      const day = dayOf(this.#day * DAY_MS);
      this.#rowsByDay.set(day, (this.#rowsByDay.get(day) ?? 0) + this.#inDay);
    }
    this.#day = next;
    this.#inDay = 0;
  }
}

/** The moment of a cursor in ms, or a text that is finer where the cursor is. */
function identityOf(cursor: string, at: number): number | string {
  if (cursor.length === 24 && cursor.charCodeAt(23) === 90) return at;
  const finer = /[.,]\d{3}(\d*[1-9])0*(?:\D|$)/.exec(cursor)?.[1];
  // An epoch number that says no more than the millisecond, in any unit.
  if ([at / 1_000, at, at * 1_000, at * 1_000_000].some((number) => String(number) === cursor)) return at;
  if (/^-?\d+(?:\.\d+)?$/.test(cursor)) return cursor;
  return finer === undefined ? at : `${at}.${finer}`;
}

/** Stands in the state for a row without a date that was delivered. @param key its JSON in latin1 */
export const undatedDigest = (key: string, content: string): string => fingerprint(`${key} ${content}`);

/** A row's content with its spaces and escapes resolved, however an endpoint spelt it. */
export function contentOf(raw: RawLine): string {
  if (!raw.includes("\\u")) return JSON.stringify(JSON.parse(raw));
  return toLatin1(JSON.stringify(JSON.parse(fromLatin1(raw))));
}

function outside(window: Window): DataError {
  return new DataError(
    `Cannot trust the service's date filters: a request for ${describe(window)} brought rows of other days. ` +
      "Tell the service's owner. Nothing that is read this way can be proven complete",
  );
}

/** `short`: a row is lacking, or has left. `too many`: the totals are not what they say. `split`: at yesterday, where closed days end. */
export type Verdict = "proven" | "short" | "too many" | "split";

/**
 * Whether a clean pass shows all that was counted before it. Where days are closed the count must be met exactly, because
 * rows only leave them. From yesterday on rows arrive while they are counted, so there it is a lower bound. An open window
 * that also holds closed days is split as soon as it is not proven.
 */
export function judge(window: Window, { yesterday }: RunRules, count: Count, pass: Pass): Verdict {
  switch (window.kind) {
    case "closed":
    case "all":
      if (pass.shown === count.rows) return "proven";
      return pass.shown < count.rows ? "short" : "too many";
    case "undated":
      return pass.undated >= count.undated ? "proven" : "short";
    case "open": {
      const hasUndated = pass.undated >= count.undated;
      if (window.from >= yesterday) return hasUndated && pass.dated >= count.rows ? "proven" : "short";
      // More of them than were counted: newcomers, or totals that are too low.
      const hidesUndated = pass.distinct - pass.dated > count.undated;
      return hasUndated && !hidesUndated && pass.beforeCount === count.rows ? "proven" : "split";
    }
  }
}

/** The outcome of a window that a pass has proven. */
export function provenBy(window: Window, pass: Pass, count: Count): WindowOutcome {
  const bringsUndated = window.kind === "open" && window.undated;
  return {
    ...{ window, kind: "proven", newest: pass.newest },
    // Walks that are proven together are not known one by one.
    ...(count.known &&
      pass.beforeCount === count.rows && {
        rowsByDay: pass.rowsByDay,
        suppressedByDay: pass.suppressedByDay,
      }),
    ...(bringsUndated && {
      undatedRows: count.known ? count.undated : pass.undated,
      undatedSeen: pass.undatedSeen,
    }),
  };
}

/**
 * Whether a stream whose key may be shared, as a domain by two companies, has shown as many different rows as were counted,
 * the very same in two passes; says so in a warning.
 */
export function isProvenByRows(
  window: Window,
  rows: number,
  seen: SeenRows,
  { onMissingKey, api }: RunRules,
): boolean {
  if (onMissingKey === "reject" || !seen.isSameTwice(rows)) return false;
  const text =
    `Some of the ${plural(rows, "row")} of ${describe(window)} share their key with another: two passes showed the same ` +
    "different rows, as many as the service counts. A destination that merges by key keeps one of each";
  api.notify({ kind: "log", level: "warn", text });
  return true;
}

/** What a pass showed beside what was counted before it and after it: equal for passes that fell short alike. */
export const numbersOf = (shown: number, before: Count, after = before): string =>
  [shown, before.rows, after.rows].join();

/** Whether all attempts showed the same, under the same counts. */
export const isAlike = ([first, ...others]: readonly FailedAttempt[]): boolean =>
  first?.numbers !== undefined && others.every(({ numbers }) => numbers === first.numbers);

/** More rows were shown than the counts before and after them say. */
export function contradiction(window: Window, shown: number, before: Count, after: Count): DataError {
  const shows = `${describe(window)} shows ${plural(shown, "row")}`;
  return untrusted(`${shows}, the counts before and after it say ${before.rows} and ${after.rows}`);
}

/**
 * Totals that contradicted the rows in each attempt, by the same numbers, are wrong. Others say that counts and rows are of
 * different moments, as where a replica lags.
 * @throws DataError
 */
export function refuseContradiction([first, ...others]: readonly FailedAttempt[]): void {
  if (!(first?.cause instanceof DataError)) return;
  const isSame = ({ cause, numbers }: FailedAttempt): boolean =>
    cause instanceof DataError && numbers === first.numbers;
  if (others.every(isSame)) throw first.cause;
}
