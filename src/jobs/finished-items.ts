import type { Day } from "../time.ts";

/** Bytes of a digest: 96 bits, 16 characters of base64url. */
export const DIGEST_BYTES = 12;

const SMALLEST = 64;

/**
 * Items whose life is over, by digest, with the day on which each was answered. A million of them take about 30 MB,
 * because digests and days stand in flat tables, and as much as their state for the days whose packed texts are known.
 */
export class FinishedItems {
  #digests = Buffer.alloc(SMALLEST * DIGEST_BYTES);
  /** For each item the number of its day in the calendar; 0: it is no longer here. */
  #days = new Uint32Array(SMALLEST);
  /** Open addressing: the place of an item plus 1, 0 where there is none. */
  #slots = new Uint32Array(SMALLEST * 2);
  #used = 0;
  #size = 0;
  /** Every day that an item ever had. */
  readonly #calendar: (Day | undefined)[] = [undefined];
  readonly #numbers = new Map<Day, number>();
  /** The packed texts of days that have not changed. */
  readonly #packed = new Map<Day, string>();

  get size(): number {
    return this.#size;
  }

  /** The day on which an item was answered; undefined if it is not among these. */
  dayOf(key: string): Day | undefined {
    const place = this.#find(Buffer.from(key, "base64url"));
    return place === undefined ? undefined : this.#dayAt(place);
  }

  add(key: string, day: Day): void {
    this.#add(Buffer.from(key, "base64url"), 0, day);
  }

  delete(key: string): void {
    const place = this.#find(Buffer.from(key, "base64url"));
    const day = place === undefined ? undefined : this.#dayAt(place);
    if (place === undefined || day === undefined) return;
    this.#days[place] = 0;
    this.#size -= 1;
    this.#packed.delete(day);
  }

  /** Adds the items of a day; of two days for one item the later counts. Returns false for a text that is not packed digests. */
  addPacked(day: Day, packed: string): boolean {
    if (this.#packed.get(day) === packed) return true;
    const count = packed.length / 16;
    const isFirst = !this.#numbers.has(day);
    const before = this.#size;
    this.#reserve(count);
    const end = this.#used * DIGEST_BYTES;
    if (this.#digests.write(packed, end, "base64url") !== count * DIGEST_BYTES) return false;
    for (let nth = 0; nth < count; nth++) this.#add(this.#digests, end + nth * DIGEST_BYTES, day);
    if (isFirst && this.#size === before + count) this.#packed.set(day, packed);
    return true;
  }

  /** The items by day, oldest first; each takes 16 characters. */
  toPacked(): (readonly [Day, string])[] {
    const byDay = new Map<Day, number[]>();
    for (let place = 0; place < this.#used; place++) {
      const day = this.#dayAt(place);
      if (day === undefined || this.#packed.has(day)) continue;
      const places = byDay.get(day);
      if (places === undefined) byDay.set(day, [place]);
      else places.push(place);
    }
    for (const [day, places] of byDay) this.#packed.set(day, this.#pack(places));
    return [...this.#packed].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** The keys of all items. */
  *keys(): Generator<string> {
    for (let place = 0; place < this.#used; place++)
      if (this.#dayAt(place) !== undefined) yield this.#digestAt(place).toString("base64url");
  }

  #pack(places: readonly number[]): string {
    const digests = Buffer.alloc(places.length * DIGEST_BYTES);
    for (const [nth, place] of places.entries()) this.#digestAt(place).copy(digests, nth * DIGEST_BYTES);
    return digests.toString("base64url");
  }

  #dayAt(place: number): Day | undefined {
    return this.#calendar[this.#days[place] ?? 0];
  }

  #digestAt(place: number): Buffer {
    return this.#digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES);
  }

  /** Adds the digest that stands at a place of a buffer, which may be the free end of the table. */
  #add(digests: Buffer, at: number, day: Day): void {
    const number = this.#numberOf(day);
    const known = this.#find(digests, at);
    if (known !== undefined) {
      const before = this.#dayAt(known);
      if (before !== undefined && before >= day) return;
      if (before === undefined) this.#size += 1;
      else this.#packed.delete(before);
      this.#packed.delete(day);
      this.#days[known] = number;
      return;
    }
    this.#reserve(1);
    digests.copy(this.#digests, this.#used * DIGEST_BYTES, at, at + DIGEST_BYTES);
    this.#days[this.#used] = number;
    this.#slots[this.#slotOf(digests, at)] = this.#used + 1;
    this.#used += 1;
    this.#size += 1;
    this.#packed.delete(day);
  }

  #numberOf(day: Day): number {
    const known = this.#numbers.get(day);
    if (known !== undefined) return known;
    this.#numbers.set(day, this.#calendar.length);
    return this.#calendar.push(day) - 1;
  }

  #find(digests: Buffer, at = 0): number | undefined {
    const place = this.#slots[this.#slotOf(digests, at)] ?? 0;
    return place === 0 ? undefined : place - 1;
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

  /** Makes room for so many more items. The slots stay half empty. */
  #reserve(count: number): void {
    let capacity = this.#slots.length / 2;
    while (capacity < this.#used + count) capacity *= 2;
    if (capacity * 2 === this.#slots.length) return;
    const digests = Buffer.alloc(capacity * DIGEST_BYTES);
    this.#digests.copy(digests);
    this.#digests = digests;
    const days = new Uint32Array(capacity);
    days.set(this.#days);
    this.#days = days;
    this.#slots = new Uint32Array(capacity * 2);
    for (let place = 0; place < this.#used; place++)
      this.#slots[this.#slotOf(digests, place * DIGEST_BYTES)] = place + 1;
  }
}

/** Whether two buffers hold one digest at these places. */
const isSame = (a: Buffer, atA: number, b: Buffer, atB: number): boolean =>
  a.readUInt32LE(atA) === b.readUInt32LE(atB) &&
  a.readUInt32LE(atA + 4) === b.readUInt32LE(atB + 4) &&
  a.readUInt32LE(atA + 8) === b.readUInt32LE(atB + 8);
