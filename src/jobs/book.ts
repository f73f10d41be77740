import { isDeepStrictEqual } from "node:util";
import { addDays, BEGINNING, type Day, dayOf } from "../base/time.ts";
import { type Entry, spellingsOf } from "../config/items.ts";
import { type Charged, type ChargedSoFar, estimateOf, monthOf } from "./caps.ts";
import { type Digesting, digestOf, isSameDigesting } from "./identity.ts";
import {
  addPrice,
  type Blind,
  type Delta,
  type Handle,
  higherHandle,
  type Item,
  isSettled,
  isUncharged,
  joinItems,
  type KeyedItem,
  type Money,
  newSub,
  type Price,
  type Spending,
  type Sub,
  subsOf,
  trimmed,
  UNBOUGHT,
} from "./lattice.ts";
import { Column, DigestTable, dayOfNumber, numberOfDay, type PackedDay } from "./packed.ts";

/** More than there are days in the calendar, and lists of days. */
const DAYS = 4_000_000;
const LISTS = 3;

/** Days for which what was spent is kept: two months. */
const DAYS_KEPT = 62;

/** Answers that are not delivered and can be asked for stand in a state in full: at most 5,000. */
const MOST_IN_FULL = 5_000;

/** What an answer counts with that is too long to take in and does not say its cost: so many times the dearest one. */
const TIMES_DEAREST = 10;

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
type Author = { readonly sync: string; readonly by: string };

