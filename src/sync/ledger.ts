/** Entries beyond this many are not kept: at 16 bytes a row the table would outgrow a small container. */
export const LEDGER_LIMIT = 5_000_000;

const FULLEST = 0.84;
const SMALLEST = 1024;
const WORDS = 3;
/** A mark is a pass number above four bits of flags; pass 1 stands for "some earlier pass". */
const FLAG_BITS = 4;
const FLAGS = 15;
/** The first word of a slot that holds nothing. Read before the mark: most rows are new, and end at one read of a cold line. */
const EMPTY = 0;
const FORGOTTEN_PASS = 1;
const LAST_PASS = 15;

type Table = { readonly words: Uint32Array; readonly marks: Uint8Array };

/**
 * Tables of windows that have ended, for those that come: dozens of them would pile up before the garbage collector,
 * which sees only their small handles, cared to look.
 */
const spare: Table[] = [];
const MOST_SPARE = 8;

/** An empty table of at least so many slots, but not of more than twice as many. */
function openTable(capacity: number): Table {
  const fitting = spare.findIndex(({ marks }) => marks.length >= capacity && marks.length <= 2 * capacity);
  const table = fitting < 0 ? undefined : spare.splice(fitting, 1)[0];
  if (table === undefined) {
    if (spare.length === MOST_SPARE) spare.shift();
    return { words: new Uint32Array(capacity * WORDS), marks: new Uint8Array(capacity) };
  }
  table.words.fill(EMPTY);
  table.marks.fill(0);
  return table;
}

/** What the ledger knew of a row before it was noted. */
export type Noted = {
  /** No pass has shown this key with this identity before. */
  fresh: boolean;
  /** The flags under which this pass has already noted the key. */
  had: number;
  /** The last pass, before this one, that showed the key; 0 if none. */
  before: number;
};

/**
 * The rows that a window has shown: 96-bit digests of (key, identity) in one open-addressed flat table, 13 bytes a
 * slot and at most 16 bytes a row when the number of rows is known beforehand. A digest is 64 bits of key and 32 of
 * identity, so that rows of one key lie in one probe sequence. A collision makes a pass look short, never whole.
 */
export class Ledger {
  #capacity: number;
  #words: Uint32Array;
  #marks: Uint8Array;
  #size = 0;
  #pass = FORGOTTEN_PASS;
  /** Digests of the rows that are expected: three words each, and how many of them are noted. */
  #expected = new Uint32Array(WORDS * 128);
  #queued = 0;
  #next = 0;
  readonly #noted: Noted = { fresh: false, had: 0, before: 0 };

  constructor(expectedRows = 0) {
    const { words, marks } = openTable(capacityFor(Math.min(expectedRows, LEDGER_LIMIT)));
    this.#capacity = marks.length;
    this.#words = words;
    this.#marks = marks;
  }

