import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Book } from "../../../src/jobs/book.ts";
import { newDigests } from "../../../src/jobs/identity.ts";
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
import { parseJobState, tellBook } from "../../../src/jobs/state.ts";
import { reasonToSubmit } from "../../../src/jobs/wanted.ts";
import { DAY_MS, dayOf } from "../../../src/time.ts";
import { dice } from "../../support/dice.ts";
import { bookFrom, keyIn, newBook, LOOKUPS as SPEC, stateOf } from "../../support/job-books.ts";
import { runs } from "../../support/runs.ts";

const T0 = Date.UTC(2026, 0, 1);
const DAY = dayOf(T0);
const STREAM = SPEC.name;
const keyOf = (number: number): string => String(number).padStart(16, "k");
const KEYS = [0, 1, 2].map(keyOf);
const [KEY = ""] = KEYS;

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
  digests: fc.constant(newDigests("salt")),
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

const RULES = fc.record({ refreshAfterDays: fc.option(fc.nat(20)), retryUnknown: fc.boolean() });
const LAWS = { numRuns: runs(1_000, 100_000) };
const BOOKS = { numRuns: runs(200, 20_000) };

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

  it("never buys more by knowing more, unless an answer settles what was out", () => {
    const others = ITEM.map((item) => ({
      ...item,
      subs: byId(subsOf(item).map((sub) => ({ ...sub, id: `o${sub.id}` }))),
    }));
    fc.assert(
      fc.property(ITEM, others, RULES, fc.nat(60), (item, more, rules, days) => {
        const both = joinItems(item, more);
        if (both.day !== item.day) return;
        const now = T0 + days * DAY_MS;
        if (reasonToSubmit(both, rules, now) !== undefined)
          expect(reasonToSubmit(item, rules, now)).toBeDefined();
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

  it("comes back from a state: what is out, what is owed, and by what it can be had", () => {
    fc.assert(
      fc.property(DELTA, DELTA, fc.array(fc.nat(2)), (a, b, delivered) => {
        const book = bookOf();
        for (const delta of [a, b]) book.add(delta);
        for (const nth of delivered) book.deliver(STREAM, keyOf(nth));
        const saved = parseJobState(SPEC, stateOf(book, T0, { generation: 3 }));
        if (saved === null) throw new Error("no state");
        expect(saved).toMatchObject({ cursor: null, service: "here", generation: 3 });
        const again = bookOf();
        tellBook(again, STREAM, saved, true);
        for (const key of KEYS) {
          expect([again.get(key).day, again.get(key).subs]).toEqual([book.get(key).day, book.get(key).subs]);
          expect(again.owes(STREAM, key)).toBe(book.owes(STREAM, key));
          const job = book.handle(key)?.job ?? null;
          if (book.owes(STREAM, key) && job !== null) expect(again.handle(key)?.job).toBe(job);
        }
        expect(again.charged(DAY)).toEqual(book.charged(DAY));
        // Joined with what it was made of, nothing is new.
        tellBook(book, STREAM, saved, false);
        expect(known(book)).toEqual(known(bookOf(a, b)));
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

/**
 * What a run is given and leaves: each copy of a memory with the submissions that it knows, and the generations, such as
 * "company_lookups 3", that began without knowing an answer and got one.
 */
type Copy<Kept> = {
  readonly kept: Kept;
  readonly knows: ReadonlySet<string>;
  readonly blind: ReadonlySet<string>;
};
type Receipts = { readonly salt: string; readonly lines: readonly Delta[] };

/** `isFinal`: it did not fail. `isTold`: a memory knows its job. */
type Purchase = { id: string; item: string; at: number; isFinal: boolean; isTold: boolean };

/** A stream on the platform: its states, the generation that is filled, whether the older ones are dropped then, its rows. */
class Table {
  readonly spec: typeof SPEC;
  readonly states: Copy<unknown>[] = [];
  /** Items, and the generations that brought their newest rows. */
  readonly rows = new Map<string, number>();
  generation = 0;
  truncates = false;

  constructor(spec: typeof SPEC) {
    this.spec = spec;
  }
}

/** A service, a platform and machines: dice decide at each turn what happens. */
class History {
  readonly violations: string[] = [];
  readonly bought: Purchase[] = [];
  readonly itemOf = new Map<string, string>();
  readonly dayOf = new Map<string, string>();
  /** Such as "company_lookups r0.0". */
  readonly delivered = new Set<string>();
  readonly tables = [SPEC, { ...SPEC, name: "company_lookup_contacts" }].map((spec) => new Table(spec));
  readonly receipts: Copy<Receipts>[] = [];
  /** Whether a memory was lost, or an older one came back. */
  isWhole = true;
  now = T0;
  /** A number below the most. */
  readonly pick: (most: number) => number;
  #runs = 0;

  constructor(seed: number) {
    this.pick = dice(seed);
  }

  /** One run, or two at once on two machines, which go on in turn and may be killed. `isLast`: nothing goes wrong any more. */
  play(isLast: boolean, hasReceipts: boolean): void {
    const tables = isLast
      ? this.tables
      : [this.tables, this.tables.slice(0, 1), this.tables.slice(1)][this.pick(3)];
    for (const table of tables ?? [])
      if (isLast ? !table.truncates : this.pick(4) === 3) {
        table.generation += 1;
        table.truncates = true;
      }
    const areTwo = !isLast && this.pick(6) === 5;
    if (areTwo) this.isWhole = false;
    const runs = (areTwo ? [0, 1] : [0]).map(() => this.#run(tables ?? [], isLast, hasReceipts));
    while (runs.length > 0) {
      const nth = runs.length > 1 ? this.pick(2) : 0;
      const isKilled = !isLast && this.pick(12) === 11;
      if (isKilled || runs[nth]?.next().done !== false) runs.splice(nth, 1);
    }
  }

  /** Whoever plays it may end it where it yields. */
  *#run(tables: readonly Table[], isLast: boolean, hasReceipts: boolean): Generator<void, void> {
    const isAllLost = !isLast && this.pick(6) === 5;
    if (isAllLost) this.isWhole = false;
    const given = <Kept>(copies: readonly Copy<Kept>[]): Copy<Kept> | undefined =>
      isAllLost ? undefined : isLast ? copies.at(-1) : this.#memory(copies);
    const states = this.tables.map((table) => ({ ...table, state: given(table.states) }));
    const lines = hasReceipts ? given(this.receipts) : undefined;
    const copies = [lines, ...states.map(({ state }) => state)];
    const knows = new Set(copies.flatMap((copy) => [...(copy?.knows ?? [])]));
    const blind = new Set(copies.flatMap((copy) => [...(copy?.blind ?? [])]));
    const saved = states.map(({ spec, state }) => parseJobState(spec, state?.kept));
    const salts = saved
      .map((one) => one?.ledgers[0]?.digests.salt)
      .filter((salt) => typeof salt === "string");
    const salt = lines?.kept.salt ?? salts[0] ?? `salt${this.#runs}`;
    const by = `r${this.#runs++}`;
    const refreshAfterDays = !isLast && this.pick(3) === 2 ? 1 : null;
    const refreshes = tables
      .filter(({ truncates }) => truncates)
      .map(({ spec, generation }) => [spec.name, generation] as const);
    const [author, digests] = [{ sync: by, by }, newDigests(salt)];
    const streams = tables.map(({ spec: { name }, ...table }) => ({ name, ...table }));
    const book = new Book({ author, digests, isFromRows: true, streams });
    for (const line of lines?.kept.lines ?? []) book.add(line, 0);
    for (const [nth, { spec, generation }] of states.entries()) {
      const known = saved[nth] ?? null;
      if (known !== null) tellBook(book, spec.name, known, known.generation === generation);
    }
    const written = [...(lines?.kept.lines ?? [])];
    const write = (...news: readonly Delta[]): void => {
      written.push(...news);
      const kept = { salt, lines: [...written] };
      if (hasReceipts) this.receipts.push({ kept, knows: new Set(knows), blind: new Set(blind) });
    };
    write(...book.newsToReceipts());
    const named = ["a.example", "b.example", "c.example"].filter(() => isLast || this.pick(4) > 0);
    const keys = new Map(named.map((item) => [keyIn(book, item), item]));
    const knewNothing = book.isBlind("", null);
    // The first stream of a run submits for all.
    for (const [nth, table] of tables.entries()) {
      const { spec, generation, truncates, rows } = table;
      const stream = spec.name;
      const save = (): void => {
        const kept = stateOf(book, this.now, { generation }, spec);
        // What only the receipts know of an item that no list names is not in the state.
        const again = bookFrom(kept, spec);
        const isIn = (id: string): boolean => {
          const { day, subs } = again.get(keyIn(again, this.itemOf.get(id) ?? ""));
          return day >= (this.dayOf.get(id) ?? "") || subs[id] !== undefined;
        };
        table.states.push({ kept, knows: new Set([...knows].filter(isIn)), blind: new Set(blind) });
      };
      const deliverAll = function* (this: History): Generator<void> {
        for (const key of [...book.undelivered(stream)]) {
          const id = book.handle(key)?.job;
          if (typeof id !== "string") continue;
          this.delivered.add(`${stream} ${id}`);
          book.deliver(stream, key);
          rows.set(this.itemOf.get(id) ?? "", generation);
          yield;
        }
      }.bind(this);
      save();
      for (const [key, item] of book.inFull())
        for (const { id, job } of subsOf(item).filter(({ step }) => step === "open")) {
          yield;
          if (!isLast && this.pick(3) === 0) continue;
          const purchase = this.bought.find((one) => one.id === job);
          if (purchase?.isFinal === false) {
            book.change(key, id, { step: "failed", ended: this.now, code: "X" });
            continue;
          }
          // Who only knows that nothing was known may be told of answers by other memories.
          for (const refresh of knewNothing ? refreshes : []) blind.add(refresh.join(" "));
          write(book.answered(key, id, this.now, 1, null));
          yield;
          if (this.pick(3) > 0) save();
        }
      yield* deliverAll();
      save();
      for (const [key, item] of nth === 0 ? keys : []) {
        if (reasonToSubmit(book.get(key), { refreshAfterDays, retryUnknown: false }, this.now) === undefined)
          continue;
        // A cap is reached.
        if (!isLast && this.pick(6) === 5) break;
        const { id, at, delta } = book.intend(key, this.now);
        knows.add(id);
        this.itemOf.set(id, item);
        this.dayOf.set(id, dayOf(at));
        write(delta);
        yield;
        // Where there are no receipts a state has to say it.
        if (!hasReceipts || this.pick(2) === 0) save();
        yield;
        const outcome = isLast ? 0 : this.pick(6);
        if (outcome === 5) {
          write(book.notTaken(key, id, this.pick(2) === 0 ? "void" : "refused", null));
          continue;
        }
        for (const before of this.bought.filter(
          (one) => one.item === item && one.isFinal && knows.has(one.id),
        ))
          if (refreshAfterDays === null || dayOf(before.at + refreshAfterDays * DAY_MS) >= dayOf(at))
            this.violations.push(`${item} was bought as ${before.id} and again as ${id}`);
        const purchase = { id, item, at, isFinal: outcome !== 4, isTold: false };
        this.bought.push(purchase);
        if (outcome === 3) continue;
        yield;
        write(book.change(key, id, { step: "open", job: id }));
        purchase.isTold = true;
        if (this.pick(3) > 0) save();
      }
      const isBlind = truncates && book.isBlind(stream, generation);
      if (isBlind) write(book.markBlind());
      save();
      yield;
      if (!truncates || !book.isComplete(stream, isBlind)) continue;
      table.truncates = false;
      for (const [item, since] of rows) {
        if (since === generation) continue;
        rows.delete(item);
        // Once both memories are lost and know other items, nothing tells that this one was there.
        if (named.includes(item) && (this.isWhole || knewNothing || blind.has(`${stream} ${generation}`)))
          this.violations.push(`${item} was dropped from ${stream}`);
      }
    }
  }

  /** The newest memory, sometimes an older one, seldom none. */
  #memory<Kept>(copies: readonly Copy<Kept>[]): Copy<Kept> | undefined {
    const fate = this.pick(8);
    if (fate >= 6) this.isWhole = false;
    return fate === 7 ? undefined : copies.at(fate === 6 ? -1 - this.pick(copies.length + 1) : -1);
  }
}

describe("Book: whose an item is", () => {
  const open = (key: string): Delta => ({
    digests: newDigests("salt"),
    items: [[key, { ...UNBOUGHT, subs: { x: { ...newSub("x", T0, DAY, "s"), step: "open", job: "j" } } }]],
  });

  it("stays this connection's although another state has it among others', and the other way round", () => {
    const keysIn = (book: Book) => {
      const [{ jobs, others } = { jobs: [], others: [] }] = book.ledgersFor(STREAM);
      return [jobs.map(([key]) => key), others.map(([key]) => key)];
    };
    const book = newBook("me", STREAM);
    for (const nth of [0, 1]) book.add(open(keyOf(nth)));
    for (const nth of [0, 1, 2, 3]) book.addOthers(open(keyOf(nth)));
    expect(keysIn(book)).toEqual([
      [keyOf(0), keyOf(1)],
      [keyOf(2), keyOf(3)],
    ]);
    book.add(open(keyOf(3)));
    expect(keysIn(book)[1]).toEqual([keyOf(2)]);
  });

  it.each([
    [false, false, false],
    [true, false, true],
    [true, true, false],
  ])(
    "is wanted without being named where rows name items (%s), unless a refresh drops others (%s): %s",
    (isFromRows, truncates, isWanted) => {
      const options = { author: { sync: "s", by: "me" }, digests: newDigests("salt"), isFromRows };
      const book = new Book({ ...options, streams: [{ name: STREAM, truncates, generation: null }] });
      const handle = { id: "x", at: T0, day: DAY, job: "j", sealed: null, sure: true, cost: 1 };
      for (const key of [KEY, keyIn(book, "named.example")])
        book.add({ digests: book.digests, items: [[key, { ...UNBOUGHT, day: DAY, handle }]] });
      expect([book.isWanted(KEY), book.isWanted(keyIn(book, "named.example"))]).toEqual([isWanted, true]);
      expect([...book.undelivered(STREAM)].includes(KEY)).toBe(isWanted);
    },
  );

  it("stands under the newest way of making digests once a run names it, although its key is the same", () => {
    const book = newBook("me", STREAM);
    const entry = { item: "a.example", kind: "domain", text: "a.example" } as const;
    const older = { salt: "salt", normalization: 1 };
    const key = newBook().keyOf(entry);
    book.add({ digests: older, days: [[DAY, key]] }, undefined, STREAM);
    const made = () =>
      book.ledgersFor(STREAM).map(({ digests, done }) => [digests.normalization, done.flat().length]);
    expect(made()).toEqual([
      [newDigests("salt").normalization, 0],
      [1, 2],
    ]);
    expect(book.keyOf(entry)).toBe(key);
    expect(made()).toEqual([[newDigests("salt").normalization, 2]]);
  });

  it("holds the handle of a newer answer, though that of an older one stands in the receipts", () => {
    const handle = { id: "x", at: T0, day: DAY, job: "j", sealed: null, sure: true, cost: 1 };
    const next = { ...handle, id: "y", at: T0 + DAY_MS, day: dayOf(T0 + DAY_MS), sure: false };
    const options = { author: { sync: "s", by: "me" }, digests: newDigests("salt"), handleAt: () => handle };
    const book = new Book({ ...options, streams: [{ name: STREAM, truncates: false, generation: null }] });
    const tell = (of: Handle, day: Item["day"], place?: number): void =>
      book.add({ digests: book.digests, items: [[KEY, { ...UNBOUGHT, day, handle: of }]] }, place);
    tell(handle, DAY, 7);
    expect(book.handle(KEY)).toEqual(handle);
    tell(next, next.day);
    expect(book.handle(KEY)).toEqual(next);
  });

  it("counts an answer of the very moment of lost ones as one that came after them", () => {
    const book = newBook("me", STREAM);
    const lose = (nth: number): void => void book.intend(keyOf(nth), T0);
    for (const nth of [0, 1, 2]) lose(nth);
    expect(book.probesLeft(T0)).toBe(1);
    book.answered(keyOf(3), book.intend(keyOf(3), T0).id, T0, 1, null);
    expect(book.probesLeft(T0)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("histories of runs of two streams that are killed, refreshes and two at once among them, with memories that are lost, old and under other salts", () => {
  it.each([true, false])(
    "buy nothing twice that a memory knew, deliver what was answered, and drop nothing (receipts: %s)",
    (hasReceipts) => {
      fc.assert(
        fc.property(fc.nat(2 ** 31), fc.integer({ min: 2, max: 8 }), (seed, lives) => {
          const history = new History(seed);
          for (let run = 0; run < lives; run++) {
            history.play(false, hasReceipts);
            history.now += [0, DAY_MS / 2, DAY_MS, 3 * DAY_MS][history.pick(4)] ?? 0;
          }
          const { isWhole } = history;
          const told = history.bought.filter(({ isFinal, isTold }) => isFinal && isTold);
          for (let run = 0; run < 2; run++) history.play(true, hasReceipts);
          expect(history.violations).toEqual([]);
          const newest = new Map(told.map(({ item, id }) => [item, id]));
          if (isWhole && hasReceipts)
            for (const { spec } of history.tables)
              expect(
                [...newest.values()].filter((id) => !history.delivered.has(`${spec.name} ${id}`)),
              ).toEqual([]);
        }),
        { numRuns: runs(300, 4_000) },
      );
    },
  );
});
