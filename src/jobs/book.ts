import { isDeepStrictEqual } from "node:util";
import { addDays, BEGINNING, type Day, dayOf } from "../time.ts";
import { type Charged, type ChargedSoFar, estimateOf, monthOf } from "./caps.ts";
import { type Digesting, digestOf, digestsOf, isSameDigesting } from "./identity.ts";
import type { Entry } from "./items.ts";
import {
  type Delta,
  type Handle,
  higherHandle,
  type Item,
  isOut,
  isSettled,
  joinItems,
  joinPrices,
  joinSpending,
  newSub,
  newsOf,
  type Price,
  partsOfSpending,
  type Spending,
  type Sub,
  spendingKey,
  subsOf,
  trimmed,
  UNBOUGHT,
} from "./lattice.ts";
import { Column, DigestTable, dayOfNumber, numberOfDay } from "./packed.ts";

/** Days for which what was spent is kept: two months. */
const DAYS_KEPT = 62;

/** Answers that are not delivered and can be asked for stand in a state in full: at most 5,000. */
const MOST_IN_FULL = 5_000;

/** Where the pass over a stream of inputs got to. */
export type InputCursor = {
  readonly from: string;
  /** The filters it was made under. */
  readonly filters: string;
  /** Everything up to this day needs no second look. */
  readonly through: Day;
  /** When the stream was last read from its beginning. */
  readonly full: Day;
};

/** Who submits: a sync, which may be tried in several runs, and this run. */
export type Author = { readonly sync: string; readonly by: string };

export type BookOptions = {
  readonly author: Author;
  /** The streams of the setting that are selected. What one lacks another's state must not forget. */
  readonly streams?: readonly string[];
  /** How new items are turned into digests. */
  readonly digests: Digesting;
  /** Whether rows of streams name items, so that those that this connection knows are wanted although no list names them. */
  readonly isFromRows?: boolean;
  /** Reads the handle of an item from a place in the receipts. */
  handleAt?(place: number, key: string): Handle | null;
};

/** Items under one way of making digests, as a state of one stream holds them. */
export type Ledger = {
  readonly digests: Digesting;
  readonly jobs: readonly (readonly [string, Item])[];
  /** Packed digests by the day of the answer: what the stream has delivered, and what it has not. */
  readonly done: readonly (readonly [Day, string])[];
  readonly paid: readonly (readonly [Day, string])[];
};

/** What is known of a row. The receipts do not know it: `LACKING`. It was answered when this run began: `ANSWERED`. */
const OWN = 1;
const NAMED = 2;
const LACKING = 4;
const ANSWERED = 8;

type Full = Pick<Item, "handle" | "subs">;

/**
 * What is known of the purchases of one setting's items: the only place where an item comes to another step. Items that
 * are answered are rows of flat tables; others stand in full. Each change returns what the receipts must hold before the
 * run goes on. Keys are digests; a key of older digests stays good when its item is moved to a newer one.
 */
export class Book {
  readonly digests: Digesting;
  readonly inputs = new Map<string, InputCursor>();
  readonly #options: BookOptions;
  readonly #table = new DigestTable();
  readonly #days = new Column(this.#table);
  /** The places in the receipts at which handles stand; less than 0 for one that is not sure. */
  readonly #places = new Column(this.#table, new Float64Array(0));
  readonly #flags = new Column(this.#table, new Uint8Array(0));
  readonly #madeBy = new Column(this.#table, new Uint8Array(0));
  readonly #full = new Map<number, Full>();
  /** For each stream the day of the newest answer that its own state says is delivered. */
  readonly #delivered = new Map<string, Column>();
  readonly #digestings: Digesting[];
  readonly #moved = new Map<string, string>();
  readonly #spent = new Map<string, Spending>();
  readonly #blind = new Map<string, number>();
  #prices: readonly Price[] = [];
  #isMoneyNews = false;
  #submitted = 0;

  constructor(options: BookOptions) {
    this.#options = options;
    this.digests = options.digests;
    this.#digestings = [options.digests];
  }

