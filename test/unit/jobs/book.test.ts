import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DAY_MS, type Day, dayOf } from "../../../src/base/time.ts";
import { Book, type Changes, type SavedJobs } from "../../../src/jobs/book.ts";
import { joinCharges, NO_CHARGES, type Price, type Spending } from "../../../src/jobs/charges.ts";
import {
  handleOf,
  type Item,
  isOut,
  joinItems,
  newSubmission,
  STEPS,
  type Submission,
  UNBOUGHT,
} from "../../../src/jobs/join.ts";
import { runs } from "../../support/runs.ts";

const T0 = Date.UTC(2026, 0, 1);
const DAY = dayOf(T0);
const STREAM = "company_lookups";
const SALT = { key: "salt", id: "id" };
const keyOf = (number: number): string => String(number).padStart(16, "k");
const KEYS = [0, 1, 2].map(keyOf);
const [KEY = ""] = KEYS;

const SAVED: SavedJobs = {
  ...{ items: [], delivered: [], spent: [], prices: [], inputs: [] },
  ...{ cursor: null, salt: "id", generation: null },
};

const LOOKUPS = { name: STREAM, isSelected: true, isRefresh: false, generation: null };
const newBook = (runId = "me"): Book => new Book({ salt: SALT, syncId: "s", runId, streams: [LOOKUPS] });

/** A submission of one of a few moments: of one moment all memories say the same but how far it has come. */
const subAt = (most: number): fc.Arbitrary<Submission> =>
  fc
    .tuple(fc.nat(most), fc.constantFrom(...STEPS), fc.option(fc.nat(2)), fc.option(fc.nat(1)))
    .map(([nth, step, asked, due]) => {
      const at = T0 + (nth * DAY_MS) / 2;
      const job = STEPS.indexOf(step) >= STEPS.indexOf("open") ? `j${nth}` : null;
      const sealed = step === "answered" && nth % 3 === 0 ? "sealed" : null;
      const id = `r${nth}.0`;
      return { ...newSubmission(id, at, `s${nth % 2}`), step, asked, due, job, sealed };
    });

const itemOf = (most: number): fc.Arbitrary<Item> =>
  fc
    .tuple(
      fc.option(fc.nat(3)),
      fc.uniqueArray(subAt(most), { maxLength: 4, selector: ({ id }) => id }),
      fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom<Day | "">("", DAY, dayOf(T0 + DAY_MS))),
      fc.boolean(),
    )
    .map(([day, subs, delivered, isNamed]) => {
      const last = day === null ? "" : dayOf(T0 + day * DAY_MS);
      return joinItems(UNBOUGHT, { day: last, subs, delivered, isNamed });
    });
const ITEM = itemOf(5);

const CHANGES: fc.Arbitrary<Changes> = fc.record({
  items: fc.dictionary(fc.nat(2).map(keyOf), itemOf(3), { maxKeys: 3 }).map(Object.entries<Item>),
  spent: fc.array(
    fc
      .tuple(fc.nat(1), fc.nat(1), fc.nat(3), fc.nat(3), fc.nat(9))
      .map(([sync, runId, ...numbers]): Spending => [DAY, `s${sync}`, `r${runId}`, ...numbers]),
    { maxLength: 3 },
  ),
  prices: fc.array(fc.tuple(fc.nat(60), fc.nat(4)), { maxLength: 40 }),
});

const bookOf = (...all: readonly Changes[]): Book => {
  const book = newBook();
  for (const changes of all) book.add(changes);
  return book;
};

/** All purchases and charges that a book knows. */
const known = (book: Book): unknown => [
  ...KEYS.map((key) => [book.get(key).day, book.get(key).subs]),
  { ...book.toReceipts(), items: [] },
];

const LAWS = { numRuns: runs(300, 100_000) };
const BOOKS = { numRuns: runs(100, 20_000) };

