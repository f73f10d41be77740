import { type Day, dayOf } from "../base/time.ts";
import { KeyedHash } from "../sync/seen-rows.ts";

/** The date of a row. `at`: epoch ms; NaN without a date. `unit`: the precision of its text in ms. */
export type Moment = { readonly at: number; readonly unit: number };

export const NO_MOMENT: Moment = { at: Number.NaN, unit: 1 };

/** A row of a table in a warehouse. */
export type TableRow = { readonly key: string; readonly moment: Moment };

/** Marks of a key: it is in the table, or it is suppressed. */
export const IN_TABLE = 1;
export const SUPPRESSED = 2;
/** The mark of a key that the service showed in a read. @param nth the read, from 1 to 24 */
export const inRead = (nth: number): number => SUPPRESSED << nth;
/** Whether the service showed a key in any read. */
export const isShown = (marks: number): boolean => marks >= inRead(1);

/** Numbers in a slot: the digest of a key (0: empty), its marks, and `at` and `unit` of its moment. */
const WIDTH = 4;
/** The table grows beyond this share of used slots. */
const FULLEST = 0.8;

/** Keys with their dates and marks: digests of 53 bits in a flat hash table, 32 bytes a slot. */
export class KeyTable {
  #cells = new Float64Array(WIDTH * 1_024);
  #size = 0;
  #bytes = Buffer.alloc(0);
  /** The keys of the table, as texts of JSON lists. */
  readonly #keys: Buffer[] = [];
  readonly #hash = new KeyedHash(crypto.getRandomValues(new Uint32Array(6)));

  /** Adds rows of the table. The newest date of a key counts. */
  put(rows: readonly TableRow[]): void {
    const added = rows.filter(({ key, moment: { at, unit } }) => {
      const before = this.mark(key, IN_TABLE);
      if (!Number.isNaN(at) && !(before.at >= at)) this.#cells.set([at, unit], this.#slotOf(key) + 2);
      return (before.marks & IN_TABLE) === 0;
    });
    this.#keys.push(Buffer.from(JSON.stringify(added.map(({ key }) => key))));
  }

  /** Adds marks to a key. @returns its moment, and its earlier marks; 0: the key is new */
  mark(key: string, added = 0): Moment & { readonly marks: number } {
    const slot = this.#slotOf(key);
    const cells = this.#cells;
    const marks = cells[slot + 1] ?? 0;
    cells[slot + 1] = marks | added;
    return { at: cells[slot + 2] ?? 0, unit: cells[slot + 3] ?? 0, marks };
  }

  /** Yields the matching keys of the table, in batches, in the table's order. */
  *keys(fits: (marks: number, at: number) => boolean): Generator<readonly string[]> {
    for (const text of this.#keys) {
      const keys: readonly string[] = JSON.parse(text.toString());
      yield keys.filter((key) => {
        const { marks, at } = this.mark(key);
        return fits(marks, at);
      });
    }
  }

  /** The number of matching keys by day. */
  byDay(fits: (marks: number, at: number) => boolean): Map<Day | "none", number> {
    const days = new Map<Day | "none", number>();
    for (let slot = 0; slot < this.#cells.length; slot += WIDTH) {
      const at = this.#cells[slot + 2] ?? Number.NaN;
      if (!fits(this.#cells[slot + 1] ?? 0, at)) continue;
      const day = Number.isNaN(at) ? "none" : dayOf(at);
      days.set(day, (days.get(day) ?? 0) + 1);
    }
    return days;
  }

  /** The slot of a key. A new key is added. */
  #slotOf(key: string): number {
    if (this.#bytes.length < key.length * 3) this.#bytes = Buffer.alloc(key.length * 6);
    this.#hash.setKey(this.#bytes, 0, this.#bytes.write(key, "utf8"));
    const digest = (this.#hash.high % 0x20_0000) * 0x1_0000_0000 + this.#hash.low || 1;
    const slot = this.#find(digest);
    if (this.#cells[slot] === digest) return slot;
    if (++this.#size > (this.#cells.length / WIDTH) * FULLEST) this.#grow();
    const place = this.#find(digest);
    this.#cells.set([digest, 0, NO_MOMENT.at, NO_MOMENT.unit], place);
    return place;
  }

  /** The slot of a digest, or an empty slot for it. */
  #find(digest: number): number {
    const cells = this.#cells;
    let slot = (digest % (cells.length / WIDTH)) * WIDTH;
    while (cells[slot] !== 0 && cells[slot] !== digest) slot = (slot + WIDTH) % cells.length;
    return slot;
  }

  #grow(): void {
    const old = this.#cells;
    this.#cells = new Float64Array(WIDTH * Math.ceil((old.length / WIDTH) * 1.6));
    for (let from = 0; from < old.length; from += WIDTH) {
      const digest = old[from] ?? 0;
      if (digest === 0) continue;
      const slot = this.#find(digest);
      // Copies each number, because a view for each slot would fill the heap.
      for (let nth = 0; nth < WIDTH; nth++) this.#cells[slot + nth] = old[from + nth] ?? 0;
    }
  }
}
