import { addDays, type Day, dayOf, daysBetween, FIRST } from "../base/time.ts";

/** A digest has 96 bits: 3 words, 16 characters of base64url. */
const WORDS = 3;
const BYTES = 12;
const CHARACTERS = 16;
const SMALLEST = 64;

/** A day and digests behind one another. */
export type PackedDay = readonly [day: Day, digests: string];

const FIRST_DAY = dayOf(FIRST);

/** A day as a number above 0, so that 0 can say that there is none. Few days are asked for often. */
export const numberOfDay = remembered((day: Day | ""): number =>
  day === "" ? 0 : daysBetween(FIRST_DAY, day),
);

export const dayOfNumber = remembered((number: number): Day | "" =>
  number === 0 ? "" : addDays(FIRST_DAY, number - 1),
);

/** The same work, done once for each value. */
export function remembered<Given, Result>(work: (given: Given) => Result): (given: Given) => Result {
  const known = new Map<Given, Result>();
  return (given) => {
    const before = known.get(given);
    if (before !== undefined) return before;
    const result = work(given);
    known.set(given, result);
    return result;
  };
}

/** A number for each row of a table; 0 where none was set. */
export class Column {
  readonly #table: DigestTable;
  #values: Uint8Array | Uint32Array | Float64Array;

  /** @param none an array of the kind that holds the numbers */
  constructor(table: DigestTable, none: Uint8Array | Uint32Array | Float64Array = new Uint32Array(0)) {
    this.#table = table;
    this.#values = none;
  }

  get(row: number): number {
    return this.#values[row] ?? 0;
  }

  set(row: number, value: number): void {
    if (row >= this.#values.length) {
      if (value === 0) return;
      const Kind = this.#values.constructor as Float64ArrayConstructor;
      const larger = new Kind(this.#table.capacity);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[row] = value;
  }
}

/** Rows of digests in flat tables: a million take about 20 MB. Rows are never removed. */
export class DigestTable {
  #words = new Uint32Array(SMALLEST * WORDS);
  /** Open addressing: the row of a digest plus 1, 0 where there is none. At most half of the slots are used. */
  #slots = new Uint32Array(SMALLEST * 2);
  #size = 0;
  /** Packed digests of rows that follow one another, by the first: a state mostly has them as the last one had. */
  readonly #texts = new Map<number, string>();
  /** The key that was looked for last: most are asked for several times in a row. */
  #last: { readonly key: string | undefined; readonly row: number } = { key: undefined, row: 0 };

  get size(): number {
    return this.#size;
  }

  /** How many rows there is room for. */
  get capacity(): number {
    return this.#slots.length / 2;
  }

  /** The row of a digest; undefined if there is none. */
  find(key: string): number | undefined {
    if (key === this.#last.key) return this.#last.row;
    ONE.write(key, "base64url");
    const place = this.#slots[this.#slotOf(ONE_WORDS, 0)] ?? 0;
    if (place === 0) return undefined;
    this.#last = { key, row: place - 1 };
    return place - 1;
  }

  /** The row of a digest, a new one if there is none. */
  add(key: string): number {
    const row = this.find(key) ?? this.#add(ONE_WORDS, 0);
    this.#last = { key, row };
    return row;
  }

  /** The rows of packed digests. */
  *addPacked(packed: string): Generator<number> {
    const digests = Buffer.alloc((packed.length / CHARACTERS) * BYTES);
    digests.write(packed, "base64url");
    const words = new Uint32Array(digests.buffer);
    this.#reserve(words.length / WORDS);
    let [first, isRun] = [-1, true];
    for (let nth = 0; nth < words.length / WORDS; nth++) {
      const row = this.#add(words, nth * WORDS);
      if (nth === 0) first = row;
      isRun &&= row === first + nth;
      yield row;
    }
    if (isRun) this.#texts.set(first, packed);
  }

  keyAt(row: number): string {
    for (let nth = 0; nth < WORDS; nth++) ONE_WORDS[nth] = this.#words[row * WORDS + nth] ?? 0;
    return ONE.toString("base64url");
  }

  /** The rows by group, the lowest first, 16 characters each. `groupOf`: 0 leaves a row out. */
  toPacked(groupOf: (row: number) => number): [group: number, digests: string][] {
    const groups = new Map<number, { first: number; last: number; rows: number }>();
    for (let row = 0; row < this.#size; row++) {
      const number = groupOf(row);
      const group = groups.get(number);
      if (group !== undefined) [group.last, group.rows] = [row, group.rows + 1];
      else if (number > 0) groups.set(number, { first: row, last: row, rows: 1 });
    }
    const texts = new Map<number, string>();
    for (const [number, { first, last, rows }] of groups) {
      const text = last - first + 1 === rows ? this.#texts.get(first) : undefined;
      if (text?.length === rows * CHARACTERS) texts.set(number, text);
    }
    const others = new Map<number, { readonly words: Uint32Array; end: number }>();
    for (const [number, { rows }] of groups)
      if (!texts.has(number)) others.set(number, { words: new Uint32Array(rows * WORDS), end: 0 });
    for (let row = 0; row < this.#size && others.size > 0; row++) {
      const other = others.get(groupOf(row));
      for (let nth = 0; other !== undefined && nth < WORDS; nth++)
        other.words[other.end++] = this.#words[row * WORDS + nth] ?? 0;
    }
    for (const [number, { words }] of others)
      texts.set(number, Buffer.from(words.buffer).toString("base64url"));
    return [...texts].sort(([a], [b]) => a - b);
  }

  #add(digests: Uint32Array, at: number): number {
    const place = this.#slots[this.#slotOf(digests, at)] ?? 0;
    if (place !== 0) return place - 1;
    this.#reserve(1);
    for (let nth = 0; nth < WORDS; nth++) this.#words[this.#size * WORDS + nth] = digests[at + nth] ?? 0;
    this.#size += 1;
    this.#slots[this.#slotOf(digests, at)] = this.#size;
    return this.#size - 1;
  }

  /** The slot in which a digest stands, or the empty one in which it belongs. */
  #slotOf(digests: Uint32Array, at: number): number {
    const [slots, words] = [this.#slots, this.#words];
    let slot = (digests[at] ?? 0) % slots.length;
    for (;;) {
      const place = slots[slot] ?? 0;
      if (place === 0) return slot;
      const stands = (place - 1) * WORDS;
      if (
        words[stands] === digests[at] &&
        words[stands + 1] === digests[at + 1] &&
        words[stands + 2] === digests[at + 2]
      )
        return slot;
      slot = slot + 1 === slots.length ? 0 : slot + 1;
    }
  }

  #reserve(count: number): void {
    let { capacity } = this;
    while (capacity < this.#size + count) capacity *= 2;
    if (capacity === this.capacity) return;
    const words = new Uint32Array(capacity * WORDS);
    words.set(this.#words);
    this.#words = words;
    this.#slots = new Uint32Array(2 * capacity);
    for (let row = 0; row < this.#size; row++) this.#slots[this.#slotOf(words, row * WORDS)] = row + 1;
  }
}

/** One digest on its way between a key and the table. */
const ONE = Buffer.alloc(BYTES);
const ONE_WORDS = new Uint32Array(ONE.buffer);
