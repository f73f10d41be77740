import { isDeepStrictEqual } from "node:util";
import { addDays, BEGINNING, type Day, dayOf, HOUR_MS } from "../base/time.ts";
import { type Account, type Charged, roomFor } from "./caps.ts";
import { isInFlight, probesLeft, reasonToBuy } from "./due.ts";
import { digestOf, type Salt } from "./identity.ts";
import type { JobType } from "./job-type.ts";
import {
  addPrice,
  type Changes,
  finished,
  handleOf,
  type Item,
  isFinished,
  isOut,
  isSettled,
  joinItems,
  type KeyedItem,
  newSubmission,
  openOf,
  type PackedDay,
  type Price,
  type Spending,
  type Submission,
  submissionsOf,
  trimmed,
  UNBOUGHT,
} from "./join.ts";

/** Characters of a digest. */
const DIGEST = 16;

/** Days for which the book keeps what was spent: two months. */
const DAYS_KEPT = 62;

/** A state has the handles of at most this many answers that are not delivered. */
const MAX_HANDLES = 5_000;

/** A lost answer counts with these credits where no price is known. */
const UNKNOWN_PRICE = 10;

/** Where the pass over a stream of inputs got to. */
export type InputCursor = {
  readonly from: string;
  /** The month and the filters that it was made under. */
  readonly filters: string;
  /** Everything up to this day needs no second look. */
  readonly through: Day;
};

/** A stream of the setting. */
export type BookStream = {
  readonly name: string;
  readonly isSelected: boolean;
  /** Whether everything is to be delivered again, and the generation that the platform fills then. */
  readonly isRefresh: boolean;
  readonly generation: number | null;
};

export type BookOptions = {
  /** Turns items into the keys of the book. */
  readonly salt: Salt;
  /** The platform's name for this sync, which several runs may try. */
  readonly syncId: string;
  readonly runId: string;
  readonly streams: readonly BookStream[];
};

/** `days`: by item, the day of the newest answer that was delivered. `cursor` is the newest moment of the records. */
type Deliveries = BookStream & { readonly cursor: string | null; readonly days: Map<string, Day> };

/** The state of one stream: its part of the book, and where it got to. */
export type SavedJobs = Required<Changes> & {
  readonly delivered: readonly PackedDay[];
  readonly inputs: readonly InputCursor[];
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** The id of the salt of its digests. */
  readonly salt: string;
  /** The platform's generation that `delivered` is about. */
  readonly generation: number | null;
};

/**
 * The purchases of one setting: one entry for each item, under its digest. Only this class changes an item's step. It
 * knows what changed since the receipts were written.
 */
