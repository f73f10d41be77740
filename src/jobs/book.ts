import { isDeepStrictEqual } from "node:util";
import { addDays, BEGINNING, type Day, dayOf, HOUR_MS } from "../base/time.ts";
import { type Account, type Charged, roomFor } from "./caps.ts";
import { isInFlight, probesLeft, reasonToBuy } from "./due.ts";
import { digestOf, type Salt } from "./identity.ts";
import type { JobType } from "./job-type.ts";
import {
  addPrice,
  type Changes,
  type Handle,
  type Item,
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

export type BookOptions = {
  /** Turns items into the keys of the book. */
  readonly salt: Salt;
  /** The platform's name for this sync, which several runs may try. */
  readonly syncId: string;
  readonly runId: string;
  /** The selected streams of the setting. */
  readonly streams?: readonly string[];
};

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
 * The purchases of one setting: one entry for each item, under its digest. Only this class changes an item's step. Each
 * change returns what the receipts must have on the disk before the run goes on.
 */
export class Book {
  readonly inputs = new Map<string, InputCursor>();
  /** The states that the streams of this run begin with. */
  readonly saved = new Map<string, SavedJobs>();
  readonly salt: Salt;
  readonly #options: BookOptions;
  readonly #items = new Map<string, Item>();
  /** The items that have submissions without an answer. */
  readonly #busy = new Set<string>();
  /** The items that this run's inputs name. */
  readonly #named = new Set<string>();
  /** Those, and the items in the states of this connection. Receipts may know items of other connections. */
  readonly #own = new Set<string>();
  /** By stream and item, the day of the newest answer that was delivered. */
  readonly #delivered = new Map<string, Map<string, Day>>();
  readonly #spent = new Map<string, Spending>();
  #prices: readonly Price[] = [];
  #submitted = 0;

  constructor(options: BookOptions) {
    this.salt = options.salt;
    this.#options = options;
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
    this.#named.add(key);
    this.#own.add(key);
    return key;
  }

  /** All submissions without an answer. */
  get unanswered(): readonly Submission[] {
    return [...this.#busy].flatMap((key) => Object.values(this.get(key).subs));
  }

  /** The items of this connection whose jobs are open, or whose answers a stream lacks and can get. */
  *collectable(stream: string, namedOnly: boolean): Generator<string> {
    for (const key of namedOnly ? this.#named : this.#own)
      if (openOf(this.get(key)).length > 0 || this.isRetrievable(stream, key)) yield key;
  }

  // Texts.

  /** Joins what a text says. Returns what the book did not know before. */
  add({ items = [], answered = [], spent = [], prices = [] }: Changes): Changes {
    const known = this.#money();
    const all = [...items, ...answered.flatMap(unpacked)];
    const changed = all.filter(([key, item]) => {
      const before = this.get(key);
      const joined = trimmed(joinItems(before, item));
      this.#put(key, joined);
      return !isDeepStrictEqual(joined, before);
    });
    for (const counter of spent) this.#joinSpending(counter);
    for (const price of prices) this.#prices = addPrice(this.#prices, price);
    const money = this.#money();
    return { items: changed, ...(!isDeepStrictEqual(money, known) && money) };
  }

  /** Joins the state of a stream. Returns what the book did not know before. @param counts whether its deliveries do */
  addState(stream: string, saved: SavedJobs, counts: boolean): Changes {
    const { items, delivered, inputs } = saved;
    const answered = [...saved.answered, ...delivered];
    const changes = this.add({ ...saved, answered });
    for (const [key] of [...items, ...answered.flatMap(unpacked)]) this.#own.add(key);
    for (const [key, { day }] of counts ? delivered.flatMap(unpacked) : [])
      this.#deliveredTo(stream).set(key, day as Day);
    for (const input of inputs)
      if (input.through > (this.inputs.get(input.from)?.through ?? "")) this.inputs.set(input.from, input);
    this.saved.set(stream, saved);
    return changes;
  }

  /** All that is known, for receipts that begin. */
  *toReceipts(): Generator<Changes> {
    yield this.#money();
    const days: [Day | "", string][] = [];
    for (const [key, item] of this.#items) {
      if (item.handle !== null || this.#busy.has(key)) yield { items: [[key, item]] };
      else days.push([item.day, key]);
    }
    yield { answered: packed(days) };
  }

  /** All that the state of a stream says about the items of this connection. */
  toState(stream: string, about: Pick<SavedJobs, "cursor" | "generation">, now: number): SavedJobs {
    const items: KeyedItem[] = [];
    const answered: [Day | "", string][] = [];
    const delivered: typeof answered = [];
    let handles = 0;
    for (const key of this.#own) {
      const { day, handle, subs } = this.get(key);
      const isLacking = [stream, ...(this.#options.streams ?? [])].some((one) =>
        this.hasUndelivered(one, key),
      );
      const kept = isLacking && handle !== null && handle.job !== null && handles < MAX_HANDLES;
      if (kept) handles += 1;
      if (kept || this.#busy.has(key))
        items.push([key, { day: kept ? day : "", handle: kept ? { ...handle, sealed: null } : null, subs }]);
      if (!this.hasUndelivered(stream, key)) delivered.push([day, key]);
      else if (!kept) answered.push([day, key]);
    }
    const lists = { items, answered: packed(answered), delivered: packed(delivered) };
    const inputs = [...this.inputs.values()];
    return { ...about, salt: this.salt.id, ...lists, ...this.#money(dayOf(now)), inputs };
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
  intend(key: string, now: number): { readonly id: string; readonly at: number; readonly changes: Changes } {
    const { syncId, runId } = this.#options;
    const item = this.get(key);
    const at = Math.max(now, ...submissionsOf(item).map((sub) => sub.at + 1));
    const id = `${runId}.${this.#submitted++}`;
    const sub = newSubmission(id, at, this.#dayToCharge(dayOf(at)), syncId);
    const changes = this.#replace(key, { ...item, subs: { ...item.subs, [id]: sub } });
    return { id, at, changes: { ...changes, ...this.#charge(sub, [1, 0, 0]) } };
  }

  /** Says what became of a submission that was taken, or what asking for its result found. */
  change(key: string, id: string, fields: Partial<Omit<Submission, "id" | "at" | "day" | "sync">>): Changes {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return {};
    return this.#replace(key, { ...item, subs: { ...item.subs, [id]: { ...sub, ...fields } } });
  }

  /** A submission did not leave, or the service did not take it. `code`: what the service refused about its form. */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): Changes {
    const sub = this.get(key).subs[id];
    const changes = this.change(key, id, { step, code });
    return sub?.step === "unknown" ? { ...changes, ...this.#charge(sub, [0, 1, 0]) } : changes;
  }

  /** Charges an answer that cannot be used, once, however often it is asked for. */
  chargeUnusable(key: string, id: string, now: number, cost: number): Changes & { readonly credits: number } {
    const sub = this.get(key).subs[id];
    const credits = sub === undefined ? 0 : Math.max(0, cost - sub.charged);
    if (sub === undefined || credits === 0) return { credits: 0 };
    const changes = this.change(key, id, { charged: cost });
    return { ...changes, ...this.#charge(sub, [0, 0, credits], [[now, cost]]), credits };
  }

  /** The answer came. Lost submissions that it covers count with the price that is known. */
  answered(key: string, id: string, now: number, cost: number, sealed: string | null): Changes {
    const item = this.get(key);
    const sub = item.subs[id];
    if (sub === undefined) return {};
    const day = dayOf(sub.at);
    const handle: Handle = { id, at: sub.at, job: sub.job, sealed, sure: true, cost };
    const joined = joinItems(item, { ...UNBOUGHT, day, handle });
    const lost = submissionsOf(item).filter(
      (one) => isUncharged(one) && one.id !== id && joined.subs[one.id] === undefined,
    );
    const credits = Math.max(0, cost - sub.charged) + lost.length * (this.#price ?? UNKNOWN_PRICE);
    return { ...this.#replace(key, joined), ...this.#charge(sub, [0, 0, credits], [[now, cost]]) };
  }

  // Deliveries. Each stream has its own.

  /** Whether the newest answer of an item was not delivered to a stream. */
  hasUndelivered(stream: string, key: string): boolean {
    return this.get(key).day > (this.#deliveredTo(stream).get(key) ?? "");
  }

  /** Whether a stream lacks the newest answer of an item, and can get it without a purchase. */
  isRetrievable(stream: string, key: string): boolean {
    return this.get(key).handle !== null && this.hasUndelivered(stream, key);
  }

  /** Whether any answer of an item was delivered to a stream. */
  hasDelivered(stream: string, key: string): boolean {
    return this.#deliveredTo(stream).has(key);
  }

  deliver(stream: string, key: string): void {
    const { day } = this.get(key);
    if (day !== "") this.#deliveredTo(stream).set(key, day);
  }

  /**
   * Whether a refresh has everything: no named item is open or unknown, and each known answer is delivered. It proves
   * nothing where the book knows no answer of any named item. @param empties whether the inputs name suppressed items, so
   * that the table is empty where they name no others
   */
  isRefreshed(stream: string, empties: boolean): boolean {
    const keys = [...this.#named];
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
  #joinSpending(counter: Spending): void {
    const key = spendingKey(...counter);
    const known = this.#spent.get(key) ?? counter;
    const larger = counter.map((part, nth) => (part > (known[nth] ?? 0) ? part : known[nth]));
    this.#spent.set(key, larger as readonly unknown[] as Spending);
  }

  #charge(
    { sync, day }: Submission,
    [submitted, back, credits]: readonly [submitted: number, back: number, credits: number],
    prices: readonly Price[] = [],
  ): Changes {
    const { runId } = this.#options;
    const before = this.#spent.get(spendingKey(day, sync, runId)) ?? [day, sync, runId, 0, 0, 0];
    const after: Spending = [
      ...([day, sync, runId] as const),
      ...([before[3] + submitted, before[4] + back, before[5] + credits] as const),
    ];
    this.#joinSpending(after);
    for (const price of prices) this.#prices = addPrice(this.#prices, price);
    return { spent: [after], prices };
  }

  // Entries.

  #deliveredTo(stream: string): Map<string, Day> {
    const known = this.#delivered.get(stream) ?? new Map<string, Day>();
    this.#delivered.set(stream, known);
    return known;
  }

  #put(key: string, item: Item): void {
    this.#items.set(key, item);
    if (item.subs === UNBOUGHT.subs || Object.keys(item.subs).length === 0) this.#busy.delete(key);
    else this.#busy.add(key);
  }

  #replace(key: string, item: Item): Changes {
    const kept = trimmed(item);
    this.#put(key, kept);
    this.#own.add(key);
    return { items: [[key, kept]] };
  }
}

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