export type BookOptions = {
  readonly author: Author;
  /**
   * The streams of the setting that are selected. What one lacks another's state must not forget. `truncates`: the
   * platform drops its older rows once it is complete.
   */
  readonly streams?: readonly {
    readonly name: string;
    readonly truncates: boolean;
    readonly generation: number | null;
  }[];
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
  readonly jobs: readonly KeyedItem[];
  /** What is out of items of other connections. */
  readonly others: readonly KeyedItem[];
  /** By the day of the answer: what the stream has delivered, and what it has not. */
  readonly done: readonly PackedDay[];
  readonly paid: readonly PackedDay[];
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
  /** The flags of rows whose answers are wanted. */
  readonly #wanted: number;
  readonly #table = new DigestTable();
  readonly #days = new Column(this.#table);
  /** The places in the receipts at which sure handles stand. */
  readonly #places = new Column(this.#table, new Float64Array(0));
  readonly #flags = new Column(this.#table, new Uint8Array(0));
  readonly #madeBy = new Column(this.#table, new Uint8Array(0));
  readonly #full = new Map<number, Full>();
  /** For each stream the day of the newest answer that its own state says is delivered. */
  readonly #delivered = new Map<string, Column>();
  /** Those of the selected streams. */
  readonly #selected: readonly Column[];
  readonly #digestings: Digesting[];
  readonly #moved = new Map<string, string>();
  /** By day, sync and run. */
  readonly #spent = new Map<string, Spending>();
  readonly #blind = new Map<string, number>();
  #prices: readonly Price[] = [];
  #isMoneyNews = false;
  #submitted = 0;

  constructor(options: BookOptions) {
    this.#options = options;
    const { digests, streams = [], isFromRows = false } = options;
    this.#wanted = isFromRows && !streams.some(({ truncates }) => truncates) ? OWN | NAMED : NAMED;
    this.#selected = streams.map(({ name }) => this.#deliveredBy(name));
    this.digests = digests;
    this.#digestings = [digests];
  }

  /** How many items are known. */
  get size(): number {
    let size = 0;
    for (let row = 0; row < this.#table.size; row++) if (this.#isKnown(row)) size += 1;
    return size;
  }

  /** The items that are known by more than the day of their answer. */
  *inFull(): Generator<[string, Item]> {
    for (const row of [...this.#full.keys()]) yield [this.#table.keyAt(row), this.#item(row)];
  }

  /** What is known of an item. Its handle may be known to the receipts alone: see `handle`. */
  get(key: string): Item {
    return this.#item(this.#find(key));
  }

  /** By what the newest answer of an item can be had again. May read the receipts. */
  handle(key: string): Handle | null {
    return this.#handle(this.#find(key));
  }

  /** Whether the newest answer of an item can be had again. */
  canBeHad(key: string): boolean {
    return this.#canBeHad(this.#find(key));
  }

  /** The key of an item that this run's inputs name. What is known of it under older digests is moved to this key. */
  keyOf(entry: Entry): string {
    const key = digestOf(this.digests, entry.item ?? "");
    const row = this.#table.add(key);
    for (const older of this.#digestings.slice(1)) {
      // Under one salt the item itself has one key. What is known by it, and not owed, needs no second look.
      const isSameSalt = older.salt === this.digests.salt;
      const isPlain = isSameSalt && entry.text.trim().toLowerCase() === entry.item;
      if (isPlain && this.#isKnown(row) && (this.#canBeHad(row) || !this.#isOwed(row))) continue;
      for (const spelling of spellingsOf(entry, older.normalization))
        if (!isSameSalt || spelling !== entry.item) this.#move(digestOf(older, spelling), key, row);
    }
    this.#madeBy.set(row, 0);
    this.#flag(row, OWN | NAMED);
    return key;
  }

  /** Whether a key is an item's, by the digests of now or by older ones. */
  isKeyOf(key: string, entry: Entry): boolean {
    return this.#digestings.some((digests) =>
      spellingsOf(entry, digests.normalization).some((spelling) => digestOf(digests, spelling) === key),
    );
  }

  /** Whether answers of an item are wanted: the inputs name it, or rows may have named it. */
  isWanted(key: string): boolean {
    return this.#is(this.#find(key), this.#wanted);
  }

  // What is remembered.

  /**
   * Joins what a memory says. `place`: where in the receipts its handles can be read again, so that they are not kept; 0:
   * nowhere; undefined: a state says so, and what the receipts did not say before is news to them.
   * @param deliveredTo the stream that the answers of the days were delivered to, as its own state says
   */
  add(delta: Delta, place?: number, deliveredTo?: string): void {
    const { digests, items = [], days = [], spent = [], prices = [], blind = [] } = delta;
    const by = this.#numberOf(digests);
    const delivered = deliveredTo === undefined ? undefined : this.#deliveredBy(deliveredTo);
    for (const [day, packed] of days) {
      const [item, number] = [{ ...UNBOUGHT, day }, numberOfDay(day)];
      for (const row of this.#table.addPacked(packed)) {
        this.#join(row, by, item, place);
        if (delivered !== undefined && number > delivered.get(row)) delivered.set(row, number);
      }
    }
    for (const [key, item] of items) this.#join(this.#table.add(key), by, item, place);
    const before = place === undefined ? this.money() : undefined;
    for (const counter of spent) this.#joinSpending(counter);
    for (const price of prices) this.#prices = addPrice(this.#prices, price);
    for (const [stream, generation] of blind)
      this.#blind.set(stream, Math.max(generation, this.#blind.get(stream) ?? generation));
    if (before !== undefined && !isDeepStrictEqual(this.money(), before)) this.#isMoneyNews = true;
  }

  /** Joins what a state says of items of other connections, which stay theirs. */
  addOthers({ digests, items = [] }: Delta): void {
    for (const [key, item] of items) {
      const row = this.#table.add(key);
      const isOwn = this.#is(row, OWN);
      this.add({ digests, items: [[key, item]] });
      if (!isOwn) this.#flags.set(row, this.#flags.get(row) & ~OWN);
    }
  }

  /** What the states say and the receipts do not. */
  newsToReceipts(): readonly Delta[] {
    const news = this.toReceipts((row) => this.#is(row, LACKING));
    for (const row of this.#rowsWith(LACKING)) this.#flags.set(row, this.#flags.get(row) & ~LACKING);
    return this.#isMoneyNews ? news : news.slice(1);
  }

  /** All that is known but the answers whose handles stand in the receipts: what is charged, and the items. */
  toReceipts(
    isHere = (row: number): boolean => this.#places.get(row) === 0 || this.#full.has(row),
  ): readonly Delta[] {
    const full = new Map([...this.#full.keys()].filter(isHere).map((row) => [row, this.#item(row)]));
    const ledgers = this.#ledgers(full, (row) => (isHere(row) && !this.#full.has(row) ? 1 : 0));
    // A line holds the items of one day, which may be a million.
    const deltas = ledgers.flatMap(({ digests, items, packed: [, days = []] }): Delta[] => [
      ...(items.length > 0 ? [{ digests, items }] : []),
      ...days.map((day) => ({ digests, days: [day] })),
    ]);
    return [{ digests: this.digests, ...this.money() }, ...deltas];
  }

  /** The handle of an item that stood at one place of the receipts stands at another now. Returns whether it stood there. */
  move(key: string, from: number, to: number): boolean {
    const row = this.#find(key);
    const isThere = this.#places.get(row) === from;
    if (isThere) this.#places.set(row, to);
    return isThere;
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
    return { id, at, delta: this.#charge(delta, sub, 1, 0, 0) };
  }

  /**
   * What became of a submission that was taken, or what asking for its result found. A job that ended without an answer
   * cost nothing. That is not to be written to the receipts: they learn it from the saved state, so that a run which dies
   * before it has delivered what the result says asks for it again.
   */
  change(key: string, id: string, fields: Partial<Omit<Sub, "id" | "at" | "day" | "sync">>): Delta {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return { digests: this.digests };
    return this.#put(key, { ...item, subs: { ...item.subs, [id]: { ...sub, ...fields } } });
  }

  /** A submission did not leave, or the service did not take it. `code`: what it did not like, for one that may be refused. */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): Delta {
    const sub = this.get(key).subs[id];
    const delta = this.change(key, id, { step, code });
    return sub?.step === "unknown" ? this.#charge(delta, sub, 0, 1, 0) : delta;
  }

  /**
   * The answer of an open job is there and cannot be taken in. What it cost is charged once, however often it is asked
   * for. `cost` null: it does not say, so it counts as ten times the dearest of the last answers.
   */
  chargeOpen(key: string, id: string, now: number, cost: number | null): { delta: Delta; credits: number } {
    const sub = this.get(key).subs[id];
    if (sub === undefined) return { delta: { digests: this.digests }, credits: 0 };
    const { charged } = sub;
    const credits = Math.max(0, (cost ?? (charged || TIMES_DEAREST * this.estimate)) - charged);
    const delta = this.change(key, id, { charged: charged + credits });
    const prices: Price[] = cost === null ? [] : [[now, cost]];
    return { delta: this.#charge(delta, sub, 0, 0, credits, prices), credits };
  }

  /** The answer came. What it clears may have been charged without an answer, and counts with the estimate. */
  answered(key: string, id: string, now: number, cost: number, sealed: string | null): Delta {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return { digests: this.digests };
    const day = dayOf(sub.at);
    const handle = { id, at: sub.at, day, job: sub.job, sealed, sure: true, cost };
    const joined = joinItems(item, { ...UNBOUGHT, day, handle });
    const cleared = subsOf(item).filter(
      (one) => isUncharged(one) && one.id !== id && joined.subs[one.id] === undefined,
    );
    const lost = cleared.length * this.estimate;
    const credits = Math.max(0, cost - sub.charged) + lost;
    // The next attempt of a refresh knows this answer, and must not forget that the refresh began without any.
    const delta = { ...this.#put(key, joined), ...this.markBlind() };
    return this.#charge(delta, sub, 0, 0, credits, [[now, cost]]);
  }

  // Deliveries. Each stream knows its own.

  /** Whether the newest answer of an item was not delivered to a stream. */
  owes(stream: string, key: string): boolean {
    return this.#owes(this.#deliveredBy(stream), this.#find(key));
  }

  /** Whether any answer of an item was delivered to a stream. */
  hasDelivered(stream: string, key: string): boolean {
    return this.#deliveredBy(stream).get(this.#find(key)) > 0;
  }

  deliver(stream: string, key: string): void {
    const row = this.#find(key);
    this.#deliveredBy(stream).set(row, this.#days.get(row));
  }

  /** The items whose answers a stream wants, lacks and can get again. */
  *undelivered(stream: string): Generator<string> {
    const delivered = this.#deliveredBy(stream);
    for (const row of this.#rowsWith(this.#wanted))
      if (this.#owes(delivered, row) && this.#canBeHad(row)) yield this.#table.keyAt(row);
  }

  /**
   * Whether a stream has everything: nothing of a named item is out, and each answer is delivered.
   * @param namesOthers whether the inputs name items that are nobody's business
   */
  isComplete(stream: string, isBlind: boolean, namesOthers = false): boolean {
    const delivered = this.#deliveredBy(stream);
    let isListed = namesOthers;
    for (const row of this.#rowsWith(NAMED)) {
      isListed = true;
      const lacks = this.#days.get(row) > 0 ? this.#owes(delivered, row) : isBlind;
      if (lacks || !isSettled(this.#item(row))) return false;
    }
    return isListed || !isBlind;
  }

  /** Whether this run, or an earlier one of the same generation, began without knowing an answer of any listed item. */
  isBlind(stream: string, generation: number | null): boolean {
    if (generation !== null && this.#blind.get(stream) === generation) return true;
    for (const row of this.#rowsWith(NAMED)) if (this.#is(row, ANSWERED)) return false;
    return true;
  }

  /** Lets the next attempt know which refreshes are blind. */
  markBlind(): Delta {
    const blind = (this.#options.streams ?? []).flatMap(({ name, truncates, generation }): Blind[] =>
      truncates && generation !== null && this.isBlind(name, generation) ? [[name, generation]] : [],
    );
    this.add({ digests: this.digests, blind }, 0);
    return { digests: this.digests, blind };
  }

  // Money.

  /** What an open job counts with, in credits. */
  get estimate(): number {
    return estimateOf(this.#prices.map(([, credits]) => credits));
  }

  /** The day to charge: never one before a day that was charged already. */
  dayToCharge(today: Day): Day {
    let last = today;
    for (const [day] of this.#spent.values()) if (day > last) last = day;
    return last;
  }

  charged(today: Day): ChargedSoFar {
    const day = this.dayToCharge(today);
    return {
      sync: this.#chargedWhere((_day, sync) => sync === this.#options.author.sync),
      day: this.#chargedWhere((one) => one === day),
      month: this.#chargedWhere((one) => monthOf(one) === monthOf(day)),
    };
  }

  /** Day, submissions and credits. */
  spentByDay(): readonly (readonly [Day, number, number])[] {
    const days = [...new Set([...this.#spent.values()].map(([day]) => day))].sort();
    return days.map((day) => {
      const { submitted, credits } = this.#chargedWhere((one) => one === day);
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
    const handles = new Map<number, Handle>();
    for (const row of this.#rowsWith(OWN)) {
      if (handles.size >= MOST_IN_FULL) break;
      if (!(this.#owes(delivered, row) || this.#isOwed(row)) || !this.#canBeHad(row)) continue;
      const handle = this.#handle(row);
      if (handle !== null && handle.job !== null) handles.set(row, { ...handle, sealed: null });
    }
    const full = new Map<number, Item>();
    for (const row of new Set([...handles.keys(), ...this.#full.keys()])) {
      const { day, subs } = this.#item(row);
      const handle = handles.get(row) ?? null;
      const isSuppressed = this.#is(row, OWN) || !isSettled({ day, handle, subs });
      if (isSuppressed && (handle !== null || subs !== UNBOUGHT.subs))
        full.set(row, { day: handle === null ? "" : day, handle, subs });
    }
    const ledgers = this.#ledgers(full, (row) => {
      if (!this.#is(row, OWN)) return 0;
      if (!this.#owes(delivered, row)) return 1;
      return handles.has(row) ? 0 : 2;
    });
    return ledgers.flatMap(({ digests, items, packed: [, done = [], paid = []] }, by) => {
      const [jobs, others] = [true, false].map((isOwn) =>
        items.filter(([key]) => this.#is(this.#find(key), OWN) === isOwn),
      ) as [KeyedItem[], KeyedItem[]];
      const isEmpty = items.length + done.length + paid.length === 0;
      return by > 0 && isEmpty ? [] : [{ digests, jobs, others, done, paid }];
    });
  }

  /** The counters that every memory holds; those of more than 62 days ago are forgotten. */
  money(today: Day = BEGINNING): Required<Money> {
    const first = addDays(this.dayToCharge(today), 1 - DAYS_KEPT);
    const spent = [...this.#spent.values()].filter(([day]) => day >= first);
    return { spent, prices: this.#prices, blind: [...this.#blind] };
  }

  /** By way of making digests: some rows in full, and all that have a list above 0 in lists, by their days. */
  #ledgers(full: ReadonlyMap<number, Item>, listOf: (row: number) => number) {
    const ledgers = this.#digestings.map((digests) => {
      return { digests, items: [] as KeyedItem[], packed: [[], [], []] as PackedDay[][] };
    });
    for (const [row, item] of full)
      ledgers[this.#madeBy.get(row)]?.items.push([this.#table.keyAt(row), item]);
    const groups = this.#table.toPacked((row) => {
      const [day, list] = [this.#days.get(row), listOf(row)];
      return day === 0 || list === 0 ? 0 : (this.#madeBy.get(row) * LISTS + list) * DAYS + day;
    });
    for (const [group, digests] of groups) {
      const list = Math.floor(group / DAYS);
      const day = dayOfNumber(group % DAYS) as Day;
      ledgers[Math.floor(list / LISTS)]?.packed[list % LISTS]?.push([day, digests]);
    }
    return ledgers;
  }

  // Rows.

  /** The row of an item; -1, where every column has 0, if nothing is known of it. */
  #find(key: string): number {
    return this.#table.find(this.#moved.get(key) ?? key) ?? -1;
  }

  #isKnown(row: number): boolean {
    return this.#days.get(row) > 0 || this.#full.has(row);
  }

  #item(row: number): Item {
    const full = this.#full.get(row) ?? UNBOUGHT;
    return { day: dayOfNumber(this.#days.get(row)), handle: full.handle, subs: full.subs };
  }

  #handle(row: number): Handle | null {
    const { handle = null } = this.#full.get(row) ?? {};
    const place = this.#places.get(row);
    const read = place === 0 ? null : (this.#options.handleAt?.(place, this.#table.keyAt(row)) ?? null);
    return higherHandle(handle, read?.day === dayOfNumber(this.#days.get(row)) ? read : null);
  }

  #canBeHad(row: number): boolean {
    return this.#places.get(row) !== 0 || (this.#full.get(row)?.handle ?? null) !== null;
  }

  /** Whether a row has one of these flags. */
  #is(row: number, flags: number): boolean {
    return (this.#flags.get(row) & flags) !== 0;
  }

  *#rowsWith(flags: number): Generator<number> {
    for (let row = 0; row < this.#table.size; row++) if (this.#is(row, flags)) yield row;
  }

  /** Whether a selected stream lacks the newest answer. */
  #isOwed(row: number): boolean {
    return this.#selected.some((delivered) => this.#owes(delivered, row));
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
    if (digests === this.digests) return 0;
    const known = this.#digestings.findIndex((one) => isSameDigesting(one, digests));
    return known < 0 ? this.#digestings.push(digests) - 1 : known;
  }

  /** The larger of each counter. */
  #joinSpending(counter: Spending): void {
    const key = spendingKey(...counter);
    const known = this.#spent.get(key) ?? counter;
    const larger = counter.map((part, nth) => (part > (known[nth] ?? 0) ? part : known[nth]));
    this.#spent.set(key, larger as readonly unknown[] as Spending);
  }

  /** `place` above 0: the handle stands there in the receipts, and of one that is sure only its place is kept. */
  #join(row: number, by: number, said: Item, place?: number): void {
    const before = this.#item(row);
    const isInPlace = place !== undefined && place > 0 && said.handle?.sure === true;
    const joined = trimmed(joinItems(before, isInPlace ? { ...said, handle: null } : said));
    const isNews = (): boolean =>
      joined.day > before.day ||
      (joined.handle !== null && !this.#canBeHad(row)) ||
      (joined.subs !== before.subs && !isDeepStrictEqual(joined.subs, before.subs));
    if (place === undefined) this.#flag(row, isNews() ? OWN | LACKING : OWN);
    this.#madeBy.set(row, by);
    this.#setDay(row, numberOfDay(joined.day));
    // Of two answers of one day the handle that stands later counts.
    if (isInPlace && said.handle?.day === joined.day) this.#places.set(row, place);
    this.#store(row, joined);
    if (joined.day !== "") this.#flag(row, ANSWERED);
  }

  #store(row: number, { day, handle, subs }: Item): void {
    this.#setDay(row, numberOfDay(day));
    const isUnsureBeside = handle?.sure === false && this.#places.get(row) > 0;
    const kept = isUnsureBeside ? null : handle;
    if (kept !== null || Object.keys(subs).length > 0) this.#full.set(row, { handle: kept, subs });
    else this.#full.delete(row);
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
    if (from === undefined || from === row || !this.#isKnown(from)) return;
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
    return { digests: this.#digestings[this.#madeBy.get(row)] ?? this.digests, items: [[key, kept]] };
  }

  #charge(
    delta: Delta,
    { sync, day }: Sub,
    submitted: number,
    back: number,
    credits: number,
    prices: readonly Price[] = [],
  ): Delta {
    const { by } = this.#options.author;
    const before = this.#spent.get(spendingKey(day, sync, by)) ?? [day, sync, by, 0, 0, 0];
    const after: Spending = [day, sync, by, before[3] + submitted, before[4] + back, before[5] + credits];
    this.add({ digests: this.digests, spent: [after], prices }, 0);
    return { ...delta, spent: [after], prices };
  }

  #chargedWhere(isIt: (day: Day, sync: string) => boolean): Charged {
    const sum = { submitted: 0, credits: 0, open: 0 };
    for (const [day, sync, , submitted, back, credits] of this.#spent.values()) {
      if (!isIt(day, sync)) continue;
      sum.submitted += submitted - back;
      sum.credits += credits;
    }
    for (const { subs } of this.#full.values())
      for (const sub of Object.values(subs)) if (isUncharged(sub) && isIt(sub.day, sub.sync)) sum.open += 1;
    return sum;
  }
}

/** Only a sync, which platforms name, may hold the sign between them. */
const spendingKey = (...[day, sync, by]: readonly [Day, string, string, ...number[]]): string =>
  `${day}|${by}|${sync}`;
