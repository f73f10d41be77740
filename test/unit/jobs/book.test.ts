import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DAY_MS, dayOf } from "../../../src/base/time.ts";
import { Book } from "../../../src/jobs/book.ts";
import {
  addPrice,
  type Blind,
  type Delta,
  type Handle,
  higherHandle,
  type Item,
  isSettled,
  joinItems,
  newSub,
  type Price,
  type Spending,
  STEPS,
  type Sub,
  subsOf,
  UNBOUGHT,
} from "../../../src/jobs/lattice.ts";
import { runs } from "../../support/runs.ts";

const T0 = Date.UTC(2026, 0, 1);
const DAY = dayOf(T0);
const STREAM = "company_lookups";
const DIGESTS = { salt: "salt", normalization: 2 };
const keyOf = (number: number): string => String(number).padStart(16, "k");
const KEYS = [0, 1, 2].map(keyOf);
const [KEY = ""] = KEYS;

const newBook = (by = "me", ...streams: readonly string[]): Book =>
  new Book({
    ...{ author: { sync: "s", by }, digests: DIGESTS },
    streams: streams.map((name) => ({ name, truncates: false, generation: null })),
  });

/** A submission of one of a few moments: of one moment all memories say the same but how far it has come. */
const subAt = (most: number): fc.Arbitrary<Sub> =>
  fc
    .tuple(fc.nat(most), fc.constantFrom(...STEPS), fc.option(fc.nat(2)), fc.nat(1))
    .map(([nth, step, asked, misses]) => {
      const at = T0 + (nth * DAY_MS) / 2;
      const job = step === "open" || step === "unpaid" || step === "failed" ? `j${nth}` : null;
      const ended = step === "failed" ? at : null;
      return { ...newSub(`r${nth}.0`, at, dayOf(at), `s${nth % 2}`), step, asked, misses, job, ended };
    });

const HANDLE: fc.Arbitrary<Handle> = fc
  .tuple(fc.nat(5), fc.boolean(), fc.constantFrom("job", "sealed", "both"))
  .map(([nth, sure, kind]) => {
    const at = T0 + (nth * DAY_MS) / 2;
    const [job, sealed] = [kind === "sealed" ? null : `j${nth}`, kind === "job" ? null : "sealed"];
    return { id: `r${nth}.0`, at, day: dayOf(at), job, sealed, sure, cost: 1 };
  });

const byId = (subs: readonly Sub[]): Item["subs"] => Object.fromEntries(subs.map((sub) => [sub.id, sub]));

const itemOf = (most: number): fc.Arbitrary<Item> =>
  fc
    .tuple(fc.option(HANDLE), fc.option(fc.nat(3)), fc.array(subAt(most), { maxLength: 3 }))
    .map(([handle, day, subs]) => {
      const answered = handle?.day ?? (day === null ? "" : dayOf(T0 + day * DAY_MS));
      return joinItems(UNBOUGHT, { day: answered, handle, subs: byId(subs) });
    });
const ITEM = itemOf(5);

const DELTA: fc.Arbitrary<Delta> = fc.record({
  digests: fc.constant(DIGESTS),
  items: fc.dictionary(fc.nat(2).map(keyOf), itemOf(3), { maxKeys: 3 }).map(Object.entries<Item>),
  spent: fc.array(
    fc
      .tuple(fc.nat(1), fc.nat(1), fc.nat(3), fc.nat(3), fc.nat(9))
      .map(([sync, by, ...numbers]): Spending => [DAY, `s${sync}`, `r${by}`, ...numbers]),
    { maxLength: 3 },
  ),
  prices: fc.array(fc.tuple(fc.nat(60), fc.nat(4)), { maxLength: 40 }),
  blind: fc.array(
    fc.nat(2).map((generation): Blind => [STREAM, generation]),
    { maxLength: 1 },
  ),
});

const bookOf = (...deltas: readonly Delta[]): Book => {
  const book = newBook();
  for (const delta of deltas) book.add(delta, 0);
  return book;
};

/** Everything that a book knows. */
const known = (book: Book): unknown => [
  ...KEYS.map((key) => [book.get(key), book.canBeHad(key)]),
  ...book.toReceipts(() => true).map(({ spent, prices, blind }) => [new Set(spent), prices, blind]),
];

const LAWS = { numRuns: runs(300, 100_000) };
const BOOKS = { numRuns: runs(100, 20_000) };

