import { isDeepStrictEqual } from "node:util";
import type { Day } from "../base/time.ts";
import { roomFor } from "./caps.ts";
import {
  type Account,
  accountOf,
  type Charges,
  charge,
  isUncharged,
  joinCharges,
  NO_CHARGES,
  type Price,
  priceOfLost,
  spentByDay,
} from "./charges.ts";
import { reasonToBuy } from "./due.ts";
import { digestOf, type Salt } from "./identity.ts";
import type { JobType } from "./job-type.ts";
import {
  finished,
  handleOf,
  type Item,
  isFinished,
  isOut,
  joinItems,
  type KeyedItem,
  newSubmission,
  type Submission,
  trimmed,
  UNBOUGHT,
  withStep,
} from "./join.ts";

/** A state has the handles of at most this many answers that are not delivered. */
const MAX_HANDLES = 5_000;

/** Where the pass over a stream of inputs got to. */
export type InputCursor = {
  readonly from: string;
  /** The month, the service, the key and the filters that it was made under. */
  readonly filters: string;
  /** The state of a stream of rows: what it covers needs no second look. */
  readonly state: unknown;
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

/** A text of the book: all of it, or its changes. */
export type Changes = Charges & { readonly items: readonly KeyedItem[] };

/** The state of one stream: the text of this connection's items, and where the stream got to. */
export type SavedJobs = Changes & {
  /** The items whose newest answer the stream has, and its day. */
  readonly delivered: readonly (readonly [key: string, day: Day])[];
  readonly inputs: readonly InputCursor[];
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** The id of the salt of its digests. */
  readonly salt: string;
  /** The platform's generation that `delivered` is about. */
  readonly generation: number | null;
};

/**
 * The purchases of one setting: one entry for each item, under its digest. All that a text says and all that happens is
 * joined to it.
 */
export class Book {
  readonly inputs = new Map<string, InputCursor>();
  /** Whether a stream has a state. */
  hasState = false;
  readonly salt: Salt;
  readonly #options: BookOptions;
  readonly #items = new Map<string, Item>();
  /** An index: the items that have submissions without an answer. */
  readonly #busy = new Set<string>();
  #charges = NO_CHARGES;
  /** The items and charges that the receipts lack. */
  readonly #newItems = new Set<string>();
  #newCharges = NO_CHARGES;
  /** By stream: the newest moment of its records, and the generation that its deliveries are about. */
  readonly #streams: Map<string, Pick<SavedJobs, "cursor" | "generation">>;
  #submitted = 0;

  constructor(options: BookOptions) {
    this.salt = options.salt;
    this.#options = options;
    this.#streams = new Map(
      options.streams.map(({ name, generation }) => [name, { cursor: null, generation }]),
    );
  }

  /** How many items were submitted. */
  get size(): number {
    return [...this.#items.values()].filter(isTried).length;
  }

  /** How many items were bought, or may have been. */
  get purchases(): number {
    return [...this.#items.values()].filter(({ day, subs }) => day !== "" || subs.some(mayHaveCost)).length;
  }

  get(key: string): Item {
    return this.#items.get(key) ?? UNBOUGHT;
  }

  has(key: string): boolean {
    return isTried(this.get(key));
  }

  keyOf(item: string): string {
    return digestOf(this.salt, item);
  }

  /** The key of an item that this run's inputs name. */
  name(item: string): string {
    const key = this.keyOf(item);
    this.#join(key, { isNamed: true });
    return key;
  }

  /** All submissions without an answer. */
  get unanswered(): readonly Submission[] {
    return [...this.#busy].flatMap((key) => this.get(key).subs);
  }

  /** The items of this connection whose jobs are open, or whose answers a stream lacks and can get. */
  *collectable(stream: string, namedOnly: boolean): Generator<string> {
    for (const [key, item] of this.#items)
      if (isOwn(item) && (item.isNamed || !namedOnly) && this.toCollect(stream, key).length > 0) yield key;
  }

  // Texts.

  /** Joins what a text says, or what was charged. */
  add({ items = [], spent = [], prices = [] }: Partial<Changes>): void {
    for (const [key, item] of items) this.#join(key, item);
    if (spent.length + prices.length === 0) return;
    const all = joinCharges(this.#charges, { spent, prices });
    if (isDeepStrictEqual(all, this.#charges)) return;
    this.#charges = all;
    this.#newCharges = joinCharges(this.#newCharges, { spent, prices });
  }

  /** Joins the state of a stream. Its deliveries count for its generation only. */
  addState({ name, isRefresh, generation }: BookStream, saved: SavedJobs): void {
    const counts = generation === null ? !isRefresh : saved.generation === generation;
    const items = saved.items.map(([key, item]) => [key, { ...item, delivered: { [name]: "" } }] as const);
    const delivered = saved.delivered.map(
      ([key, day]) => [key, { day, delivered: { [name]: counts ? day : "" } }] as const,
    );
    this.add({ ...saved, items: [...items, ...delivered] });
    for (const input of saved.inputs) this.inputs.set(input.from, input);
    this.#streams.set(name, { cursor: saved.cursor, generation: generation ?? saved.generation });
    this.hasState = true;
  }

  /** The purchases and charges since the last call. */
  takeChanges(): Changes {
    const items = [...this.#newItems].map((key) => [key, this.get(key)] as const);
    const changes = { items, ...this.#newCharges };
    this.#newItems.clear();
    this.#newCharges = NO_CHARGES;
    return changes;
  }

  /** All that is known, for receipts that begin. */
  toReceipts(): Changes {
    return { items: [...this.#items].filter(([, item]) => isTried(item)), ...this.#charges };
  }

  /** All that the state of a stream says about the items of this connection. */
  toState(stream: string): SavedJobs {
    const items: KeyedItem[] = [];
    const delivered: [string, Day][] = [];
    for (const [key, item] of this.#items) {
      const { day } = item;
      if (!isOwn(item) || !isTried(item)) continue;
      const keepsHandle = items.length < MAX_HANDLES && this.#isLacking(key);
      const subs = item.subs.filter((sub) => !isFinished(sub) || (keepsHandle && sub.job !== null));
      const isDelivered = day !== "" && !this.hasUndelivered(stream, key);
      if (isDelivered) delivered.push([key, day]);
      if (subs.length > 0 || !isDelivered) items.push([key, { day, subs }]);
    }
    const lists = { items, delivered, ...this.#charges };
    return { ...this.#stream(stream), salt: this.salt.id, ...lists, inputs: [...this.inputs.values()] };
  }

  // Events.

  /** The one question before an item is bought: its own past and the caps must both allow it. */
  mayBuy(key: string, type: Pick<JobType, "resubmitRules" | "caps">, now: number): boolean {
    const reason = reasonToBuy(this.get(key), type.resubmitRules, now);
    return reason !== undefined && roomFor(type.caps, this.account(now)) >= 1;
  }

  /** A submission is about to leave. Its moment is later than any that is known of the item. */
  intend(key: string, now: number): { readonly id: string; readonly at: number } {
    const { syncId, runId } = this.#options;
    const at = Math.max(now, ...this.get(key).subs.map((sub) => sub.at + 1));
    const sub = newSubmission(`${runId}.${this.#submitted++}`, at, syncId);
    this.#join(key, { subs: [sub] });
    this.#chargeTo(sub, [1, 0, 0]);
    return sub;
  }

  /** Says what became of a submission that was taken, or what asking for its result found. */
  change(key: string, id: string, fields: Partial<Omit<Submission, "id" | "at" | "sync">>): void {
    const sub = this.#unfinished(key, id);
    if (sub !== undefined) this.#join(key, { subs: [{ ...sub, ...fields }] });
  }

  /** A submission did not leave, or the service did not take it. `code`: what the service refused about its form. */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): void {
    const sub = this.#unfinished(key, id);
    this.change(key, id, { step, code });
    if (sub?.step === "unknown") this.#chargeTo(sub, [0, 1, 0]);
  }

  /** Charges an answer that cannot be used, once, however often it is asked for. Returns the credits. */
  chargeUnusable(key: string, id: string, now: number, cost: number): number {
    const sub = this.#unfinished(key, id);
    if (sub === undefined || cost <= sub.charged) return 0;
    this.change(key, id, { charged: cost });
    this.#chargeTo(sub, [0, 0, cost - sub.charged], [now, cost]);
    return cost - sub.charged;
  }

  /** The answer came. Lost submissions that it covers count with the price that is known. */
  answered(key: string, id: string, now: number, cost: number, sealed: string | null): void {
    const sub = this.#unfinished(key, id);
    if (sub === undefined) return;
    const uncharged = (): number =>
      this.get(key).subs.filter((one) => one.id !== id && isUncharged(one)).length;
    const before = uncharged();
    const charged = Math.max(cost, sub.charged);
    this.#join(key, { subs: [finished(sub, { step: "answered", sealed, charged })] });
    const lost = (before - uncharged()) * priceOfLost(this.#charges);
    this.#chargeTo(sub, [0, 0, charged - sub.charged + lost], [now, cost]);
  }

  // Deliveries. Each stream has its own.

  /** Whether the newest answer of an item was not delivered to a stream. */
  hasUndelivered(stream: string, key: string): boolean {
    const { day, delivered } = this.get(key);
    return day > (delivered[stream] ?? "");
  }

  /** The submission by which a stream gets an answer that it lacks without a purchase; undefined: by none. */
  retrievable(stream: string, key: string): Submission | undefined {
    return this.hasUndelivered(stream, key) ? handleOf(this.get(key)) : undefined;
  }

  /** The open jobs of an item, and how a stream gets the answer that it lacks. */
  toCollect(stream: string, key: string): readonly Submission[] {
    return [...withStep(this.get(key).subs, "open"), ...[this.retrievable(stream, key) ?? []].flat()];
  }

  /** Whether any answer of an item was delivered to a stream. */
  hasDelivered(stream: string, key: string): boolean {
    return (this.get(key).delivered[stream] ?? "") !== "";
  }

  deliver(stream: string, key: string): void {
    this.#join(key, { delivered: { [stream]: this.get(key).day } });
  }

  /** Records up to a moment were delivered. */
  moveCursor(stream: string, cursor: string | null): void {
    const known = this.#stream(stream);
    if (cursor !== null && cursor > (known.cursor ?? "")) this.#streams.set(stream, { ...known, cursor });
  }

  /**
   * Whether a refresh has everything: no named item is open or unknown, and each known answer is delivered. It proves
   * nothing where the book knows no answer of any named item. @param empties whether the inputs name suppressed items, so
   * that the table is empty where they name no others
   */
  isRefreshed(stream: string, empties: boolean): boolean {
    const named = [...this.#items].filter(([, { isNamed }]) => isNamed);
    if (named.length === 0) return empties;
    const isKnown = named.some(([, { day }]) => day !== "");
    return (
      isKnown && named.every(([key, { subs }]) => !subs.some(isOut) && !this.hasUndelivered(stream, key))
    );
  }

  // Money.

  /** Charges, and jobs in flight. */
  account(now: number): Account {
    const own = [...this.#busy].map((key) => this.get(key)).filter(isOwn);
    const awaited = own.flatMap(({ subs }) => subs);
    return accountOf(this.#charges, { unanswered: this.unanswered, awaited }, this.#options, now);
  }

  /** Day, submissions and credits. */
  spentByDay(): readonly (readonly [Day, number, number])[] {
    return spentByDay(this.#charges);
  }

  /** Adds to the counters of this run, and to the prices. */
  #chargeTo(sub: Submission, more: Parameters<typeof charge>[3], ...prices: readonly Price[]): void {
    this.add({ spent: [charge(this.#charges, this.#options.runId, sub, more)], prices });
  }

  // Entries.

  /** The only way in which an entry changes. */
  #join(key: string, news: Partial<Item>): void {
    const known = this.get(key);
    const item = trimmed(joinItems(known, { ...UNBOUGHT, ...news }));
    this.#items.set(key, item);
    if (known.day !== item.day || !isDeepStrictEqual(known.subs, item.subs)) this.#newItems.add(key);
    if (item.subs.every(isFinished)) this.#busy.delete(key);
    else this.#busy.add(key);
  }

  #unfinished(key: string, id: string): Submission | undefined {
    return this.get(key).subs.find((sub) => sub.id === id && !isFinished(sub));
  }

  #stream(name: string): Pick<SavedJobs, "cursor" | "generation"> {
    return this.#streams.get(name) ?? { cursor: null, generation: null };
  }

  #isLacking(key: string): boolean {
    return this.#options.streams.some(({ name, isSelected }) => isSelected && this.hasUndelivered(name, key));
  }
}

/** Whether this connection knows an item. Receipts may know those of others. */
const isOwn = ({ isNamed, delivered }: Item): boolean => isNamed || Object.keys(delivered).length > 0;

const isTried = ({ day, subs }: Item): boolean => day !== "" || subs.length > 0;

const mayHaveCost = ({ step, charged }: Submission): boolean =>
  charged > 0 || (step !== "void" && step !== "refused" && step !== "failed");