  /** Gives the table back once its window has ended. Nothing may be noted after that. */
  free(): void {
    if (spare.length < MOST_SPARE) spare.push({ words: this.#words, marks: this.#marks });
  }

  /** True once rows are passed on without being remembered. */
  get full(): boolean {
    return this.#size >= LEDGER_LIMIT;
  }

  /** Starts a pass and returns its number, above that of every pass whose rows are still told apart. */
  begin(): number {
    if (this.#pass === LAST_PASS) {
      const marks = this.#marks;
      for (let slot = 0; slot < marks.length; slot++)
        if (marks[slot] !== 0) marks[slot] = FORGOTTEN_PASS << FLAG_BITS;
      this.#pass = FORGOTTEN_PASS;
    }
    this.#pass += 1;
    this.#queued = 0;
    this.#next = 0;
    return this.#pass;
  }

  /** Takes in which row comes next; a number is an identity that is one, such as a moment. A batch is expected whole before it is noted. */
  expect(key: string, identity: string | number): void {
    if (this.#queued === this.#expected.length) this.#expected = doubled(this.#expected);
    hashKey(key);
    this.#expected[this.#queued] = digestA;
    this.#expected[this.#queued + 1] = digestB;
    this.#expected[this.#queued + 2] =
      typeof identity === "number" ? hashNumber(identity) : hashText(identity);
    this.#queued += WORDS;
  }

  /** Notes the next of the expected rows, of the current pass, under `flags`. The answer is reused by the next call. */
  note(flags: number): Noted {
    if (this.#next === 0) this.#warm();
    const expected = this.#expected;
    const at = this.#next;
    this.#next += WORDS;
    if (this.#next === this.#queued) {
      this.#queued = 0;
      this.#next = 0;
    }
    return this.#note(expected[at] ?? 0, expected[at + 1] ?? 0, expected[at + 2] ?? 0, flags);
  }

  /** Most slots lie in cold memory. Reads that wait for nothing fetch them side by side; those of `note` would, one after another. */
  #warm(): void {
    let read = 0;
    for (let at = 0; at < this.#queued; at += WORDS) {
      const slot = slotOf(this.#expected[at] ?? 0, this.#capacity);
      read |= (this.#words[slot * WORDS] ?? 0) | (this.#marks[slot] ?? 0);
    }
    // Kept, so that no compiler drops the reads; it means nothing.
    this.#noted.before = read;
  }

  #note(a: number, b: number, c: number, flags: number): Noted {
    const noted = this.#noted;
    const words = this.#words;
    const marks = this.#marks;
    const capacity = this.#capacity;
    noted.had = 0;
    noted.before = 0;
    let found = -1;
    let slot = slotOf(a, capacity);
    for (let at = slot * WORDS; words[at] !== EMPTY; at = slot * WORDS) {
      if (words[at] === a && words[at + 1] === b) {
        const mark = marks[slot] ?? 0;
        const pass = mark >>> FLAG_BITS;
        if (pass === this.#pass) noted.had |= mark & FLAGS;
        else if (pass > noted.before) noted.before = pass;
        if (words[at + 2] === c) found = slot;
      }
      slot = slot + 1 === capacity ? 0 : slot + 1;
    }
    noted.fresh = found < 0;
    if (found >= 0) {
      const mark = marks[found] ?? 0;
      const kept = mark >>> FLAG_BITS === this.#pass ? mark & FLAGS : 0;
      marks[found] = (this.#pass << FLAG_BITS) | kept | flags;
    } else if (!this.full) {
      words[slot * WORDS] = a;
      words[slot * WORDS + 1] = b;
      words[slot * WORDS + 2] = c;
      marks[slot] = (this.#pass << FLAG_BITS) | flags;
      this.#size += 1;
      if (this.#size > capacity * FULLEST) this.#grow();
    }
    return noted;
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

function doubled(words: Uint32Array): Uint32Array<ArrayBuffer> {
  const more = new Uint32Array(2 * words.length);
  more.set(words);
  return more;
}

function capacityFor(rows: number): number {
  return Math.max(SMALLEST, Math.ceil((rows + 1) / FULLEST) + 1);
}

// The digest is our own because node:crypto costs more than the parse of a row. Two lanes of murmur3-like mixing over
// pairs of UTF-16 units; nobody gains by colliding, since a collision only makes the window be read again.
let digestA = 0;
let digestB = 0;

function hashKey(text: string): void {
  const { length } = text;
  let a = length ^ 0x3c6ef372;
  let b = length ^ 0x1b873593;
  let at = 0;
  for (; at + 1 < length; at += 2) {
    const pair = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
    let mixed = Math.imul(pair, 0xcc9e2d51);
    mixed = (mixed << 15) | (mixed >>> 17);
    a ^= mixed;
    a = (Math.imul((a << 13) | (a >>> 19), 5) + 0xe6546b64) | 0;
    mixed = Math.imul(pair, 0x85ebca6b);
    mixed = (mixed << 17) | (mixed >>> 15);
    b ^= mixed;
    b = (Math.imul((b << 11) | (b >>> 21), 9) + 0x52dce729) | 0;
  }
  if (at < length) {
    a ^= Math.imul(text.charCodeAt(at), 0x1b873593);
    b ^= Math.imul(text.charCodeAt(at), 0x38b34ae5);
  }
  digestA = finish(a ^ Math.imul(b, 0x9e3779b1)) || 1;
  digestB = finish(b ^ Math.imul(digestA, 0x85ebca77));
}

/** Of a whole number. */
function hashNumber(value: number): number {
  return finish(value ^ Math.imul(Math.floor(value / 0x1_0000_0000), 0x9e3779b1));
}

function hashText(text: string): number {
  let hash = text.length ^ 0x2545f491;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    hash = (hash << 5) | (hash >>> 27);
  }
  return finish(hash);
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
