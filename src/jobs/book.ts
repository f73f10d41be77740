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

/** A state contains the job ids of at most this many undelivered answers. */
const MAX_HANDLES = 5_000;

/** How far the rows of a stream of people or companies were read for items. */
export type InputCursor = {
  readonly from: string;
  /** Identifies the month, the service, the key and the filters with which the rows were read. */
  readonly filters: string;
  /** The state of the stream of rows. The program does not read rows again that this state covers. */
  readonly state: unknown;
};

/** One of the setting's job streams. */
export type BookStream = {
  readonly name: string;
  readonly isSelected: boolean;
  /** Whether the run delivers all records again. */
  readonly isRefresh: boolean;
  /** The generation of records that the platform fills; null: the platform does not number generations. */
  readonly generation: number | null;
};

export type BookOptions = {
  /** Turns items into keys. */
  readonly salt: Salt;
  /** The platform's name for this sync. Several runs may attempt one sync. */
  readonly syncId: string;
  readonly runId: string;
  readonly streams: readonly BookStream[];
};

/** The entries of items and the charges, in the form that state and receipts share. */
export type Changes = Charges & { readonly items: readonly KeyedItem[] };

/** The state of one stream: the purchases of this connection, and the progress of the stream. */
export type SavedJobs = Changes & {
  /** Items whose newest answer was delivered to the stream, and the day of the answer. */
  readonly delivered: readonly (readonly [key: string, day: Day])[];
  readonly inputs: readonly InputCursor[];
  /** The newest moment of the delivered records. */
  readonly cursor: string | null;
  /** The id of the salt that made the keys. */
  readonly salt: string;
  /** The platform's generation to which `delivered` belongs. */
  readonly generation: number | null;
};

/** The purchases of one setting: one entry per item, under the item's digest. States, receipts and events only add to entries. */
export class Book {
  readonly inputs = new Map<string, InputCursor>();
  /** Whether any stream has a state. */
  hasState = false;
  readonly salt: Salt;
  readonly #options: BookOptions;
  readonly #items = new Map<string, Item>();
  /** The keys of items with unanswered submissions. */
  readonly #busy = new Set<string>();
  #charges = NO_CHARGES;
  /** The changed entries and the charges that are not yet in the receipts. */
  readonly #newItems = new Set<string>();
  #newCharges = NO_CHARGES;
  /** The progress of each stream, by the stream's name. */
  readonly #streams = new Map<string, Pick<SavedJobs, "cursor" | "generation">>();
  #submitted = 0;

  constructor(options: BookOptions) {
    this.salt = options.salt;
    this.#options = options;
    for (const { name, generation } of options.streams) this.#streams.set(name, { cursor: null, generation });
  }