describe("joinItems()", () => {
  it("is commutative, associative and idempotent", () => {
    fc.assert(
      fc.property(ITEM, ITEM, ITEM, (a, b, c) => {
        expect(joinItems(a, a)).toEqual(a);
        // What is known by its day alone is joined by a short way.
        const copy = { ...a, subs: { ...a.subs } };
        expect([joinItems(a, copy), joinItems(copy, b)]).toEqual([a, joinItems(a, b)]);
        expect(joinItems(a, b)).toEqual(joinItems(b, a));
        expect(joinItems(joinItems(a, b), c)).toEqual(joinItems(a, joinItems(b, c)));
      }),
      LAWS,
    );
  });

  it("clears what an answer of its day or later covers, and keeps the job for a stream that lacks it", () => {
    const open = { ...newSub("r.0", T0, DAY, "s"), step: "open", job: "j" } as const;
    const item = { ...UNBOUGHT, subs: { "r.0": open } };
    const answered = (day: number): Item => joinItems(item, { ...UNBOUGHT, day: dayOf(T0 + day * DAY_MS) });
    expect(answered(-1).subs).toEqual(item.subs);
    expect(answered(0)).toMatchObject({ subs: {}, handle: { job: "j", sure: false } });
    expect(answered(1)).toMatchObject({ subs: {}, handle: null });
  });
});

describe("higherHandle()", () => {
  it("keeps more ways to an answer, and surer, later and newer ones before that", () => {
    const both: Handle = { ...{ id: "r", at: T0, day: DAY, sure: true, cost: 1 }, job: "j", sealed: "s" };
    const better = [
      { ...both, day: dayOf(T0 + DAY_MS), sure: false },
      { ...both, at: T0 + 1, sealed: null },
      { ...both, cost: 2 },
    ];
    const worse = [
      { ...both, job: null },
      { ...both, sealed: null },
      { ...both, sure: false, at: T0 + 1 },
    ];
    const isKept = (one: Handle, other: Handle): boolean =>
      higherHandle(one, other) === one && higherHandle(other, one) === one;
    expect(better.map((one) => isKept(one, both))).toEqual(better.map(() => true));
    expect(worse.map((one) => isKept(both, one))).toEqual(worse.map(() => true));
  });
});

describe("addPrice()", () => {
  it("keeps the last fifty, by their moments, each once", () => {
    const prices = Array.from({ length: 60 }, (_, nth): Price => [T0 + nth, nth % 3]);
    const shuffled = prices.toSorted(([a, one], [b, other]) => one - other || a - b);
    const kept = [...shuffled, ...shuffled].reduce<readonly Price[]>(addPrice, []);
    expect(kept).toEqual(prices.slice(-50));
  });
});

