import { DAY_MS } from "../base/time.ts";
import { SeenRows } from "./seen-rows.ts";

/** The rows that the attempts at a window and its parts show, so that none is passed on twice. */
export class Shown {
  readonly seen: SeenRows;
  /** Whether a row has no readable place among the days. */
  hasUnplaced = false;
  /** The newest cursor that may be the stream's, and its moment. */
  #newest: string | undefined;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** Rows by days since 1970. A day whose rows count no more stays, with 0. */
  readonly #days = new Map<number, number>();

  constructor(expectedRows: number) {
    this.seen = new SeenRows(expectedRows);
  }

  /** Begins to count from 0. */
  beginGroup(): void {
    this.seen.beginGroup();
    this.#countNothing();
  }

  /** Forgets rows that may not be what the service sent, so that they are passed on again. */
  forget(): void {
    this.seen.forget();
    this.#countNothing();
  }

  /** Counts a row of a day; a row without a readable cursor may have none. */
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

  /** The days between two moments (epoch ms) that have shown rows, and how many rows count. */
  daysBetween(from: number, end: number): readonly (readonly [day: number, rows: number])[] {
    return [...this.#days].filter(([day]) => day * DAY_MS >= from && day * DAY_MS < end);
  }

  #countNothing(): void {
    for (const day of this.#days.keys()) this.#days.set(day, 0);
    [this.#newest, this.#newestAt, this.hasUnplaced] = [undefined, Number.NEGATIVE_INFINITY, false];
  }
}
