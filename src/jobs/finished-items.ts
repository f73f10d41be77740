import { type Day, dayOf, startOf } from "../time.ts";

/** Bytes of a digest: 96 bits, 16 characters of base64url. */
export const DIGEST_BYTES = 12;

const DAY_MS = 86_400_000;
const SMALLEST = 64;
const GONE = -(2 ** 31);

/**
 * Items whose life is over, by digest, with the day on which each was answered. A million of them take about 30 MB,
 * because digests and days stand in flat tables.
 */
export class FinishedItems {
  #digests = Buffer.alloc(SMALLEST * DIGEST_BYTES);
  #days = new Int32Array(SMALLEST);
  /** Open addressing: the place of an item plus 1, 0 where there is none. */
  #slots = new Uint32Array(SMALLEST * 2);
  #used = 0;
  #size = 0;
  readonly #packed = new Map<number, string>();

  get size(): number {
    return this.#size;
  }

  /** The day on which an item was answered; undefined if it is not among these. */
  dayOf(key: string): Day | undefined {
    const place = this.#find(Buffer.from(key, "base64url"));
    const day = place === undefined ? GONE : (this.#days[place] ?? GONE);
    return day === GONE ? undefined : toDay(day);
  }

  add(key: string, day: Day): void {
    this.#add(Buffer.from(key, "base64url"), toNumber(day));
  }

  delete(key: string): void {
    const place = this.#find(Buffer.from(key, "base64url"));
    const day = place === undefined ? GONE : (this.#days[place] ?? GONE);
    if (place === undefined || day === GONE) return;
    this.#days[place] = GONE;
    this.#size -= 1;
    this.#packed.delete(day);
  }

  /** Adds the items of a day; of two days for one item the later counts. Returns false for a text that is not packed digests. */
  addPacked(day: Day, packed: string): boolean {
    const digests = Buffer.from(packed, "base64url");
    if (packed.length % 16 !== 0 || digests.length !== (packed.length / 16) * DIGEST_BYTES) return false;
    const number = toNumber(day);
    for (let at = 0; at < digests.length; at += DIGEST_BYTES)
      this.#add(digests.subarray(at, at + DIGEST_BYTES), number);
    return true;
  }

  /** The items by day, oldest first; each takes 16 characters. */
  toPacked(): (readonly [Day, string])[] {
    const byDay = new Map<number, number[]>();
    for (let place = 0; place < this.#used; place++) {
      const day = this.#days[place] ?? GONE;
      if (day === GONE || this.#packed.has(day)) continue;
      const places = byDay.get(day);
      if (places === undefined) byDay.set(day, [place]);
      else places.push(place);
    }
    for (const [day, places] of byDay) this.#packed.set(day, this.#pack(places));
    return [...this.#packed].sort(([a], [b]) => a - b).map(([day, text]) => [toDay(day), text]);
  }

  /** The keys of all items. */
  *keys(): Generator<string> {
    for (let place = 0; place < this.#used; place++)
      if (this.#days[place] !== GONE) yield this.#digestAt(place).toString("base64url");
  }

  #pack(places: readonly number[]): string {
    const digests = Buffer.alloc(places.length * DIGEST_BYTES);
    for (const [nth, place] of places.entries()) this.#digestAt(place).copy(digests, nth * DIGEST_BYTES);
    return digests.toString("base64url");
  }

  #digestAt(place: number): Buffer {
    return this.#digests.subarray(place * DIGEST_BYTES, (place + 1) * DIGEST_BYTES);
  }

  #add(digest: Buffer, day: number): void {
    const known = this.#find(digest);
    if (known !== undefined) {
      const before = this.#days[known] ?? GONE;
      if (before >= day) return;
      if (before === GONE) this.#size += 1;
      this.#packed.delete(before);
      this.#packed.delete(day);
      this.#days[known] = day;
      return;
    }
    if ((this.#used + 1) * 2 > this.#slots.length) this.#grow();
    digest.copy(this.#digests, this.#used * DIGEST_BYTES);
    this.#days[this.#used] = day;
    this.#slots[this.#slotOf(digest)] = this.#used + 1;
    this.#used += 1;
    this.#size += 1;
    this.#packed.delete(day);
  }

  #find(digest: Buffer): number | undefined {
    const place = this.#slots[this.#slotOf(digest)] ?? 0;
    return place === 0 ? undefined : place - 1;
  }

  /** The slot in which a digest stands, or the empty one in which it belongs. */
  #slotOf(digest: Buffer): number {
    const slots = this.#slots;
    let slot = digest.readUInt32LE(0) % slots.length;
    for (;;) {
      const place = slots[slot] ?? 0;
      if (place === 0 || this.#digestAt(place - 1).equals(digest)) return slot;
      slot = slot + 1 === slots.length ? 0 : slot + 1;
    }
  }

  #grow(): void {
    const capacity = this.#slots.length;
    const digests = Buffer.alloc(capacity * DIGEST_BYTES);
    this.#digests.copy(digests);
    const days = new Int32Array(capacity);
    days.set(this.#days);
    this.#digests = digests;
    this.#days = days;
    this.#slots = new Uint32Array(capacity * 2);
    for (let place = 0; place < this.#used; place++)
      this.#slots[this.#slotOf(this.#digestAt(place))] = place + 1;
  }
}

const toNumber = (day: Day): number => Math.floor(startOf(day) / DAY_MS);
const toDay = (number: number): Day => dayOf(number * DAY_MS);
