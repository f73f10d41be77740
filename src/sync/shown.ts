import { fromLatin1, toLatin1 } from "../base/text.ts";
import { DAY_MS } from "../base/time.ts";
import type { RawLine } from "./event.ts";
import { SeenRows } from "./seen-rows.ts";

/** The rows that the attempts at a window and its parts show, so that no row is emitted twice. */
export class Shown {
  readonly seen: SeenRows;
  /** Whether a row belongs to no known day. */
  hasUnplaced = false;
  /** The newest cursor that may become the stream's cursor, and its moment (epoch ms). */
  #newest: string | undefined;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** The number of rows of each day (days since 1970). A new group sets all numbers to 0 and removes no day. */
  readonly #days = new Map<number, number>();

  constructor(expectedRows: number) {
    this.seen = new SeenRows(expectedRows);
  }

  /** Begins to count from 0. */
  beginGroup(): void {
    this.seen.beginGroup();
    this.#countNothing();
  }

  /** Forgets all rows after a damaged body, so that the correct rows are emitted. */
  forget(): void {
    this.seen.forget();
    this.#countNothing();
  }

  /** Counts a row of a day. The day is infinite for a row without a readable cursor in a window without a beginning. */
  addTo(day: number): void {
    if (Number.isFinite(day)) this.#days.set(day, (this.#days.get(day) ?? 0) + 1);
  }

  /** Keeps the cursor if it is the newest. */
  addCursor(cursor: string, at: number): void {
    if (at < this.#newestAt || (at === this.#newestAt && cursor <= (this.#newest ?? ""))) return;
    [this.#newest, this.#newestAt] = [cursor, at];
  }

  /** The newest cursor if it is between two moments. */
  newestBetween(from: number, end: number): string | undefined {
    return this.#newestAt >= from && this.#newestAt < end ? this.#newest : undefined;
  }

  /** The days between two moments (epoch ms) that have shown rows, with their current numbers of rows. */
  daysBetween(from: number, end: number): readonly (readonly [day: number, rows: number])[] {
    return [...this.#days].filter(([day]) => day * DAY_MS >= from && day * DAY_MS < end);
  }

  #countNothing(): void {
    for (const day of this.#days.keys()) this.#days.set(day, 0);
    [this.#newest, this.#newestAt, this.hasUnplaced] = [undefined, Number.NEGATIVE_INFINITY, false];
  }
}

/** The moment of a cursor in ms, or a text if the cursor is more precise. */
export function identityOf(cursor: string, at: number): number | string {
  if (cursor.length === 24 && cursor.charCodeAt(23) === 90) return at;
  const finer = /[.,]\d{3}(\d*[1-9])0*(?:\D|$)/.exec(cursor)?.[1];
  // The cursor is an epoch number (in any unit) that is not more precise than a millisecond.
  if ([at / 1_000, at, at * 1_000, at * 1_000_000].some((number) => String(number) === cursor)) return at;
  if (/^-?\d+(?:\.\d+)?$/.test(cursor)) return cursor;
  return finer === undefined ? at : `${at}.${finer}`;
}

/** The content of a row without the spaces and escapes that an endpoint chose. */
export function contentOf(raw: RawLine): string {
  if (!raw.includes("\\u")) return JSON.stringify(JSON.parse(raw));
  return toLatin1(JSON.stringify(JSON.parse(fromLatin1(raw))));
}