describe("joinItems()", () => {
  it("is commutative, associative and idempotent", () => {
    fc.assert(
      fc.property(ITEM, ITEM, ITEM, (a, b, c) => {
        expect(joinItems(a, a)).toEqual(a);
        expect(joinItems(a, b)).toEqual(joinItems(b, a));
        expect(joinItems(joinItems(a, b), c)).toEqual(joinItems(a, joinItems(b, c)));
      }),
      LAWS,
    );
  });

  it("drops a submission after a later answer, and keeps its job if the answer is of its day", () => {
    const open = { ...newSubmission("r.0", T0, "s"), step: "open", job: "j" } as const;
    const item = { ...UNBOUGHT, subs: [open] };
    const answered = (day: number): Item => joinItems(item, { ...UNBOUGHT, day: dayOf(T0 + day * DAY_MS) });
    expect(answered(-1).subs).toEqual(item.subs);
    expect(answered(0).subs).toEqual([{ ...open, step: "covered" }]);
    expect(answered(1).subs).toEqual([]);
  });
});

describe("handleOf()", () => {
  it("prefers the answered submission, then the newest covered one", () => {
    const of = (nth: number, step: "covered" | "answered"): Submission => ({
      ...{ ...newSubmission(`r.${nth}`, T0 + nth, "s"), step, job: "j" },
    });
    const item = (...subs: readonly Submission[]): Item => ({ ...UNBOUGHT, day: DAY, subs });
    expect(handleOf(item(of(0, "covered"), of(1, "answered"), of(2, "covered")))?.id).toBe("r.1");
    expect(handleOf(item(of(0, "covered"), of(1, "covered")))?.id).toBe("r.1");
    expect(handleOf(item())).toBeUndefined();
  });
});

describe("joinCharges()", () => {
  it("is commutative, associative and idempotent", () => {
    fc.assert(
      fc.property(CHANGES, CHANGES, CHANGES, (...all) => {
        const [a, b, c] = all.map((one) => joinCharges(NO_CHARGES, one)) as [Changes, Changes, Changes];
        expect(joinCharges(a, a)).toEqual(a);
        expect(joinCharges(a, b)).toEqual(joinCharges(b, a));
        expect(joinCharges(joinCharges(a, b), c)).toEqual(joinCharges(a, joinCharges(b, c)));
      }),
      LAWS,
    );
  });

  it("keeps the last fifty prices that cost something, and the last of all, each once", () => {
    const prices = Array.from({ length: 100 }, (_, nth): Price => [T0 + nth, nth % 3]);
    const shuffled = prices.toSorted(([a, one], [b, other]) => one - other || a - b);
    const kept = [...shuffled, ...shuffled].reduce(
      (known, price) => joinCharges(known, { spent: [], prices: [price] }),
      NO_CHARGES,
    );
    const paid = prices.filter(([, credits]) => credits > 0).slice(-50);
    expect(kept.prices).toEqual([...paid, [T0 + 99, 0]].sort(([a = 0], [b = 0]) => a - b));
  });

  it("forgets the counters of two months ago", () => {
    const days = [0, 1, 2, 62].map((nth): Spending => [dayOf(T0 + nth * DAY_MS), "s", "r", 1, 0, 0]);
    expect(joinCharges(NO_CHARGES, { spent: days, prices: [] }).spent).toEqual(days.slice(1));
  });
});

/** The charges of today. */
const today = (book: Book, now = T0) => book.account(now).day;

