import { addDays, BEGINNING, type Day, daysBetween } from "../time.ts";

/** Bytes of a digest: 96 bits, 16 characters of base64url. */
const DIGEST_BYTES = 12;
const SMALLEST = 64;

/** A day as a number above 0, so that 0 can say that there is none. Few days are asked for often. */
export const numberOfDay = remembered((day: Day | ""): number =>
  day === "" ? 0 : daysBetween(BEGINNING, day),
);

export const dayOfNumber = remembered((number: number): Day | "" =>
  number === 0 ? "" : addDays(BEGINNING, number - 1),
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
  #digests = Buffer.alloc(SMALLEST * DIGEST_BYTES);
  /** Open addressing: the row of a digest plus 1, 0 where there is none. At most half of the slots are used. */
  #slots = new Uint32Array(SMALLEST * 2);
  #size = 0;

  /** How many rows there are. */
  get size(): number {
    return this.#size;
  }

  /** How many rows there is room for. */
  get capacity(): number {
    return this.#slots.length / 2;
  }

  /** The row of a digest; undefined if there is none. */
  find(key: string): number | undefined {
    const place = this.#slots[this.#slotOf(Buffer.from(key, "base64url"), 0)] ?? 0;
    return place === 0 ? undefined : place - 1;
  }

  /** The row of a digest, a new one if there is none. */
  add(key: string): number {
    return this.#add(Buffer.from(key, "base64url"), 0);
  }

  /** The rows of packed digests. */
  *addPacked(packed: string): Generator<number> {
    const digests = Buffer.from(packed, "base64url");
    this.#reserve(digests.length / DIGEST_BYTES);
    for (let at = 0; at < digests.length; at += DIGEST_BYTES) yield this.#add(digests, at);
  }

  keyAt(row: number): string {
    return this.#digestAt(row).toString("base64url");
  }

  /** The rows by day, oldest first, 16 characters each. `numberAt`: the day's number; 0 leaves a row out. */
  toPacked(numberAt: (row: number) => number): [Day, string][] {
    const counts = new Map<number, number>();
    for (let row = 0; row < this.#size; row++) {
      const number = numberAt(row);
      if (number > 0) counts.set(number, (counts.get(number) ?? 0) + 1);
    }
    const days = new Map<number, { readonly digests: Buffer; end: number }>();
    for (const [number, count] of [...counts].sort(([a], [b]) => a - b))
      days.set(number, { digests: Buffer.alloc(count * DIGEST_BYTES), end: 0 });
    for (let row = 0; row < this.#size; row++) {
      const day = days.get(numberAt(row));
      if (day !== undefined) day.end += this.#digestAt(row).copy(day.digests, day.end);
    }
    return [...days].map(([number, { digests }]) => [
      dayOfNumber(number) as Day,
      digests.toString("base64url"),
    ]);
  }

  #add(digests: Buffer, at: number): number {
    const place = this.#slots[this.#slotOf(digests, at)] ?? 0;
    if (place !== 0) return place - 1;
    this.#reserve(1);
    digests.copy(this.#digests, this.#size * DIGEST_BYTES, at, at + DIGEST_BYTES);
    this.#slots[this.#slotOf(digests, at)] = this.#size + 1;
    this.#size += 1;
    return this.#size - 1;
  }

  #digestAt(row: number): Buffer {
    return this.#digests.subarray(row * DIGEST_BYTES, (row + 1) * DIGEST_BYTES);
  }

  /** The slot in which a digest stands, or the empty one in which it belongs. */
  #slotOf(digests: Buffer, at: number): number {
    const slots = this.#slots;
    let slot = digests.readUInt32LE(at) % slots.length;
    for (;;) {
      const place = slots[slot] ?? 0;
      if (place === 0 || isSame(digests, at, this.#digests, (place - 1) * DIGEST_BYTES)) return slot;
      slot = slot + 1 === slots.length ? 0 : slot + 1;
    }
  }

  /** Makes room for more rows. */
  #reserve(count: number): void {
    let { capacity } = this;
    while (capacity < this.#size + count) capacity *= 2;
    if (capacity === this.capacity) return;
    const digests = Buffer.alloc(capacity * DIGEST_BYTES);
    this.#digests.copy(digests);
    this.#digests = digests;
    this.#slots = new Uint32Array(2 * capacity);
    for (let row = 0; row < this.#size; row++)
      this.#slots[this.#slotOf(digests, row * DIGEST_BYTES)] = row + 1;
  }
}

/** Whether two buffers hold one digest at these places. */
const isSame = (a: Buffer, atA: number, b: Buffer, atB: number): boolean =>
  a.readUInt32LE(atA) === b.readUInt32LE(atB) &&
  a.readUInt32LE(atA + 4) === b.readUInt32LE(atB + 4) &&
  a.readUInt32LE(atA + 8) === b.readUInt32LE(atB + 8);