  /** How many items are known. */
  get size(): number {
    let size = 0;
    for (let row = 0; row < this.#table.size; row++)
      if (this.#days.get(row) > 0 || this.#full.has(row)) size += 1;
    return size;
  }

  /** The items that are known by more than the day of their answer. */
  *inFull(): Generator<[string, Item]> {
    for (const row of [...this.#full.keys()]) yield [this.#table.keyAt(row), this.#item(row)];
  }

  /** What is known of an item. Its handle may be known to the receipts alone: see `handle`. */
  get(key: string): Item {
    const row = this.#find(key);
    return row === undefined ? UNBOUGHT : this.#item(row);
  }

  /** By what the newest answer of an item can be had again. May read the receipts. */
  handle(key: string): Handle | null {
    const row = this.#find(key);
    return row === undefined ? null : this.#handle(row);
  }

  /** Whether the newest answer of an item can be had again. */
  canBeHad(key: string): boolean {
    const row = this.#find(key);
    return row !== undefined && this.#canBeHad(row);
  }

  /** The key of an item that this run's inputs name. What is known of it under older digests is moved to this key. */
  keyOf(entry: Entry): string {
    const key = digestOf(this.digests, entry.item ?? "");
    const row = this.#table.add(key);
    for (const older of this.#digestings.slice(1))
      for (const old of digestsOf(older, entry)) this.#move(old, key, row);
    this.#flag(row, OWN | NAMED);
    return key;
  }

  /** Whether answers of an item are wanted: the inputs name it, or rows may have named it. */
  isWanted(key: string): boolean {
    const row = this.#find(key);
    return row !== undefined && this.#isWanted(row);
  }

  // What is remembered.

  /** Joins what the receipts say. `place`: where the handles can be read again; they are not kept in memory. */
  addReceipt(delta: Delta, place = 0): void {
    this.#add(delta, place);
  }

  /** Joins what a state of this connection says. What the receipts did not say before is news to them. */
  addState(delta: Delta): void {
    this.#add(delta, undefined);
  }

  /** What a state says that its own stream has delivered. */
  addDelivered(stream: string, digests: Digesting, days: Ledger["done"]): void {
    const delivered = this.#deliveredBy(stream);
    for (const [day, packed] of days)
      for (const row of this.#table.addPacked(packed)) {
        this.#madeBy.set(row, this.#numberOf(digests));
        delivered.set(row, Math.max(delivered.get(row), numberOfDay(day)));
      }
  }

  /** What the states say and the receipts do not. */
  newsToReceipts(): readonly Delta[] {
    const news = this.toReceipts((row) => (this.#flags.get(row) & LACKING) !== 0);
    for (let row = 0; row < this.#table.size; row++) this.#flags.set(row, this.#flags.get(row) & ~LACKING);
    return this.#isMoneyNews ? news : news.slice(1);
  }

  /** All that is known but the answers whose handles stand in the receipts: what is charged, and the items. */
  toReceipts(
    isHere = (row: number): boolean => this.#places.get(row) === 0 || this.#full.has(row),
  ): readonly Delta[] {
    const deltas = this.#digestings.map((digests, by) => {
      const rows = [...this.#full.keys()].filter((row) => this.#madeBy.get(row) === by && isHere(row));
      const items = new Map(rows.map((row) => [this.#table.keyAt(row), this.#item(row)]));
      const isPacked = (row: number): boolean =>
        this.#madeBy.get(row) === by && isHere(row) && !this.#full.has(row);
      const days = this.#table.toPacked((row) => (isPacked(row) ? this.#days.get(row) : 0));
      return newsOf(digests, { items, days });
    });
    const money = newsOf(this.digests, this.money());
    return [money, ...deltas.filter(({ items, days }) => items.size + days.length > 0)];
  }

  /** The handle of an item that stood at one place of the receipts stands at another now. Returns whether it stood there. */
  move(key: string, from: number, to: number): boolean {
    const row = this.#table.find(key);
    const place = row === undefined ? 0 : this.#places.get(row);
    if (row === undefined || place === 0 || Math.abs(place) !== from) return false;
    this.#places.set(row, Math.sign(place) * to);
    return true;
  }

  // What happens.

  /** A submission is about to leave. Its moment is later than any that is known of the item. */
  intend(key: string, now: number): { readonly id: string; readonly at: number; readonly delta: Delta } {
    const { sync, by } = this.#options.author;
    const item = this.get(key);
    const at = Math.max(now, ...subsOf(item).map((sub) => sub.at + 1));
    const day = this.dayToCharge(dayOf(at));
    const id = `${by}.${this.#submitted++}`;
    const sub = newSub(id, at, day, sync);
    const delta = this.#put(key, { ...item, subs: { ...item.subs, [id]: sub } });
    return { id, at, delta: this.#charge(delta, sub, [1, 0, 0]) };
  }

  /** The service named a job. */
  taken(key: string, id: string, job: string, notBefore: number | null): Delta {
    return this.#change(key, id, { step: "open", job, notBefore });
  }

  /** A submission did not leave, or the service did not take it. `code`: what it did not like, for one that may be refused. */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): Delta {
    const sub = this.get(key).subs[id];
    const delta = this.#change(key, id, { step, code });
    return sub?.step === "unknown" ? this.#charge(delta, sub, [0, 1, 0]) : delta;
  }

  /** Asking for a result brought no answer. */
  asked(
    key: string,
    id: string,
    found: Partial<Pick<Sub, "asked" | "notBefore" | "misses" | "code">>,
  ): Delta {
    return this.#change(key, id, found);
  }

  /**
   * A job ended without an answer and cost nothing. Not to be written to the receipts: they learn it from the saved state,
   * so that a run which dies before it has delivered what the result says asks for it again.
   */
  ended(
    key: string,
    id: string,
    now: number,
    step: "failed" | "unpaid",
    code: string | null,
    sources: readonly string[],
  ): Delta {
    return this.#change(key, id, { step, ended: now, code, sources });
  }

  /** The answer came. What it clears may have been charged without an answer, and counts with the estimate. */
  answered(key: string, id: string, now: number, cost: number, sealed: string | null): Delta {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return newsOf(this.digests);
    const day = dayOf(sub.at);
    const handle = { id, at: sub.at, day, job: sub.job, sealed, sure: true, cost };
    const joined = joinItems(item, { day, handle, subs: {} });
    const cleared = subsOf(item).filter(
      (one) => isOut(one) && one.id !== id && joined.subs[one.id] === undefined,
    );
    const lost = cleared.length * this.estimate;
    const price: Price = [now, cost];
    this.#prices = joinPrices(this.#prices, [price]);
    const delta = this.#charge(this.#put(key, joined), sub, [0, 0, cost + lost]);
    return { ...delta, prices: [price] };
  }

  // Deliveries. Each stream knows its own.

  /** Whether the newest answer of an item was not delivered to a stream. */
  owes(stream: string, key: string): boolean {
    const row = this.#find(key);
    return row !== undefined && this.#owes(this.#deliveredBy(stream), row);
  }

  /** Whether any answer of an item was delivered to a stream. */
  hasDelivered(stream: string, key: string): boolean {
    const row = this.#find(key);
    return row !== undefined && this.#deliveredBy(stream).get(row) > 0;
  }

  deliver(stream: string, key: string): void {
    const row = this.#find(key);
    if (row !== undefined) this.#deliveredBy(stream).set(row, this.#days.get(row));
  }

  /** The items whose answers a stream wants, lacks and can get again. */
  *undelivered(stream: string): Generator<string> {
    const delivered = this.#deliveredBy(stream);
    for (let row = 0; row < this.#table.size; row++)
      if (this.#isWanted(row) && this.#owes(delivered, row) && this.#canBeHad(row))
        yield this.#table.keyAt(row);
  }

  /** Whether an item that the inputs name was answered when this run began. */
  get knowsAnswered(): boolean {
    for (let row = 0; row < this.#table.size; row++)
      if ((this.#flags.get(row) & (NAMED | ANSWERED)) === (NAMED | ANSWERED)) return true;
    return false;
  }

  /** Whether a stream has everything: nothing of a named item is out, and each answer is delivered. */
  isComplete(stream: string, isBlind: boolean): boolean {
    const delivered = this.#deliveredBy(stream);
    for (let row = 0; row < this.#table.size; row++) {
      if ((this.#flags.get(row) & NAMED) === 0) continue;
      const isAnswered = this.#days.get(row) > 0;
      if (!isSettled(this.#item(row)) || (isAnswered ? this.#owes(delivered, row) : isBlind)) return false;
    }
    return true;
  }

  /** Whether a generation of a stream was begun without knowing an answer of any listed item. */
  isBlind(stream: string, generation: number | null): boolean {
    return generation !== null && this.#blind.get(stream) === generation;
  }

  markBlind(stream: string, generation: number): Delta {
    const blind = new Map([[stream, Math.max(generation, this.#blind.get(stream) ?? generation)]]);
    for (const [name, number] of blind) this.#blind.set(name, number);
    return newsOf(this.digests, { blind });
  }

  // Money.

  /** What an open job counts with, in credits. */
  get estimate(): number {
    return estimateOf(this.#prices.map(([, credits]) => credits));
  }

  /** The day to charge: never one before a day that was charged already. */
  dayToCharge(today: Day): Day {
    let last = today;
    for (const key of this.#spent.keys()) {
      const { day } = partsOfSpending(key);
      if (day > last) last = day;
    }
    return last;
  }

  /** What is charged to this sync, a day and its month. */
  charged(day: Day): ChargedSoFar {
    return {
      sync: this.#chargedWhere(({ sync }) => sync === this.#options.author.sync),
      day: this.#chargedWhere((to) => to.day === day),
      month: this.#chargedWhere((to) => monthOf(to.day) === monthOf(day)),
    };
  }

  /** Day, submissions and credits. */
  spentByDay(): readonly (readonly [Day, number, number])[] {
    const days = [...new Set([...this.#spent.keys()].map((key) => partsOfSpending(key).day))].sort();
    return days.map((day) => {
      const { submitted, credits } = this.#chargedWhere((to) => to.day === day);
      return [day, submitted, credits] as const;
    });
  }

  /**
   * How many items may go now by what became of the newest submissions: one at a time after three whose answers were lost,
   * and none on a day of which a fourth was lost.
   */
  probesLeft(now: number): number {
    const all = [...this.#full.values()].flatMap(({ subs }) => Object.values(subs));
    const newest = all.filter(({ step }) => step !== "void").sort((a, b) => b.at - a.at);
    const lastAnswer = this.#prices.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY;
    const answered = newest.findIndex(({ step, at }) => step !== "unknown" || at <= lastAnswer);
    const lost = answered < 0 ? newest.length : answered;
    if (lost < 3) return Number.POSITIVE_INFINITY;
    return lost > 3 && dayOf(newest[0]?.at ?? 0) === dayOf(now) ? 0 : 1;
  }

  // What a state holds.

  /**
   * What a state of a stream holds: the items of this connection, and every submission that is out, whosever it is. Of
   * answers that this stream or another selected one lacks the first are held with their handles.
   */
  ledgersFor(stream: string): readonly Ledger[] {
    const delivered = this.#deliveredBy(stream);
    const all = [...new Set([stream, ...(this.#options.streams ?? [])])].map((name) =>
      this.#deliveredBy(name),
    );
    const handles = new Map<number, Handle>();
    for (let row = 0; row < this.#table.size && handles.size < MOST_IN_FULL; row++) {
      const isLacked = this.#isOwn(row) && all.some((one) => this.#owes(one, row));
      if (!isLacked || !this.#canBeHad(row)) continue;
      const handle = this.#handle(row);
      if (handle !== null && handle.job !== null) handles.set(row, { ...handle, sealed: null });
    }
    const rows = new Set([...handles.keys(), ...this.#full.keys()]);
    return this.#digestings.flatMap((digests, by) => {
      const isHere = (row: number): boolean => this.#madeBy.get(row) === by;
      const jobs: [string, Item][] = [];
      for (const row of rows) {
        const { day, subs } = this.#item(row);
        const handle = handles.get(row) ?? null;
        const isHeld = this.#isOwn(row) || !isSettled({ day, handle, subs });
        if (isHere(row) && isHeld && (handle !== null || Object.keys(subs).length > 0))
          jobs.push([this.#table.keyAt(row), { day: handle === null ? "" : day, handle, subs }]);
      }
      const packed = (isOwed: boolean): [Day, string][] =>
        this.#table.toPacked((row) => {
          const isIt = isHere(row) && this.#isOwn(row) && this.#owes(delivered, row) === isOwed;
          return isIt && !(isOwed && handles.has(row)) ? this.#days.get(row) : 0;
        });
      const ledger = { digests, jobs, done: packed(false), paid: packed(true) };
      const isEmpty = jobs.length + ledger.done.length + ledger.paid.length === 0;
      return by > 0 && isEmpty ? [] : [ledger];
    });
  }

  /** The counters that every memory holds; those of more than 62 days ago are forgotten. */
  money(today: Day = BEGINNING): Pick<Delta, "spent" | "prices" | "blind"> {
    const first = addDays(this.dayToCharge(today), 1 - DAYS_KEPT);
    const spent = [...this.#spent].filter(([key]) => partsOfSpending(key).day >= first);
    return { spent: new Map(spent), prices: this.#prices, blind: this.#blind };
  }

  // Rows.

  #find(key: string): number | undefined {
    return this.#table.find(this.#moved.get(key) ?? key);
  }

  #item(row: number): Item {
    const { handle = null, subs = {} } = this.#full.get(row) ?? {};
    return { day: dayOfNumber(this.#days.get(row)), handle, subs };
  }

  #handle(row: number): Handle | null {
    const { handle = null } = this.#full.get(row) ?? {};
    const place = Math.abs(this.#places.get(row));
    const read = place === 0 ? null : (this.#options.handleAt?.(place, this.#table.keyAt(row)) ?? null);
    return higherHandle(handle, read?.day === dayOfNumber(this.#days.get(row)) ? read : null);
  }

  #canBeHad(row: number): boolean {
    return this.#places.get(row) !== 0 || (this.#full.get(row)?.handle ?? null) !== null;
  }

  #isOwn(row: number): boolean {
    return (this.#flags.get(row) & OWN) !== 0;
  }

  #isWanted(row: number): boolean {
    const wanted = this.#options.isFromRows === true ? OWN | NAMED : NAMED;
    return (this.#flags.get(row) & wanted) !== 0;
  }

  #owes(delivered: Column, row: number): boolean {
    return this.#days.get(row) > delivered.get(row);
  }

  #flag(row: number, flag: number): void {
    this.#flags.set(row, this.#flags.get(row) | flag);
  }

  #deliveredBy(stream: string): Column {
    const known = this.#delivered.get(stream) ?? new Column(this.#table);
    this.#delivered.set(stream, known);
    return known;
  }

  #numberOf(digests: Digesting): number {
    const known = this.#digestings.findIndex((one) => isSameDigesting(one, digests));
    return known < 0 ? this.#digestings.push(digests) - 1 : known;
  }

  /** `place` undefined: a state says so. */
  #add(delta: Delta, place?: number): void {
    const by = this.#numberOf(delta.digests);
    for (const [day, packed] of delta.days) {
      const item = { ...UNBOUGHT, day };
      for (const row of this.#table.addPacked(packed)) {
        // Most are new, or known with this day: there is nothing to join.
        if (this.#full.has(row)) this.#join(row, by, item, place);
        else this.#answer(row, by, numberOfDay(day), place === undefined);
      }
    }
    for (const [key, item] of delta.items) this.#join(this.#table.add(key), by, item, place);
    for (const [key, spending] of delta.spent) {
      const joined = joinSpending(this.#spent.get(key), spending);
      if (!isDeepStrictEqual(joined, this.#spent.get(key))) this.#isMoneyNews ||= place === undefined;
      this.#spent.set(key, joined);
    }
    for (const [stream, generation] of delta.blind) {
      const before = this.#blind.get(stream) ?? Number.NEGATIVE_INFINITY;
      if (generation > before) this.#isMoneyNews ||= place === undefined;
      this.#blind.set(stream, Math.max(generation, before));
    }
    if (delta.prices.length > 0) this.#prices = joinPrices(this.#prices, delta.prices);
  }

  #join(row: number, by: number, item: Item, place?: number): void {
    const before = this.#item(row);
    const isRead = place !== undefined && place > 0;
    const joined = trimmed(joinItems(before, isRead ? { ...item, handle: null } : item));
    const isNews = (): boolean =>
      joined.day > before.day ||
      (joined.handle !== null && !this.#canBeHad(row)) ||
      !isDeepStrictEqual(joined.subs, before.subs);
    if (place === undefined) this.#flag(row, isNews() ? OWN | LACKING : OWN);
    this.#madeBy.set(row, by);
    this.#store(row, joined);
    if (joined.day !== "") this.#flag(row, ANSWERED);
    if (!isRead || item.handle === null || item.handle.day !== joined.day) return;
    // Of two answers of one day the handle that stands later counts.
    if (item.handle.sure) this.#places.set(row, place);
    else if (!this.#canBeHad(row)) this.#places.set(row, -place);
    if (item.handle.sure)
      this.#store(row, { ...joined, handle: joined.handle?.sure === true ? joined.handle : null });
  }

  /** An item that is known by its day alone was answered on another. */
  #answer(row: number, by: number, day: number, isState: boolean): void {
    const isNews = isState && day > this.#days.get(row);
    this.#madeBy.set(row, by);
    this.#flag(row, ANSWERED | (isState ? OWN : 0) | (isNews ? LACKING : 0));
    this.#setDay(row, day);
  }

  #store(row: number, { day, handle, subs }: Item): void {
    this.#setDay(row, numberOfDay(day));
    const isUnsureBeside = handle?.sure === false && this.#places.get(row) > 0;
    const kept = isUnsureBeside ? null : handle;
    if (kept === null && Object.keys(subs).length === 0) this.#full.delete(row);
    else this.#full.set(row, { handle: kept, subs });
  }

  /** Of an older answer the receipts' handle is of no use. */
  #setDay(row: number, day: number): void {
    if (day <= this.#days.get(row)) return;
    this.#days.set(row, day);
    this.#places.set(row, 0);
  }

  /** What is known of an item under another key is known under this one. */
  #move(old: string, key: string, row: number): void {
    const from = this.#table.find(old);
    if (from === undefined || from === row || (this.#days.get(from) === 0 && !this.#full.has(from))) return;
    this.#join(row, 0, { ...this.#item(from), handle: this.#handle(from) });
    this.#flag(row, this.#flags.get(from));
    for (const delivered of this.#delivered.values())
      delivered.set(row, Math.max(delivered.get(row), delivered.get(from)));
    for (const column of [this.#days, this.#places, this.#flags]) column.set(from, 0);
    this.#full.delete(from);
    this.#moved.set(old, key);
  }

  #put(given: string, item: Item): Delta {
    const key = this.#moved.get(given) ?? given;
    const row = this.#table.add(key);
    const kept = trimmed(item);
    this.#store(row, kept);
    this.#flag(row, OWN);
    return newsOf(this.#digestings[this.#madeBy.get(row)] ?? this.digests, { items: new Map([[key, kept]]) });
  }

  #change(key: string, id: string, fields: Partial<Sub>): Delta {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return newsOf(this.digests);
    return this.#put(key, { ...item, subs: { ...item.subs, [id]: { ...sub, ...fields } } });
  }

  #charge(delta: Delta, { sync, day }: Sub, [submitted, back, credits]: Spending): Delta {
    const key = spendingKey(sync, this.#options.author.by, day);
    const before = this.#spent.get(key) ?? [0, 0, 0];
    const after: Spending = [before[0] + submitted, before[1] + back, before[2] + credits];
    this.#spent.set(key, after);
    return { ...delta, spent: new Map([[key, after]]) };
  }

  #chargedWhere(isIt: (to: { readonly sync: string; readonly day: Day }) => boolean): Charged {
    const sum = { submitted: 0, credits: 0, open: 0 };
    for (const [key, [submitted, back, credits]] of this.#spent) {
      if (!isIt(partsOfSpending(key))) continue;
      sum.submitted += submitted - back;
      sum.credits += credits;
    }
    for (const { subs } of this.#full.values())
      for (const sub of Object.values(subs)) if (isOut(sub) && isIt(sub)) sum.open += 1;
    return sum;
  }
}