describe("Book", () => {
  it("knows the same in whatever order and however often it reads its texts", () => {
    fc.assert(
      fc.property(CHANGES, CHANGES, CHANGES, (a, b, c) => {
        const all = known(bookOf(a, b, c));
        expect(known(bookOf(c, a, b, a))).toEqual(all);
        expect(known(bookOf(bookOf(a, b).toReceipts(), c))).toEqual(all);
        const rest = bookOf(b, c);
        const missing = bookOf(a);
        missing.takeChanges();
        missing.add(b);
        expect(known(bookOf(a, missing.takeChanges(), rest.toReceipts()))).toEqual(all);
        expect(Object.values(missing.takeChanges()).flat()).toEqual([]);
      }),
      BOOKS,
    );
  });

  it("is known from its changes, in whatever order they are read, whatever happens and however clocks jump", () => {
    const event = fc.record({
      kind: fc.constantFrom("intend", "taken", "asked", "failed", "void", "refused", "charged", "answered"),
      key: fc.constantFrom(...KEYS),
      at: fc.nat(3 * DAY_MS),
      cost: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 25 }), fc.infiniteStream(fc.nat()), (events, order) => {
        const book = newBook();
        const changes: Changes[] = [];
        for (const { kind, key, at, cost } of events) {
          const now = T0 + at;
          const { id = "", step } = book.get(key).subs.at(-1) ?? {};
          if (kind === "intend") book.intend(key, now);
          else if (kind === "charged") book.chargeUnusable(key, id, now, cost);
          else if (kind === "answered") book.answered(key, id, now, cost, null);
          else if (kind === "asked") book.change(key, id, { asked: now, due: now + cost, code: null });
          else if (step === "unknown" && kind === "taken") book.change(key, id, { step: "open", job: id });
          else if (step === "unknown" && kind !== "failed" && kind !== "taken")
            book.notTaken(key, id, kind, null);
          else if (step === "open") book.change(key, id, { step: "failed", asked: now });
          changes.push(book.takeChanges());
        }
        const shuffled = [...changes, ...changes].map((one) => [order.next().value ?? 0, one] as const);
        shuffled.sort(([a], [b]) => a - b);
        expect(known(bookOf(...shuffled.map(([, one]) => one)))).toEqual(known(book));
      }),
      BOOKS,
    );
  });

  it("adds up what two runs charge that began with one memory, and counts nothing twice", () => {
    const [one, other, all] = [newBook("r1"), newBook("r2"), newBook("r3")];
    one.intend(keyOf(0), T0);
    const before = one.takeChanges();
    other.add(before);
    const { id } = one.intend(keyOf(1), T0);
    const first = [before, one.takeChanges()];
    one.change(keyOf(1), id, { step: "open", job: "j" });
    first.push(one.takeChanges());
    one.answered(keyOf(1), id, T0, 4, null);
    first.push(one.takeChanges());
    const theirs = other.intend(keyOf(2), T0);
    const intent = other.takeChanges();
    other.notTaken(keyOf(2), theirs.id, "void", "INVALID_BODY");
    for (const read of [...first, intent, other.takeChanges(), ...first, before]) all.add(read);
    other.notTaken(keyOf(2), theirs.id, "refused", "INVALID_BODY");
    // The first run may be dead, so its intent counts with the price that is known, or with ten credits.
    expect(today(all)).toEqual({ submitted: 2, credits: 4 + 4, open: 0 });
    expect(today(other)).toEqual({ submitted: 1, credits: 10, open: 0 });
  });

  it("charges what an answer clears, and no cost twice", () => {
    const book = newBook();
    const lost = book.intend(KEY, T0);
    const { id, at } = book.intend(KEY, T0);
    expect(at).toBe(lost.at + 1);
    book.change(KEY, id, { step: "open", job: "j" });
    expect(today(book)).toEqual({ submitted: 2, credits: 0, open: 2 });
    book.answered(KEY, id, T0, 5, null);
    // The lost one counts with what was known of prices then.
    expect(book.account(T0).sync).toEqual({ submitted: 2, credits: 5 + 10, open: 0 });
    book.takeChanges();
    book.answered(KEY, id, T0, 5, null);
    expect(book.takeChanges().spent).toEqual([]);
    expect(book.account(T0).price).toBe(5);
  });

  it("charges an answer that cannot be used once, however often it is asked for", () => {
    const book = newBook();
    const { id } = book.intend(KEY, T0);
    book.change(KEY, id, { step: "open", job: "j" });
    const charged = [0, 3, 3, 0, 5, 4].map((cost) => book.chargeUnusable(KEY, id, T0, cost));
    expect(charged).toEqual([0, 3, 0, 0, 2, 0]);
    book.answered(KEY, id, T0, 7, null);
    expect(today(book)).toEqual({ submitted: 1, credits: 7, open: 0 });
  });

  it("allows one submission after three lost answers, then one a day; a kill does not count", () => {
    const probes = (book: Book, now: number): number => book.account(now).probes;
    const [book, killed] = [newBook(), newBook()];
    const after: number[] = [];
    for (let nth = 0; nth < 4; nth++) {
      const { id } = book.intend(keyOf(nth), T0 + nth);
      book.change(keyOf(nth), id, { asked: T0 + nth });
      after.push(probes(book, T0 + nth));
      killed.intend(keyOf(nth), T0 + nth);
    }
    expect([...after, probes(book, T0 + DAY_MS)]).toEqual([Infinity, Infinity, 1, 0, 1]);
    expect(probes(killed, T0 + 5)).toBe(Infinity);
    const { id } = book.intend(keyOf(4), T0 + DAY_MS);
    book.change(keyOf(4), id, { step: "open", job: "j" });
    expect(probes(book, T0 + DAY_MS)).toBe(Infinity);
    book.answered(keyOf(4), id, T0 + DAY_MS, 0, null);
    expect(probes(book, T0 + DAY_MS)).toBe(Infinity);
  });

  it("keeps the jobs of five thousand answers that are not delivered, and the days of the others", () => {
    const book = newBook();
    const items = Array.from({ length: 5_001 }, (_, nth): [string, Partial<Item>] => {
      const one = { ...newSubmission(`r.${nth}`, T0, "s"), step: "answered", job: `j${nth}` } as const;
      return [keyOf(nth), { day: DAY, subs: [one] }];
    });
    book.addState(LOOKUPS, { ...SAVED, items });
    const before = book.toState(STREAM);
    expect(before).toMatchObject({ items: [...items.slice(0, -1), [keyOf(5_000), { day: DAY, subs: [] }]] });
    book.deliver(STREAM, keyOf(0));
    expect(book.toState(STREAM)).toMatchObject({ items: items.slice(1), delivered: [[keyOf(0), DAY]] });
  });

  it("keeps few submissions that were not taken, and each that was lost", () => {
    const book = newBook();
    for (let nth = 0; nth < 20; nth++) {
      const { id } = book.intend(KEY, T0);
      if (nth > 0) book.notTaken(KEY, id, "void", null);
    }
    expect(book.get(KEY).subs.map(({ step }) => step)).toEqual(["unknown", ...Array(4).fill("void")]);
    expect(book.get(KEY).subs.some(isOut)).toBe(true);
  });
});