export class Book {
  readonly inputs = new Map<string, InputCursor>();
  /** Whether a stream has a state. */
  hasState = false;
  readonly salt: Salt;
  readonly #options: BookOptions;
  readonly #items = new Map<string, Item>();
  /** The items that have submissions without an answer. */
  readonly #busy = new Set<string>();
  /** The items of this connection's inputs and states, and whether inputs of this run name them. Receipts may know others. */
  readonly #own = new Map<string, boolean>();
  readonly #streams: Map<string, Deliveries>;
  readonly #spent = new Map<string, Spending>();
  #prices: readonly Price[] = [];
  /** The changes that the receipts lack. */
  readonly #changed = {
    items: new Map<string, Item>(),
    spent: new Map<string, Spending>(),
    prices: new Set<Price>(),
  };
  #submitted = 0;

  constructor(options: BookOptions) {
    this.salt = options.salt;
    this.#options = options;
    this.#streams = new Map(
      options.streams.map((one) => [one.name, { ...one, cursor: null, days: new Map() }]),
    );
  }

  /** How many items are known. */
  get size(): number {
    return this.#items.size;
  }

  get(key: string): Item {
    return this.#items.get(key) ?? UNBOUGHT;
  }

  has(key: string): boolean {
    return this.#items.has(key);
  }

  keyOf(item: string): string {
    return digestOf(this.salt, item);
  }

  /** The key of an item that this run's inputs name. */
  name(item: string): string {
    const key = this.keyOf(item);
    this.#own.set(key, true);
    return key;
  }

  /** All submissions without an answer. */
  get unanswered(): readonly Submission[] {
    return [...this.#busy].flatMap((key) => Object.values(this.get(key).subs));
  }

  /** The items of this connection whose jobs are open, or whose answers a stream lacks and can get. */
  *collectable(stream: string, namedOnly: boolean): Generator<string> {
    for (const [key, isNamed] of this.#own)
      if ((isNamed || !namedOnly) && this.toCollect(stream, key).length > 0) yield key;
  }

  // Texts.

  /** Joins what a text says. */
  add({ items = [], answered = [], spent = [], prices = [] }: Changes): void {
    for (const [key, item] of [...items, ...answered.flatMap(unpacked)])
      this.#put(key, joinItems(this.get(key), item));
    for (const counter of spent) this.#count(counter);
    for (const price of prices) this.#learn(price);
  }

  /** Joins the state of a stream. Its deliveries count for its generation only. */
  addState(stream: string, saved: SavedJobs): void {
    const { items, delivered, inputs } = saved;
    const answered = [...saved.answered, ...delivered];
    this.add({ ...saved, answered });
    for (const [key] of [...items, ...answered.flatMap(unpacked)])
      this.#own.set(key, this.#own.get(key) ?? false);
    for (const input of inputs)
      if (input.through > (this.inputs.get(input.from)?.through ?? "")) this.inputs.set(input.from, input);
    const known = this.#deliveriesTo(stream);
    const counts = known.generation === null ? !known.isRefresh : saved.generation === known.generation;
    for (const [key, { day }] of counts ? delivered.flatMap(unpacked) : []) known.days.set(key, day as Day);
    const generation = known.generation ?? saved.generation;
    this.#streams.set(stream, { ...known, cursor: saved.cursor, generation });
    this.hasState = true;
  }

  /** The changes since the last call. */
  takeChanges(): Changes {
    const { items, spent, prices } = this.#changed;
    const changes = { items: [...items], spent: [...spent.values()], prices: [...prices] };
    for (const changed of [items, spent, prices]) changed.clear();
    return changes;
  }

  /** All that is known, for receipts that begin. */
  *toReceipts(): Generator<Changes> {
    yield this.#money();
    const days: [Day | "", string][] = [];
    for (const [key, item] of this.#items) {
      if (Object.keys(item.subs).length > 0) yield { items: [[key, item]] };
      else days.push([item.day, key]);
    }
    yield { answered: packed(days) };
  }

  /** All that the state of a stream says about the items of this connection. */
  toState(stream: string, now: number): SavedJobs {
    const items: KeyedItem[] = [];
    const answered: [Day | "", string][] = [];
    const delivered: typeof answered = [];
    let handles = 0;
    for (const key of this.#own.keys()) {
      const item = this.get(key);
      const { day } = item;
      const isLacking = this.#options.streams.some(
        ({ name, isSelected }) => isSelected && this.hasUndelivered(name, key),
      );
      const kept = isLacking && handles < MAX_HANDLES && (handleOf(item)?.job ?? null) !== null;
      if (kept) handles += 1;
      if (kept) items.push([key, item]);
      else if (this.#busy.has(key)) items.push([key, { day: "", subs: unfinished(item) }]);
      if (!this.hasUndelivered(stream, key)) delivered.push([day, key]);
      else if (!kept) answered.push([day, key]);
    }
    const lists = { items, answered: packed(answered), delivered: packed(delivered) };
    const inputs = [...this.inputs.values()];
    const { cursor, generation } = this.#deliveriesTo(stream);
    return { cursor, generation, salt: this.salt.id, ...lists, ...this.#money(dayOf(now)), inputs };
  }

  // Events.

  /** The one question before an item is bought: its own past and the caps must both allow it. */
  mayBuy(
    key: string,
    { resubmitRules, caps }: Pick<JobType, "resubmitRules" | "caps">,
    now: number,
  ): boolean {
    const reason = reasonToBuy(this.get(key), resubmitRules, now);
    return reason !== undefined && roomFor(caps, this.account(now)) >= 1;
  }

  /** A submission is about to leave. Its moment is later than any that is known of the item. */
  intend(key: string, now: number): { readonly id: string; readonly at: number } {
    const { syncId, runId } = this.#options;
    const item = this.get(key);
    const at = Math.max(now, ...submissionsOf(item).map((sub) => sub.at + 1));
    const id = `${runId}.${this.#submitted++}`;
    const sub = newSubmission(id, at, this.#dayToCharge(dayOf(at)), syncId);
    this.#put(key, { ...item, subs: { ...item.subs, [id]: sub } });
    this.#charge(sub, [1, 0, 0]);
    return { id, at };
  }

  /** Says what became of a submission that was taken, or what asking for its result found. */
  change(key: string, id: string, fields: Partial<Omit<Submission, "id" | "at" | "day" | "sync">>): void {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub !== undefined && !isFinished(sub))
      this.#put(key, { ...item, subs: { ...item.subs, [id]: { ...sub, ...fields } } });
  }

  /** A submission did not leave, or the service did not take it. `code`: what the service refused about its form. */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): void {
    const sub = this.get(key).subs[id];
    this.change(key, id, { step, code });
    if (sub?.step === "unknown") this.#charge(sub, [0, 1, 0]);
  }

  /** Charges an answer that cannot be used, once, however often it is asked for. Returns the credits. */
  chargeUnusable(key: string, id: string, now: number, cost: number): number {
    const sub = this.get(key).subs[id];
    if (sub === undefined || isFinished(sub) || cost <= sub.charged) return 0;
    this.change(key, id, { charged: cost });
    this.#charge(sub, [0, 0, cost - sub.charged], [now, cost]);
    return cost - sub.charged;
  }

  /** The answer came. Lost submissions that it covers count with the price that is known. */
  answered(key: string, id: string, now: number, cost: number, sealed: string | null): void {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined || isFinished(sub)) return;
    const charged = Math.max(cost, sub.charged);
    const answer = finished(sub, { step: "answered", sealed, charged });
    const joined = joinItems({ ...item, subs: { ...item.subs, [id]: answer } }, UNBOUGHT);
    const others = Object.values(item.subs).filter((one) => one.id !== id && isUncharged(one));
    const lost = others.length - Object.values(joined.subs).filter(isUncharged).length;
    const credits = charged - sub.charged + lost * (this.#price ?? UNKNOWN_PRICE);
    this.#put(key, joined);
    this.#charge(sub, [0, 0, credits], [now, cost]);
  }

  // Deliveries. Each stream has its own.

  /** Whether the newest answer of an item was not delivered to a stream. */
  hasUndelivered(stream: string, key: string): boolean {
    return this.get(key).day > (this.#deliveriesTo(stream).days.get(key) ?? "");
  }

  /** The submission by which a stream gets an answer that it lacks without a purchase; undefined: by none. */
  retrievable(stream: string, key: string): Submission | undefined {
    return this.hasUndelivered(stream, key) ? handleOf(this.get(key)) : undefined;
  }

  /** The open jobs of an item, and how a stream gets the answer that it lacks. */
  toCollect(stream: string, key: string): readonly Submission[] {
    return [...openOf(this.get(key)), ...[this.retrievable(stream, key) ?? []].flat()];
  }

  /** Whether any answer of an item was delivered to a stream. */
  hasDelivered(stream: string, key: string): boolean {
    return this.#deliveriesTo(stream).days.has(key);
  }

  deliver(stream: string, key: string): void {
    const { day } = this.get(key);
    if (day !== "") this.#deliveriesTo(stream).days.set(key, day);
  }

  /** Records up to a moment were delivered. */
  moveCursor(stream: string, cursor: string | null): void {
    const known = this.#deliveriesTo(stream);
    if (cursor !== null && cursor > (known.cursor ?? "")) this.#streams.set(stream, { ...known, cursor });
  }

  /**
   * Whether a refresh has everything: no named item is open or unknown, and each known answer is delivered. It proves
   * nothing where the book knows no answer of any named item. @param empties whether the inputs name suppressed items, so
   * that the table is empty where they name no others
   */
  isRefreshed(stream: string, empties: boolean): boolean {
    const keys = [...this.#own].flatMap(([key, isNamed]) => (isNamed ? [key] : []));
    if (keys.length === 0) return empties;
    const isKnown = keys.some((key) => this.get(key).day !== "");
    return isKnown && keys.every((key) => isSettled(this.get(key)) && !this.hasUndelivered(stream, key));
  }

  // Money.

  get #price(): number | undefined {
    const credits = this.#prices.map(([, one]) => one).filter((one) => one > 0);
    return credits.length === 0 ? undefined : Math.max(...credits);
  }

  /** When the highest of the last prices was known first; 0 if no price before it was lower. */
  get #risenAt(): number {
    const paid = this.#prices.filter(([, credits]) => credits > 0);
    const rise = paid.findIndex(([, credits]) => credits === this.#price);
    return rise > 0 ? (paid[rise]?.[0] ?? 0) : 0;
  }

  /** Charges, and jobs in flight. */
  account(now: number): Account {
    const price = this.#price;
    const day = this.#dayToCharge(dayOf(now));
    const all = this.unanswered;
    const charged = (isIt: (day: Day, sync: string) => boolean): Charged => this.#charged(all, day, isIt);
    return {
      sync: charged((_day, sync) => sync === this.#options.syncId),
      day: charged((one) => one === day),
      month: charged((one) => one.slice(0, 7) === day.slice(0, 7)),
      price,
      isRising: all.some((sub) => isInFlight(sub) && sub.at < this.#risenAt && now - sub.at < HOUR_MS),
      probes: probesLeft(all, this.#prices.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY, dayOf(now)),
    };
  }

  /** Day, submissions and credits. */
  spentByDay(): readonly (readonly [Day, number, number])[] {
    const days = [...new Set([...this.#spent.values()].map(([day]) => day))].sort();
    return days.map((day) => {
      const { submitted, credits } = this.#charged([], day, (one) => one === day);
      return [day, submitted, credits] as const;
    });
  }

  /** Never a day before one that was charged already. */
  #dayToCharge(today: Day): Day {
    let last = today;
    for (const [day] of this.#spent.values()) if (day > last) last = day;
    return last;
  }

  /** The counters, but for those of more than 62 days ago. */
  #money(today: Day = BEGINNING): Pick<Required<Changes>, "spent" | "prices"> {
    const first = addDays(this.#dayToCharge(today), 1 - DAYS_KEPT);
    return { spent: [...this.#spent.values()].filter(([day]) => day >= first), prices: this.#prices };
  }

  #charged(all: readonly Submission[], today: Day, isIt: (day: Day, sync: string) => boolean): Charged {
    const sum = { submitted: 0, credits: 0, open: 0 };
    for (const [day, sync, , submitted, back, credits] of this.#spent.values()) {
      if (!isIt(day, sync)) continue;
      sum.submitted += submitted - back;
      sum.credits += credits;
    }
    for (const sub of all) {
      if (!isUncharged(sub) || !isIt(sub.day, sub.sync)) continue;
      // An answer that is lost never comes.
      const isLost = sub.step === "unknown" && (sub.ended !== null || sub.day < today);
      if (isLost) sum.credits += this.#price ?? UNKNOWN_PRICE;
      else sum.open += 1;
    }
    return sum;
  }

  /** The larger of each counter. */
  #count(counter: Spending): void {
    const key = spendingKey(...counter);
    const known = this.#spent.get(key);
    const larger = counter.map((part, nth) => (part > (known?.[nth] ?? 0) ? part : (known?.[nth] ?? part)));
    if (isDeepStrictEqual(larger, known)) return;
    for (const all of [this.#spent, this.#changed.spent])
      all.set(key, larger as readonly unknown[] as Spending);
  }

  #charge(
    { sync, day }: Submission,
    [submitted, back, credits]: readonly [submitted: number, back: number, credits: number],
    price?: Price,
  ): void {
    const { runId } = this.#options;
    const known = this.#spent.get(spendingKey(day, sync, runId)) ?? [day, sync, runId, 0, 0, 0];
    this.#count([day, sync, runId, known[3] + submitted, known[4] + back, known[5] + credits]);
    if (price !== undefined) this.#learn(price);
  }

  #learn(price: Price): void {
    const prices = addPrice(this.#prices, price);
    if (isDeepStrictEqual(prices, this.#prices)) return;
    this.#prices = prices;
    this.#changed.prices.add(price);
  }

  // Entries.

  #deliveriesTo(stream: string): Deliveries {
    const known = this.#streams.get(stream);
    if (known === undefined)
      throw new Error(`Cannot find the stream "${stream}": the book was opened without it`);
    return known;
  }

  #put(key: string, item: Item): void {
    const kept = trimmed(item);
    if (!isDeepStrictEqual(kept, this.get(key))) this.#changed.items.set(key, kept);
    this.#items.set(key, kept);
    if (Object.values(kept.subs).every(isFinished)) this.#busy.delete(key);
    else this.#busy.add(key);
  }
}

const unfinished = ({ subs }: Item): Item["subs"] =>
  Object.fromEntries(Object.entries(subs).filter(([, sub]) => !isFinished(sub)));

/** Whether it is not known yet what a submission costs. */
const isUncharged = (sub: Submission): boolean => isOut(sub) && sub.charged === 0;

/** Only a sync, which platforms name, may contain the separator. */
const spendingKey = (...[day, sync, runId]: readonly [Day, string, string, ...number[]]): string =>
  `${day}|${runId}|${sync}`;

/** Joins the digests of each day. */
function packed(all: Iterable<readonly [day: Day | "", key: string]>): readonly PackedDay[] {
  const days = new Map<Day, string>();
  for (const [day, key] of all) if (day !== "") days.set(day, (days.get(day) ?? "") + key);
  return [...days].sort(([one], [other]) => (one < other ? -1 : 1));
}

const unpacked = ([day, digests]: PackedDay): KeyedItem[] =>
  Array.from({ length: digests.length / DIGEST }, (_, nth) => [
    digests.slice(nth * DIGEST, (nth + 1) * DIGEST),
    { ...UNBOUGHT, day },
  ]);