describe("Book", () => {
  it("knows the same in whatever order and however often it is told", () => {
    fc.assert(
      fc.property(DELTA, DELTA, DELTA, (a, b, c) => {
        const all = known(bookOf(a, b, c));
        expect(known(bookOf(c, a, b, a))).toEqual(all);
        expect(known(bookOf(...bookOf(a, b).toReceipts(() => true), c))).toEqual(all);
      }),
      BOOKS,
    );
  });

  it("adds up what two runs charge that began with one memory, and counts nothing twice", () => {
    const [one, other, all] = [newBook("r1"), newBook("r2"), newBook("r3")];
    const before = one.intend(keyOf(0), T0).delta;
    other.add(before, 0);
    const { id, delta } = one.intend(keyOf(1), T0);
    const news = [
      before,
      delta,
      one.change(keyOf(1), id, { step: "open", job: "j" }),
      one.answered(keyOf(1), id, T0, 4, null),
    ];
    const theirs = other.intend(keyOf(2), T0);
    const back = other.notTaken(keyOf(2), theirs.id, "void", "INVALID_BODY");
    for (const told of [...news, theirs.delta, back, ...news, before]) all.add(told, 0);
    other.notTaken(keyOf(2), theirs.id, "refused", "INVALID_BODY");
    expect(all.charged(DAY).day).toEqual({ submitted: 2, credits: 4, open: 1 });
    expect(other.charged(DAY).day).toEqual({ submitted: 1, credits: 0, open: 1 });
  });

  it("charges what an answer clears, and no cost twice", () => {
    const book = bookOf();
    const lost = book.intend(KEY, T0);
    const { id, at } = book.intend(KEY, T0);
    expect(at).toBe(lost.at + 1);
    book.change(KEY, id, { step: "open", job: "j" });
    expect(book.charged(DAY).day).toEqual({ submitted: 2, credits: 0, open: 2 });
    book.answered(KEY, id, T0, 5, null);
    // The lost one counts with what was known of prices then.
    expect(book.charged(DAY).sync).toEqual({ submitted: 2, credits: 5 + 10, open: 0 });
    expect(book.answered(KEY, id, T0, 5, null).spent).toBeUndefined();
    expect(book.estimate).toBe(5);
  });

  it("charges an answer that cannot be taken in once, however often it is asked for", () => {
    const book = bookOf();
    const { id } = book.intend(KEY, T0);
    book.change(KEY, id, { step: "open", job: "j" });
    const asked = [0, 3, 3, null, 5, 4].map((cost) => book.chargeOpen(KEY, id, T0, cost).credits);
    expect(asked).toEqual([0, 3, 0, 0, 2, 0]);
    expect(book.charged(DAY).sync.credits).toBe(5);
  });

  it("tells the receipts what a state alone knows was spent", () => {
    const { digests } = newBook();
    const spent: Spending[] = [[DAY, "s", "r", 1, 0, 2]];
    const book = newBook();
    book.add({ digests, spent }, 0);
    book.add({ digests, spent });
    expect(book.newsToReceipts()).toEqual([]);
    book.add({ digests, spent: [[DAY, "s", "r", 1, 0, 3]] });
    expect(book.newsToReceipts()).toMatchObject([{ spent: [[DAY, "s", "r", 1, 0, 3]] }]);
  });

  it("never charges a day before one that was charged, and forgets the counters of two months ago", () => {
    const book = bookOf();
    book.intend(keyOf(0), T0);
    book.intend(keyOf(1), T0 + 63 * DAY_MS);
    book.intend(keyOf(2), T0 + 60 * DAY_MS);
    const last = dayOf(T0 + 63 * DAY_MS);
    expect(book.charged(last).day.submitted).toBe(2);
    expect(book.money(last).spent.map(([day]) => day)).toEqual([last]);
  });

  it("lets one item go when the newest three answers were lost, then one a day", () => {
    const book = bookOf();
    const probes: number[] = [];
    for (let nth = 0; nth < 4; nth++) {
      book.intend(keyOf(nth), T0 + nth);
      probes.push(book.probesLeft(T0 + nth));
    }
    expect([...probes, book.probesLeft(T0 + DAY_MS)]).toEqual([Infinity, Infinity, 1, 0, 1]);
    const { id } = book.intend(keyOf(4), T0 + DAY_MS);
    expect(book.probesLeft(T0 + DAY_MS)).toBe(0);
    book.change(keyOf(4), id, { step: "open", job: "j" });
    expect(book.probesLeft(T0 + DAY_MS)).toBe(Infinity);
    book.answered(keyOf(4), id, T0 + DAY_MS, 0, null);
    expect(book.probesLeft(T0 + DAY_MS)).toBe(Infinity);
  });

  it("keeps the jobs of five thousand answers that are owed, and of the others that they are paid", () => {
    const book = newBook("me", STREAM);
    const items = Array.from({ length: 5_001 }, (_, nth): [string, Item] => {
      const handle = { id: `r.${nth}`, at: T0, day: DAY, job: `j${nth}`, sealed: null, sure: true, cost: 1 };
      return [keyOf(nth), { ...UNBOUGHT, day: DAY, handle }];
    });
    book.add({ digests: book.digests, items });
    const [ledger] = book.ledgersFor(STREAM);
    expect(ledger?.jobs).toHaveLength(5_000);
    expect(ledger?.paid).toEqual([[DAY, keyOf(5_000)]]);
    book.deliver(STREAM, keyOf(0));
    const [after] = book.ledgersFor(STREAM);
    expect([after?.jobs.length, after?.done, after?.paid]).toEqual([5_000, [[DAY, keyOf(0)]], []]);
  });

  it("keeps few submissions that were not taken, and each that was lost", () => {
    const book = bookOf();
    for (let nth = 0; nth < 20; nth++) {
      const { id } = book.intend(KEY, T0);
      if (nth > 0) book.notTaken(KEY, id, "void", null);
    }
    expect(subsOf(book.get(KEY)).map(({ step }) => step)).toEqual(["unknown", ...Array(4).fill("void")]);
    expect(isSettled(book.get(KEY))).toBe(false);
  });
});
