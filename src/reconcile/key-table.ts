import { type Day, dayOf } from "../base/time.ts";
import { KeyedHash } from "../sync/seen-rows.ts";

/** The moment of a row's cursor. `at`: epoch ms; NaN for none. `unit`: how many ms its spelling tells apart. */
export type Moment = { readonly at: number; readonly unit: number };

export const NO_MOMENT: Moment = { at: Number.NaN, unit: 1 };

/** The service showed a key as a text or as a number; the row has left its day; it is suppressed; a list names it. */
export const AS_TEXT = 1;
export const AS_NUMBER = 2;
export const MOVED = 4;
export const HELD = 8;
export const NAMED = 16;
export const SHOWN = AS_TEXT | AS_NUMBER;

const FULLEST = 0.8;
const WORDS = 3;
/** Slots of a new table. */
const FIRST_SLOTS = 1024;

/**
 * The keys of a table, each with its newest cursor and its marks: 96-bit digests in one open-addressed flat table, 25 bytes
 * a slot. Digests are seeded at random, so that nobody can craft two keys that collide.
 */
export class KeyTable {
  size = 0;
  #words = new Uint32Array(FIRST_SLOTS * WORDS);
  #at = new Float64Array(FIRST_SLOTS);
  #units = new Uint32Array(FIRST_SLOTS);
  #marks = new Uint8Array(FIRST_SLOTS);
  #bytes = Buffer.alloc(0);
  readonly #hash = new KeyedHash(crypto.getRandomValues(new Uint32Array(6)));

  /** Of a key that comes twice the newest cursor counts. */
  put(key: string, { at, unit }: Moment): void {
    const digest = this.#digestOf(key);
    const slot = this.#slotOf(digest);
    const isNew = !this.#isTaken(slot);
    const held = this.#at[slot] ?? 0;
    if (!isNew && (held >= at || Number.isNaN(at))) return;
    this.#words.set(digest, slot * WORDS);
    this.#at[slot] = at;
    this.#units[slot] = unit;
    if (isNew && ++this.size > this.#at.length * FULLEST) this.#grow();
  }

  /** Adds marks to a key, and returns its cursor and all of its marks; undefined if the table does not have it. */
  mark(key: string, added = 0): (Moment & { readonly marks: number }) | undefined {
    const slot = this.#slotOf(this.#digestOf(key));
    if (!this.#isTaken(slot)) return undefined;
    const marks = (this.#marks[slot] ?? 0) | added;
    this.#marks[slot] = marks;
    return { at: this.#at[slot] ?? Number.NaN, unit: this.#units[slot] ?? 1, marks };
  }

  /** How many of the keys that are asked for have their cursor on each day; "none": have no cursor. */
  byDay(isAsked: (marks: number) => boolean): Map<Day | "none", number> {
    const days = new Map<Day | "none", number>();
    for (const [slot, at] of this.#at.entries()) {
      if (!this.#isTaken(slot) || !isAsked(this.#marks[slot] ?? 0)) continue;
      const day = Number.isNaN(at) ? "none" : dayOf(at);
      days.set(day, (days.get(day) ?? 0) + 1);
    }
    return days;
  }

  /** The newest cursor, epoch ms; -Infinity: there is none. */
  get newest(): number {
    return this.#at.reduce(
      (newest, at, slot) => (this.#isTaken(slot) && at > newest ? at : newest),
      -Infinity,
    );
  }

  #isTaken(slot: number): boolean {
    return this.#words[slot * WORDS] !== 0;
  }

  #digestOf(key: string): readonly [number, number, number] {
    if (this.#bytes.length < key.length * 3) this.#bytes = Buffer.alloc(key.length * 6);
    const length = this.#bytes.write(key, "utf8");
    this.#hash.setKey(this.#bytes, 0, length);
    const { high, low } = this.#hash;
    return [high || 1, low, this.#hash.ofBytes(this.#bytes, length)];
  }

  /** Where a digest stands, or is to stand. */
  #slotOf([high, low, third]: readonly [number, number, number]): number {
    const [words, capacity] = [this.#words, this.#at.length];
    let slot = Math.floor((high * capacity) / 0x1_0000_0000);
    for (let at = slot * WORDS; words[at] !== 0; at = slot * WORDS) {
      if (words[at] === high && words[at + 1] === low && words[at + 2] === third) break;
      slot = slot + 1 === capacity ? 0 : slot + 1;
    }
    return slot;
  }

  #grow(): void {
    const [words, at, units, marks] = [this.#words, this.#at, this.#units, this.#marks];
    const capacity = Math.ceil(at.length * 1.6);
    this.#words = new Uint32Array(capacity * WORDS);
    this.#at = new Float64Array(capacity);
    this.#units = new Uint32Array(capacity);
    this.#marks = new Uint8Array(capacity);
    for (let slot = 0; slot < at.length; slot++) {
      const [high = 0, low = 0, third = 0] = words.subarray(slot * WORDS, slot * WORDS + WORDS);
      if (high === 0) continue;
      const target = this.#slotOf([high, low, third]);
      this.#words.set([high, low, third], target * WORDS);
      this.#at[target] = at[slot] ?? Number.NaN;
      this.#units[target] = units[slot] ?? 1;
      this.#marks[target] = marks[slot] ?? 0;
    }
  }
}
