import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IS_NEW, inGroup, inPass, KeyedHash, MOST_SEEN_ROWS, SeenRows } from "../../src/streams/seen-rows.ts";

const SEED = Uint32Array.of(1, 2, 3, 4, 5, 6);

/** The same promises kept with a Map, which costs a hundred bytes a row. */
class PlainRows {
  readonly #rows = new Map<string, { key: string; pass: number; group: number }>();

  beginPass(): void {
    for (const row of this.#rows.values()) row.pass = 0;
  }

  beginGroup(): void {
    for (const row of this.#rows.values()) [row.pass, row.group] = [0, 0];
  }

  add(key: string, identity: string | number, flags: number): object {
    let [pass, group] = [0, 0];
    for (const row of this.#rows.values()) {
      if (row.key !== key) continue;
      pass |= row.pass;
      group |= row.group;
    }
    const name = JSON.stringify([key, identity]);
    const row = this.#rows.get(name);
    this.#rows.set(name, { key, pass: (row?.pass ?? 0) | flags, group: (row?.group ?? 0) | flags });
    return { isNew: row === undefined, pass, group };
  }
}

const ROW = fc.record({
  kind: fc.constant("row" as const),
  key: fc.constantFrom("a", "b", "c", "d", "", "é", "aa", "\xe4\xb8\xad"),
  identity: fc.constantFrom<string | number>("1", "2", 3, 1_700_000_000_000, -62_135_596_800_000),
  flags: fc.integer({ min: 1, max: 15 }),
});
const STEP = fc.oneof(
  { weight: 8, arbitrary: ROW },
  fc.constantFrom({ kind: "pass" } as const, { kind: "group" } as const),
);

const add = (rows: SeenRows, key: string, identity: string | number, flags: number): number =>
  rows.add(rows.digestsOf([key]), 0, identity, flags);

describe("SeenRows", () => {
  it("answers as a map of all rows does, over any passes and groups", () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 200 }), (steps) => {
        const rows = new SeenRows();
        const plain = new PlainRows();
        for (const step of steps) {
          for (const kept of [rows, plain]) {
            if (step.kind === "pass") kept.beginPass();
            if (step.kind === "group") kept.beginGroup();
          }
          if (step.kind !== "row") continue;
          const known = add(rows, step.key, step.identity, step.flags);
          expect({ isNew: (known & IS_NEW) !== 0, pass: inPass(known), group: inGroup(known) }).toEqual(
            plain.add(step.key, step.identity, step.flags),
          );
        }
      }),
    );
  });

  it("knows a key again whatever stands beside it in a batch", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("", "a", "ab", "b", "\xff", "per_0123456789"), { maxLength: 20 }),
        (keys) => {
          const rows = new SeenRows();
          for (const key of new Set(keys)) add(rows, key, 1, 1);
          const digests = rows.digestsOf(keys);
          expect(keys.map((_, nth) => rows.add(digests, nth, 1, 1) & IS_NEW)).toEqual(keys.map(() => 0));
        },
      ),
    );
  });

  it("tells passes apart however many there are", () => {
    const rows = new SeenRows();
    add(rows, "key", "identity", 2);
    for (let pass = 0; pass < 100; pass++) {
      rows.beginPass();
      expect(inPass(add(rows, "key", "identity", 2))).toBe(0);
      expect(inPass(add(rows, "key", "identity", 4))).toBe(2);
      rows.beginGroup();
    }
  });

  it("takes no row for seen that was not, over many rows and growth", () => {
    const rows = new SeenRows();
    const addNth = (row: number): number =>
      add(rows, `per_${row.toString(16)}`, `2026-01-01T00:00:${row % 60}Z`, 1);
    rows.beginPass();
    for (let row = 0; row < 300_000; row++) {
      if (addNth(row) !== IS_NEW) expect.fail(`row ${row} was taken for seen`);
    }
    rows.beginPass();
    for (let row = 0; row < 300_000; row++) {
      if (addNth(row) !== 1 << 4) expect.fail(`row ${row} was forgotten`);
    }
  });

  it("costs at most sixteen bytes a row where the rows were counted", () => {
    const count = 200_000;
    globalThis.gc?.();
    const before = process.memoryUsage().arrayBuffers;
    const rows = new SeenRows(count);
    const bytes = process.memoryUsage().arrayBuffers - before;
    for (let row = 0; row < count; row++) add(rows, `k${row}`, "x", 1);
    expect(bytes).toBeLessThanOrEqual(count * 16.05);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThanOrEqual(count * 16.05 + 1_000_000);
  });

  it("stops remembering at its limit and says so", () => {
    const rows = new SeenRows(MOST_SEEN_ROWS);
    for (let row = 0; row < MOST_SEEN_ROWS; row += 1_000) {
      const keys = rows.digestsOf(Array.from({ length: 1_000 }, (_, nth) => String(row + nth)));
      for (let nth = 0; nth < 1_000; nth++) rows.add(keys, nth, "", 1);
    }
    expect(rows.isFull).toBe(true);
    expect(add(rows, "one more", "", 1) & IS_NEW).toBe(IS_NEW);
    expect(add(rows, "one more", "", 1) & IS_NEW).toBe(IS_NEW);
    expect(add(rows, "17", "", 1) & IS_NEW).toBe(0);
  });
});