type Case = {
  readonly cap?: number;
  readonly credits?: number;
  readonly open?: number;
  /** Prices, the newest last. */
  readonly prices?: readonly number[];
  readonly knows?: Item;
  readonly rules?: { readonly refreshAfterDays?: number; readonly retryUnknown?: boolean };
};

const sub = (fields: Partial<Submission>, days = 0): Item => {
  const at = T0 - days * DAY_MS;
  return { ...UNBOUGHT, subs: [{ ...newSubmission("r.0", at, "old"), asked: at, ...fields }] };
};
const lost = (times: number): Item => {
  const at = T0 - DAY_MS;
  const one = { ...newSubmission("r.0", at, "old"), asked: at };
  return { ...UNBOUGHT, subs: Array.from({ length: times }, (_, nth) => ({ ...one, id: `r.${nth}` })) };
};
const answeredDaysAgo = (days: number): Item => ({ ...UNBOUGHT, day: dayOf(T0 - days * DAY_MS) });

/** The one question before money is spent: an entry, what is charged, and the answer. */
describe("mayBuy()", () => {
  it.each<[what: string, is: boolean, given: Case]>([
    ["an item that is new", true, {}],
    ["a cap of 0", false, { cap: 0 }],
    ["a cap that is used up", false, { credits: 10, prices: [1] }],
    ["no price, and nothing open", true, {}],
    ["no price, and a job open", false, { open: 1 }],
    ["answers without a cost, and a job open", false, { open: 1, prices: [0, 0] }],
    ["room for one more at the price", true, { open: 2, prices: [3] }],
    ["room for no more at the price", false, { open: 3, prices: [3] }],
    ["the highest price, which decides", false, { open: 3, prices: [9, 1, 1] }],
    ["a price as high as the cap, alone", true, { credits: 9, prices: [10] }],
    ["a price as high as the cap, not alone", false, { credits: 1, open: 1, prices: [10] }],
    ["an open job", false, { knows: sub({ step: "open", job: "j" }) }],
    ["a lost answer", false, { knows: sub({}, 400) }],
    ["a lost answer, with retry_unknown", true, { cap: 11, knows: sub({}), rules: { retryUnknown: true } }],
    ["a fourth lost answer", false, { cap: 99, knows: lost(4), rules: { retryUnknown: true } }],
    ["a third lost answer", true, { cap: 99, knows: lost(3), rules: { retryUnknown: true } }],
    ["a refusal of 29 days ago", false, { knows: sub({ step: "refused" }, 29) }],
    ["a refusal of 30 days ago", true, { knows: sub({ step: "refused" }, 30) }],
    ["a failure of now", false, { knows: sub({ step: "failed" }) }],
    ["a failure of a day ago", true, { knows: sub({ step: "failed" }, 1) }],
    ["a refusal of its form", true, { knows: sub({ step: "void", code: "INVALID_BODY" }) }],
    ["an answer", false, { knows: answeredDaysAgo(400) }],
    ["an answer that is old enough", true, { knows: answeredDaysAgo(31), rules: { refreshAfterDays: 30 } }],
    ["an answer that is not", false, { knows: answeredDaysAgo(30), rules: { refreshAfterDays: 30 } }],
  ])("%s: %s", (_what, is, { cap = 10, credits = 0, open = 0, prices = [], knows = UNBOUGHT, rules }) => {
    const book = bookOf({
      items: [
        [KEY, knows],
        ...Array.from({ length: open }, (_, nth): [string, Item] => {
          const one = { ...newSubmission(`o.${nth}`, T0, "s"), step: "open", job: "j" } as const;
          return [keyOf(nth + 10), { ...UNBOUGHT, subs: [one] }];
        }),
      ],
      spent: [[DAY, "s", "r", open, 0, credits]],
      prices: prices.map((one, nth): Price => [T0 - 100 + nth, one]),
    });
    const type = {
      resubmitRules: { refreshAfterDays: null, retryUnknown: false, ...rules },
      caps: { submissions: { sync: 100, day: 100 }, credits: { sync: cap, day: cap, month: cap } },
    };
    expect(book.mayBuy(KEY, type, T0)).toBe(is);
  });

  it("waits for open jobs once an answer cost more than all before", () => {
    const book = newBook();
    const type = {
      resubmitRules: { refreshAfterDays: null, retryUnknown: false },
      caps: {
        submissions: { sync: 100, day: 100 },
        credits: { sync: 1e9, day: Number.POSITIVE_INFINITY, month: Number.POSITIVE_INFINITY },
      },
    };
    const open = (nth: number): string => {
      const { id } = book.intend(keyOf(nth), T0 + nth);
      book.change(keyOf(nth), id, { step: "open", job: "j" });
      return id;
    };
    const ids = [1, 2, 3, 4].map(open);
    const answer = (nth: number, cost: number): boolean => {
      book.answered(keyOf(nth), ids[nth - 1] ?? "", T0 + 10 + nth, cost, null);
      return book.mayBuy(keyOf(9), type, T0 + 20);
    };
    expect([answer(1, 5), answer(2, 90), answer(3, 1), answer(4, 90)]).toEqual([true, false, false, true]);
  });
});
