/** The maximum number of remembered rows (16 bytes each), because small containers have little memory. */
export const MAX_SEEN_ROWS = 5_000_000;

/** The maximum share of used slots, and the minimum number of slots. */
const MAX_LOAD = 0.84;
const MIN_SLOTS = 1024;
const WORDS = 3;
/** The first word of an empty slot. */
const EMPTY = 0;
const FLAGS = 15;
const GROUP_BITS = 4;

/** The parts of the result of `add`: whether the row is new, and the key's flags in the pass and in the group of passes. */
export const IS_NEW = 256;
export const inPass = (known: number): number => known & FLAGS;
export const inGroup = (known: number): number => (known >>> GROUP_BITS) & FLAGS;

/** Digests of keys, two words each. */
export type KeyDigests = Uint32Array;

/** Random words for the hash, so that no service can construct two keys with the same digest. */
export type Seed = Uint32Array;

const PROCESS_SEED: Seed = crypto.getRandomValues(new Uint32Array(6));

/**
 * The rows that a window has shown: 96-bit digests in one open-addressed flat table, with 13 bytes a slot.
 * A digest has 64 bits of the key, then 32 bits of the identity. So the rows of one key are in one probe sequence.
 * If two digests are equal, a pass seems to lack a row. It never seems complete by mistake.
 * A mark has four flags, once for the pass and once for a group of passes. The caller chooses the meaning of the flags.
 */
export class SeenRows {
  #capacity: number;
  #words: Uint32Array;
  #marks: Uint8Array;
  #size = 0;
  /** The number of the group of passes. It also grows when the rows are forgotten. */
  group = 0;
  /** The memory for the digests of a batch. */
  #digests: KeyDigests = new Uint32Array(0);
  /** The memory for texts during hashing, because the characters of a part of a line are slow to read. */
  #bytes: Buffer = Buffer.alloc(0);
  readonly #hash: KeyedHash;

  /** The result of the last prefetch. Public, because a compiler removes reads without a use. */
  prefetched = 0;

  /** @param expectedRows the counted rows of the window */
  constructor(expectedRows = 0, seed: Seed = PROCESS_SEED) {
    this.#capacity = capacityFor(Math.min(expectedRows, MAX_SEEN_ROWS));
    this.#words = new Uint32Array(this.#capacity * WORDS);
    this.#marks = new Uint8Array(this.#capacity);
    this.#hash = new KeyedHash(seed);
  }

  /** Whether further rows are not remembered. */
  get isFull(): boolean {
    return this.#size >= MAX_SEEN_ROWS;
  }

  /** Starts a pass, and forgets the flags of the last pass. */
  beginPass(): void {
    const marks = this.#marks;
    for (let slot = 0; slot < marks.length; slot++) marks[slot] = (marks[slot] ?? 0) & ~FLAGS;
  }

  /** Starts a group of passes, and forgets the flags of all passes. */
  beginGroup(): void {
    this.group += 1;
    this.#marks.fill(0);
  }

  /** Forgets all rows, so that they are new again. */
  forget(): void {
    this.group += 1;
    this.#words.fill(EMPTY);
    this.#marks.fill(0);
    this.#size = 0;
  }