  /** The number of items that were ever submitted. */
  get size(): number {
    return [...this.#items.values()].filter(isTried).length;
  }

  /** The number of items that were bought, or may have been bought. */
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

  /** Notes that the inputs of this run name an item. @returns the key of the item */
  name(item: string): string {
    const key = this.keyOf(item);
    this.#join(key, { isNamed: true });
    return key;
  }

  /** All unanswered submissions. */
  get unanswered(): readonly Submission[] {
    return [...this.#busy].flatMap((key) => this.get(key).subs);
  }

  /** Yields this connection's items that have an open job, or an answer that the stream can get without a purchase. */
  *collectable(stream: string, namedOnly: boolean): Generator<string> {
    for (const [key, item] of this.#items)
      if (isOwn(item) && (item.isNamed || !namedOnly) && this.toCollect(stream, key).length > 0) yield key;
  }

  /** Adds entries and charges. */
  add({ items = [], spent = [], prices = [] }: Partial<Changes>): void {
    for (const [key, item] of items) this.#join(key, item);
    if (spent.length + prices.length === 0) return;
    const all = joinCharges(this.#charges, { spent, prices });
    if (isDeepStrictEqual(all, this.#charges)) return;
    this.#charges = all;
    this.#newCharges = joinCharges(this.#newCharges, { spent, prices });
  }

  /** Adds the state of a stream. Its deliveries count only if this run fills the generation of the state. */
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

  /** Returns the changed entries and the charges since the last call. */
  takeChanges(): Changes {
    const items = [...this.#newItems].map((key) => [key, this.get(key)] as const);
    const changes = { items, ...this.#newCharges };
    this.#newItems.clear();
    this.#newCharges = NO_CHARGES;
    return changes;
  }

  /** All entries and charges, for a new file of receipts. */
  toReceipts(): Changes {
    return { items: [...this.#items].filter(([, item]) => isTried(item)), ...this.#charges };
  }

  /** The state of a stream, with the items of this connection only. */
  toState(stream: string): SavedJobs {
    const selected = this.#options.streams.filter(({ isSelected }) => isSelected);
    const items: KeyedItem[] = [];
    const delivered: [string, Day][] = [];
    for (const [key, item] of this.#items) {
      const { day } = item;
      if (!isOwn(item) || !isTried(item)) continue;
      const keepsHandle =
        items.length < MAX_HANDLES && selected.some(({ name }) => this.hasUndelivered(name, key));
      const subs = item.subs.filter((sub) => !isFinished(sub) || (keepsHandle && sub.job !== null));
      const isDelivered = day !== "" && !this.hasUndelivered(stream, key);
      if (isDelivered) delivered.push([key, day]);
      if (subs.length > 0 || !isDelivered) items.push([key, { day, subs }]);
    }
    const lists = { items, delivered, ...this.#charges };
    return { ...this.#stream(stream), salt: this.salt.id, ...lists, inputs: [...this.inputs.values()] };
  }

  /** Whether an item may be bought: its earlier submissions and the caps must both allow the purchase. */
  mayBuy(key: string, type: Pick<JobType, "resubmitRules" | "caps">, now: number): boolean {
    const reason = reasonToBuy(this.get(key), type.resubmitRules, now);
    return reason !== undefined && roomFor(type.caps, this.account(now)) >= 1;
  }

  /** Notes a submission before it is sent. Its moment is later than all known moments of the item. */
  intend(key: string, now: number): { readonly id: string; readonly at: number } {
    const { syncId, runId } = this.#options;
    const at = Math.max(now, ...this.get(key).subs.map((sub) => sub.at + 1));
    const sub = newSubmission(`${runId}.${this.#submitted++}`, at, syncId);
    this.#join(key, { subs: [sub] });
    this.#chargeTo(sub, [1, 0, 0]);
    return sub;
  }

  /** Changes a submission that has no answer. */
  change(key: string, id: string, fields: Partial<Omit<Submission, "id" | "at" | "sync">>): void {
    const sub = this.#unfinished(key, id);
    if (sub !== undefined) this.#join(key, { subs: [{ ...sub, ...fields }] });
  }

  /** Notes that a submission was not sent, or not taken. @param code why the service refused the form of the request */
  notTaken(key: string, id: string, step: "void" | "refused", code: string | null): void {
    const sub = this.#unfinished(key, id);
    this.change(key, id, { step, code });
    if (sub?.step === "unknown") this.#chargeTo(sub, [0, 1, 0]);
  }

  /** Charges an unusable answer once, even if the service sends it several times. @returns the new credits */
  chargeUnusable(key: string, id: string, now: number, cost: number): number {
    const sub = this.#unfinished(key, id);
    if (sub === undefined || cost <= sub.charged) return 0;
    this.change(key, id, { charged: cost });
    this.#chargeTo(sub, [0, 0, cost - sub.charged], [now, cost]);
    return cost - sub.charged;
  }

  /** Notes and charges an answer. Lost submissions that the answer covers are charged at the known price. */
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

  /** Whether a stream lacks the newest answer of an item. Each stream has its own deliveries. */
  hasUndelivered(stream: string, key: string): boolean {
    const { day, delivered } = this.get(key);
    return day > (delivered[stream] ?? "");
  }

  /** The open jobs of an item, and the submission by which a stream gets a missing answer without a purchase. */
  toCollect(stream: string, key: string): readonly Submission[] {
    const item = this.get(key);
    const handle = this.hasUndelivered(stream, key) ? handleOf(item) : undefined;
    return [...withStep(item.subs, "open"), ...[handle ?? []].flat()];
  }

  deliver(stream: string, key: string): void {
    this.#join(key, { delivered: { [stream]: this.get(key).day } });
  }

  /** Notes that records up to a moment were delivered. */
  moveCursor(stream: string, cursor: string | null): void {
    const known = this.#stream(stream);
    if (cursor !== null && cursor > (known.cursor ?? "")) this.#streams.set(stream, { ...known, cursor });
  }

  /**
   * Whether a refresh is complete. Every named item must be delivered, without an open or unknown submission. At least one named
   * item must have an answer. @param empties the result if no item is named: true if all items are suppressed
   */
  isRefreshed(stream: string, empties: boolean): boolean {
    const named = [...this.#items].filter(([, { isNamed }]) => isNamed);
    if (named.length === 0) return empties;
    const isDone = named.every(([key, { subs }]) => !subs.some(isOut) && !this.hasUndelivered(stream, key));
    return isDone && named.some(([, { day }]) => day !== "");
  }

  /** The charges, and the jobs whose cost is not known yet. */
  account(now: number): Account {
    const own = [...this.#busy].map((key) => this.get(key)).filter(isOwn);
    const awaited = own.flatMap(({ subs }) => subs);
    return accountOf(this.#charges, { unanswered: this.unanswered, awaited }, this.#options, now);
  }

  spentByDay(): readonly (readonly [Day, number, number])[] {
    return spentByDay(this.#charges);
  }

  /** Adds to the counters of this run and to the prices. */
  #chargeTo(sub: Submission, more: Parameters<typeof charge>[3], ...prices: readonly Price[]): void {
    this.add({ spent: [charge(this.#charges, this.#options.runId, sub, more)], prices });
  }

  /** Joins changes into an entry. Every change of an entry uses this method. */
  #join(key: string, changes: Partial<Item>): void {
    const known = this.get(key);
    const item = trimmed(joinItems(known, { ...UNBOUGHT, ...changes }));
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
}

/** Whether this connection knows an item. Receipts may also contain items of other connections. */
const isOwn = ({ isNamed, delivered }: Item): boolean => isNamed || Object.keys(delivered).length > 0;

const isTried = ({ day, subs }: Item): boolean => day !== "" || subs.length > 0;

const mayHaveCost = ({ step, charged }: Submission): boolean =>
  charged > 0 || (step !== "void" && step !== "refused" && step !== "failed");
