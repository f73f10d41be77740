import type { Day } from "../time.ts";

/** Bytes of a digest: 96 bits, 16 characters of base64url. */
export const DIGEST_BYTES = 12;

const SMALLEST = 64;

/**
 * Items whose life is over, by digest, with the day on which each was answered. A million of them take about 30 MB,
 * because digests stand in a flat table, and as much as their state for the days whose packed texts are known.
 */
export class FinishedItems {
  #digests = Buffer.alloc(SMALLEST * DIGEST_BYTES);
  /** The day of each item; undefined: it is no longer here. */
  readonly #days: (Day | undefined)[] = [];
  /** Open addressing: the place of an item plus 1, 0 where there is none. */
  #slots = new Uint32Array(SMALLEST * 2);
  #size = 0;
  /** Every day that an item ever had. */
  readonly #calendar = new Set<Day>();
  /** The packed texts of days that have not changed. */
  readonly #packed = new Map<Day, string>();

  get size(): number {
    return this.#size;
  }

  /** The day on which an item was answered; undefined if it is not among these. */
  dayOf(key: string): Day | undefined {
    const place = this.#find(Buffer.from(key, "base64url"));
    return place === undefined ? undefined : this.#days[place];
  }

  add(key: string, day: Day): void {
    this.#add(Buffer.from(key, "base64url"), 0, day);
  }

  delete(key: string): void {
    const place = this.#find(Buffer.from(key, "base64url"));
    const day = place === undefined ? undefined : this.#days[place];
    if (place === undefined || day === undefined) return;
    this.#days[place] = undefined;
    this.#size -= 1;
    this.#packed.delete(day);
  }

  /** Adds the items of a day; of two days for one item the later counts. Returns false for a text that is not packed digests. */
  addPacked(day: Day, packed: string): boolean {
    const digests = Buffer.from(packed, "base64url");
    const count = packed.length / 16;
    if (digests.length !== count * DIGEST_BYTES) return false;
    const isFirst = !this.#calendar.has(day);
    const before = this.#size;
    for (let at = 0; at < digests.length; at += DIGEST_BYTES) this.#add(digests, at, day);
    if (isFirst && this.#size === before + count) this.#packed.set(day, packed);
    return true;
  }

  /** The items by day, oldest first; each takes 16 characters. */
  toPacked(): (readonly [Day, string])[] {
    const byDay = new Map<Day, number[]>();
    for (const [place, day] of this.#days.entries()) {
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
    for (const [place, day] of this.#days.entries())
      if (day !== undefined) yield this.#digestAt(place).toString("base64url");
  }

  #pack(places: readonly number[]): string {
    const digests = Buffer.alloc(places.length * DIGEST_BYTES);
    for (const [nth, place] of places.entries()) this.#digestAt(place).copy(digests, nth * DIGEST_BYTES);
    return digests.toString("base64url");
  }

  #digestAt(place: number): Buffer {
    return this.#digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES);
  }

  /** Adds the digest that stands at a place of a buffer. */
  #add(digests: Buffer, at: number, day: Day): void {
    this.#calendar.add(day);
    const known = this.#find(digests, at);
    if (known !== undefined) {
      const before = this.#days[known];
      if (before !== undefined && before >= day) return;
      if (before === undefined) this.#size += 1;
      else this.#packed.delete(before);
      this.#packed.delete(day);
      this.#days[known] = day;
      return;
    }
    const place = this.#days.length;
    if ((place + 1) * 2 > this.#slots.length) this.#grow();
    digests.copy(this.#digests, place * DIGEST_BYTES, at, at + DIGEST_BYTES);
    this.#days.push(day);
    this.#slots[this.#slotOf(digests, at)] = place + 1;
    this.#size += 1;
    this.#packed.delete(day);
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

  #grow(): void {
    const capacity = this.#slots.length;
    const digests = Buffer.alloc(capacity * DIGEST_BYTES);
    this.#digests.copy(digests);
    this.#digests = digests;
    this.#slots = new Uint32Array(capacity * 2);
    for (let place = 0; place < this.#days.length; place++)
      this.#slots[this.#slotOf(digests, place * DIGEST_BYTES)] = place + 1;
  }
}

/** Whether two buffers hold one digest at these places. */
const isSame = (a: Buffer, atA: number, b: Buffer, atB: number): boolean =>
  a.readUInt32LE(atA) === b.readUInt32LE(atB) &&
  a.readUInt32LE(atA + 4) === b.readUInt32LE(atB + 4) &&
  a.readUInt32LE(atA + 8) === b.readUInt32LE(atB + 8);