  /** The digests of a batch's keys, valid until the next batch. Prefetches their slots, so that the cache misses overlap. */
  digestsOf(keys: readonly string[]): KeyDigests {
    const count = keys.length * 2;
    if (this.#digests.length < count) this.#digests = new Uint32Array(2 * count);
    const digests = this.#digests;
    const hash = this.#hash;
    const bytes = this.#bytesOf(keys.join(""));
    let at = 0;
    let from = 0;
    for (const { length } of keys) {
      hash.setKey(bytes, from, length);
      digests[at++] = hash.high || 1;
      digests[at++] = hash.low;
      from += length;
    }
    const [words, marks, capacity] = [this.#words, this.#marks, this.#capacity];
    let read = 0;
    for (at = 0; at < count; at += 2) {
      const slot = slotOf(digests[at] ?? 0, capacity);
      read |= (words[slot * WORDS] ?? 0) | (marks[slot] ?? 0);
    }
    this.prefetched = read;
    return digests;
  }

  /**
   * Adds a row that the pass shows.
   * @param nth the index of the row's key
   * @param identity distinguishes the rows of one key; a number if it is a moment
   * @param flags at most four bits
   * @returns bits for IS_NEW, `inPass` and `inGroup`, from before this row was added
   */
  add(keys: KeyDigests, nth: number, identity: string | number, flags: number): number {
    const a = keys[2 * nth] ?? 0;
    const b = keys[2 * nth + 1] ?? 0;
    const c =
      typeof identity === "number"
        ? this.#hash.ofNumber(identity)
        : this.#hash.ofBytes(this.#bytesOf(identity), identity.length);
    const words = this.#words;
    const marks = this.#marks;
    let known = 0;
    let found = -1;
    let slot = slotOf(a, this.#capacity);
    for (let at = slot * WORDS; words[at] !== EMPTY; at = slot * WORDS) {
      if (words[at] === a && words[at + 1] === b) {
        known |= marks[slot] ?? 0;
        if (words[at + 2] === c) found = slot;
      }
      slot = slot + 1 === this.#capacity ? 0 : slot + 1;
    }
    const mark = flags | (flags << GROUP_BITS);
    if (found >= 0) {
      marks[found] = (marks[found] ?? 0) | mark;
      return known;
    }
    if (!this.isFull) this.#insert(slot, a, b, c, mark);
    return known | IS_NEW;
  }

  #bytesOf(text: string): Buffer {
    if (this.#bytes.length < text.length) this.#bytes = Buffer.allocUnsafe(text.length);
    this.#bytes.write(text, "latin1");
    return this.#bytes;
  }

  #insert(slot: number, a: number, b: number, c: number, mark: number): void {
    const at = slot * WORDS;
    this.#words[at] = a;
    this.#words[at + 1] = b;
    this.#words[at + 2] = c;
    this.#marks[slot] = mark;
    this.#size += 1;
    if (this.#size > this.#capacity * MAX_LOAD) this.#grow();
  }

  #grow(): void {
    const words = this.#words;
    const marks = this.#marks;
    const capacity = capacityFor(this.#size * 1.5);
    const nextWords = new Uint32Array(capacity * WORDS);
    const nextMarks = new Uint8Array(capacity);
    for (let slot = 0; slot < marks.length; slot++) {
      const at = slot * WORDS;
      if (words[at] === EMPTY) continue;
      let target = slotOf(words[at] ?? 0, capacity);
      while (nextWords[target * WORDS] !== EMPTY) target = target + 1 === capacity ? 0 : target + 1;
      nextWords.set(words.subarray(at, at + WORDS), target * WORDS);
      nextMarks[target] = marks[slot] ?? 0;
    }
    this.#capacity = capacity;
    this.#words = nextWords;
    this.#marks = nextMarks;
  }
}

const slotOf = (digest: number, capacity: number): number => Math.floor((digest * capacity) / 0x1_0000_0000);

function capacityFor(rows: number): number {
  return Math.max(MIN_SLOTS, Math.ceil((rows + 1) / MAX_LOAD) + 1);
}

/** HalfSipHash-1-3 with 64 bits of output: a keyed hash, because strangers choose the keys. */
export class KeyedHash {
  /** The digest of the last key as two unsigned words. */
  high = 0;
  low = 0;
  readonly #seed: Seed;

  constructor(seed: Seed) {
    this.#seed = seed;
  }

  setKey(bytes: Buffer, from: number, length: number): void {
    this.#run(bytes, from, length, this.#seed[0] ?? 0, this.#seed[1] ?? 0);
  }

  /** 32 bits of the first `length` bytes, under another part of the seed. Changes `high` and `low`. */
  ofBytes(bytes: Buffer, length: number): number {
    this.#run(bytes, 0, length, this.#seed[2] ?? 0, this.#seed[3] ?? 0);
    return this.low;
  }

  /** 32 bits of a whole number. */
  ofNumber(value: number): number {
    const high = Math.floor(value / 0x1_0000_0000);
    const [a, b] = [(this.#seed[4] ?? 0) | 1, (this.#seed[5] ?? 0) | 1];
    return (Math.imul(value | 0, a) + Math.imul(high, b)) >>> 0;
  }

  #run(bytes: Buffer, from: number, length: number, k0: number, k1: number): void {
    const blocks = length >>> 2;
    let v0 = k0;
    let v1 = k1 ^ 0xee;
    let v2 = k0 ^ 0x6c796765;
    let v3 = k1 ^ 0x74656462;
    // One step mixes one block. The next step mixes the last bytes with the length. Three steps finish each word of the digest.
    for (let step = 0; step < blocks + 7; step++) {
      let block = 0;
      if (step < blocks) block = blockAt(bytes, from + 4 * step);
      else if (step === blocks) block = lastBlock(bytes, from, length);
      else if (step === blocks + 1) v2 ^= 0xee;
      else if (step === blocks + 4) {
        this.high = (v1 ^ v3) >>> 0;
        v1 ^= 0xdd;
      }
      v3 ^= block;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= block;
    }
    this.low = (v1 ^ v3) >>> 0;
  }
}

/** `readInt32LE` in a third of its time. */
const blockAt = (bytes: Buffer, at: number): number =>
  (bytes[at] ?? 0) |
  ((bytes[at + 1] ?? 0) << 8) |
  ((bytes[at + 2] ?? 0) << 16) |
  ((bytes[at + 3] ?? 0) << 24);

/** The zero to three bytes after the blocks, and the length in the highest byte. */
function lastBlock(bytes: Buffer, from: number, length: number): number {
  let block = length << 24;
  for (let at = length & ~3, shift = 0; at < length; at++, shift += 8)
    block |= (bytes[from + at] ?? 0) << shift;
  return block;
}