/** The algorithm as its authors wrote it down, with 64 bits of output. */
function halfSipHash(text: string, k0: number, k1: number): readonly [number, number] {
  const whole = text.length & ~3;
  const bytes = Buffer.from(`${text}${"\0".repeat(whole + 4 - text.length)}`, "latin1");
  bytes[whole + 3] = text.length;
  const blocks = Array.from({ length: bytes.length / 4 }, (_, nth) => bytes.readInt32LE(4 * nth));
  const v = Uint32Array.of(k0, k1 ^ 0xee, k0 ^ 0x6c796765, k1 ^ 0x74656462);
  const [a, b, c, d] = [0, 1, 2, 3];
  const at = (index: number): number => v[index] ?? 0;
  const set = (index: number, value: number): void => void v.set([value], index);
  const rotated = (value: number, by: number): number => (value << by) | (value >>> (32 - by));
  const round = (): void => {
    set(a, at(a) + at(b));
    set(b, rotated(at(b), 5) ^ at(a));
    set(a, rotated(at(a), 16));
    set(c, at(c) + at(d));
    set(d, rotated(at(d), 8) ^ at(c));
    set(a, at(a) + at(d));
    set(d, rotated(at(d), 7) ^ at(a));
    set(c, at(c) + at(b));
    set(b, rotated(at(b), 13) ^ at(c));
    set(c, rotated(at(c), 16));
  };
  for (const block of blocks) {
    set(d, at(d) ^ block);
    round();
    set(a, at(a) ^ block);
  }
  set(c, at(c) ^ 0xee);
  for (let rounds = 0; rounds < 3; rounds++) round();
  const first = (at(b) ^ at(d)) >>> 0;
  set(b, at(b) ^ 0xdd);
  for (let rounds = 0; rounds < 3; rounds++) round();
  return [first, (at(b) ^ at(d)) >>> 0];
}

describe("KeyedHash", () => {
  const digestsOf = (seed: Uint32Array, texts: readonly string[]): readonly string[] => {
    const hash = new KeyedHash(seed);
    return texts.map((text) => {
      const bytes = Buffer.from(text, "latin1");
      hash.setKey(bytes, 0, bytes.length);
      const { high, low } = hash;
      return [high, low, hash.ofBytes(bytes, bytes.length), hash.ofNumber(text.length * 1e12)].join(" ");
    });
  };

  it("depends on every word of its seed", () => {
    const texts = ["", "a", "ab", "abc", "per_0123456789abcdef"];
    const first = digestsOf(SEED, texts);
    expect(digestsOf(SEED, texts)).toEqual(first);
    for (let word = 0; word < SEED.length; word++) {
      const other = digestsOf(SEED.with(word, 1_000_003), texts);
      expect(other.at(-1)).not.toBe(first.at(-1));
    }
  });

  it("is HalfSipHash-1-3 of the bytes, the last block with the length", () => {
    const texts = [
      "",
      "a",
      "ab",
      "abc",
      "abcd",
      "abcde",
      "per_0123456789abcdef",
      "\xff\x80\0\xe9\xff",
      "x".repeat(70_001),
    ];
    const hash = new KeyedHash(SEED);
    for (const text of texts) {
      const bytes = Buffer.from(`between${text}others`, "latin1");
      hash.setKey(bytes, 7, text.length);
      expect([hash.high, hash.low]).toEqual(halfSipHash(text, SEED[0] ?? 0, SEED[1] ?? 0));
      const digest = hash.ofBytes(bytes.subarray(7), text.length);
      expect(digest).toBe(halfSipHash(text, SEED[2] ?? 0, SEED[3] ?? 0)[1]);
    }
  });

  it("tells texts apart that differ in any one character", () => {
    const text = "x".repeat(41);
    const near = Array.from(text, (_, at) => `${text.slice(0, at)}y${text.slice(at + 1)}`);
    const digests = digestsOf(SEED, [text, ...near, text.slice(1), `${text}\0`, `\0${text}`]);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it("tells moments apart, before 1970 too", () => {
    const hash = new KeyedHash(SEED);
    const moments = Array.from(
      { length: 10_000 },
      (_, nth) => 1_700_000_000_000 + (nth - 5_000) * 86_400_000,
    );
    expect(new Set([...moments, -62_135_596_800_000].map((ms) => hash.ofNumber(ms))).size).toBe(10_001);
  });
});
