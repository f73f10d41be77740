import { addDays, type Day, later } from "../time.ts";
import { type Charged, type ChargedSoFar, estimateOf, monthOf, PRICES_KEPT } from "./caps.ts";
import { type Digesting, digestOf, isSameDigesting } from "./digest.ts";
import { FinishedItems } from "./finished-items.ts";
import { type Entry, oldSpellingsOf } from "./items.ts";
import { isOpen, type Job, newJob } from "./job.ts";

/** Days for which what was spent is kept: two months. */
export const DAYS_KEPT = 62;

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

/** What was charged to a day. `credits` of answers; what is open is counted by the jobs. */
export type Spent = { readonly submitted: number; readonly credits: number };

/** Jobs and finished items under one way of making digests. */
export type Ledger = {
  readonly digests: Digesting;
  readonly jobs: ReadonlyMap<string, Job>;
  readonly finished: FinishedItems;
};

/** All that is known of the items of one setting. Ledgers: the one in use first, then older ones. */
export type Knowledge = {
  readonly ledgers: readonly Ledger[];
  readonly spent: ReadonlyMap<Day, Spent>;
  readonly prices: readonly number[];
  readonly inputs: readonly InputCursor[];
};

/** What is known of every item: the only place where an item comes to another step. */
export class JobBook {
  readonly digests: Digesting;
  readonly finished: FinishedItems;
  readonly inputs = new Map<string, InputCursor>();
  /** The jobs of this run, by item. */
  readonly ofThisRun = new Map<string, Job>();
  readonly #jobs = new Map<string, Job>();
  readonly #older: { digests: Digesting; jobs: Map<string, Job>; finished: FinishedItems }[];
  /** The keys that items had under older digests. */
  readonly #moved = new Map<string, string>();
  readonly #spent: Map<Day, Spent>;
  #prices: readonly number[];
  #syncCharged = { submitted: 0, credits: 0 };

  constructor({ ledgers, spent, prices, inputs }: Knowledge, digests: Digesting) {
    const current = ledgers.find((ledger) => isSameDigesting(ledger.digests, digests));
    this.digests = digests;
    this.finished = current?.finished ?? new FinishedItems();
    for (const [key, job] of current?.jobs ?? []) this.#jobs.set(key, job);
    this.#older = ledgers
      .filter((ledger) => ledger !== current)
      .map(({ digests: made, jobs, finished }) => ({ digests: made, jobs: new Map(jobs), finished }));
    this.#spent = new Map(spent);
    this.#prices = prices;
    for (const input of inputs) this.inputs.set(input.from, input);
  }

  /** Every job, those under older digests too, by key. */
  *jobs(): Generator<[string, Job]> {
    yield* this.#jobs;
    for (const { jobs } of this.#older) yield* jobs;
  }

  get(given: string): Job | undefined {
    const key = this.#moved.get(given) ?? given;
    return this.#jobs.get(key) ?? this.#older.find(({ jobs }) => jobs.has(key))?.jobs.get(key);
  }

  /** How many items are known, whatever their step. */
  get size(): number {
    const older = this.#older.reduce((sum, { jobs, finished }) => sum + jobs.size + finished.size, 0);
    return this.#jobs.size + this.finished.size + older;
  }

  /** How many items are written out in full. */
  get jobCount(): number {
    return this.#older.reduce((sum, { jobs }) => sum + jobs.size, this.#jobs.size);
  }

  /** The key of an item. What is known of it under older digests is moved to this key. */
  keyOf(entry: Entry): string {
    const { item } = entry;
    const key = digestOf(this.digests, item ?? "");
    for (const older of this.#older) {
      if (older.jobs.size === 0 && older.finished.size === 0) continue;
      const spellings = older.digests.salt === null ? oldSpellingsOf(entry) : [item ?? ""];
      for (const spelling of spellings) this.#takeOver(digestOf(older.digests, spelling), older, key);
    }
    return key;
  }

  /** A submission is about to leave. Returns what takes that back, for one that the service did not take. */
  intend(key: string, at: number, day: Day, owed: readonly string[]): () => void {
    const before = this.#jobs.get(key);
    const finished = this.finished.dayOf(key);
    const job: Job = {
      ...newJob(at, day, owed),
      tries: before?.step === "failed" ? before.tries : 0,
      unknowns: before?.step === "unknown" ? before.unknowns + 1 : 0,
      sources: before?.sources ?? [],
      isRefresh: finished !== undefined || before?.isRefresh === true,
    };
    // What is submitted again although it is unknown was possibly charged before.
    const unpaid = before?.step === "unknown" ? this.estimate : 0;
    this.#charge(before?.day ?? day, 0, unpaid);
    this.#charge(day, 1, 0);
    this.#syncCharged.submitted += 1;
    this.finished.delete(key);
    this.put(key, job);
    this.ofThisRun.set(key, job);
    return () => {
      this.#charge(before?.day ?? day, 0, -unpaid);
      this.#charge(day, -1, 0);
      this.#syncCharged.submitted -= 1;
      this.ofThisRun.delete(key);
      this.#jobs.delete(key);
      if (before !== undefined) this.#jobs.set(key, before);
      if (finished !== undefined) this.finished.add(key, finished);
    };
  }

  /** Replaces what is known of a job. */
  put(given: string, job: Job): void {
    const key = this.#moved.get(given) ?? given;
    const older = this.#older.find(({ jobs }) => jobs.has(key));
    (older?.jobs ?? this.#jobs).set(key, job);
    if (this.ofThisRun.get(key)?.at === job.at) this.ofThisRun.set(key, job);
  }

  /** The cost of a job is known: it is charged to the day and the sync that submitted it, once. */
  charge(key: string, job: Job, cost: number): void {
    if (job.cost !== null) return;
    this.#charge(job.day, 0, cost);
    if (this.ofThisRun.get(key)?.at === job.at) this.#syncCharged.credits += cost;
    this.#prices = [...this.#prices, cost].slice(-PRICES_KEPT);
  }

  /** Adds a submission that the state did not know of. */
  addCharge(day: Day, credits: number): void {
    this.#charge(day, 1, credits);
  }

  /** Adds the cost of a submission that the state knew of as open. */
  addCost(day: Day, credits: number): void {
    this.#charge(day, 0, credits);
  }

  /** What the receipts know of an item replaces what the state knew. */
  adopt(key: string, job: Job): void {
    this.finished.delete(key);
    this.#jobs.set(key, job);
  }

  /** An item is done and delivered. */
  finish(given: string, day: Day): void {
    const key = this.#moved.get(given) ?? given;
    const older = this.#older.find(({ jobs }) => jobs.has(key));
    (older?.jobs ?? this.#jobs).delete(key);
    (older?.finished ?? this.finished).add(key, day);
  }

  get estimate(): number {
    return estimateOf(this.#prices);
  }

  get prices(): readonly number[] {
    return this.#prices;
  }

  learnPrices(prices: readonly number[]): void {
    if (this.#prices.length === 0) this.#prices = prices.slice(-PRICES_KEPT);
  }

  /** The day to charge: never one before a day that was charged already. */
  dayToCharge(today: Day): Day {
    return [...this.#spent.keys()].reduce((day, charged) => later(day, charged), today);
  }

  /** What is charged to this sync, a day and its month. */
  charged(day: Day): ChargedSoFar {
    const open = { sync: 0, day: 0, month: 0 };
    for (const [key, job] of this.jobs()) {
      if (!isOpen(job)) continue;
      if (this.ofThisRun.get(key)?.at === job.at) open.sync += 1;
      if (job.day === day) open.day += 1;
      if (monthOf(job.day) === monthOf(day)) open.month += 1;
    }
    const month = [...this.#spent].filter(([spentOn]) => monthOf(spentOn) === monthOf(day));
    const sum = (part: keyof Spent): number => month.reduce((total, [, spent]) => total + spent[part], 0);
    const today: Spent = this.#spent.get(day) ?? { submitted: 0, credits: 0 };
    const charged = (spent: Spent, count: number): Charged => ({ ...spent, open: count });
    return {
      sync: charged(this.#syncCharged, open.sync),
      day: charged(today, open.day),
      month: charged({ submitted: sum("submitted"), credits: sum("credits") }, open.month),
    };
  }

  /** What a state says: only the last days of what was spent are kept. */
  knowledge(today: Day): Knowledge {
    const first = addDays(today, 1 - DAYS_KEPT);
    const spent = [...this.#spent].filter(([day]) => day >= first).sort(([a], [b]) => (a < b ? -1 : 1));
    const older = this.#older.filter(({ jobs, finished }) => jobs.size > 0 || finished.size > 0);
    return {
      ledgers: [{ digests: this.digests, jobs: this.#jobs, finished: this.finished }, ...older],
      spent: new Map(spent),
      prices: this.#prices,
      inputs: [...this.inputs.values()],
    };
  }

  #charge(day: Day, submitted: number, credits: number): void {
    const before = this.#spent.get(day) ?? { submitted: 0, credits: 0 };
    this.#spent.set(day, {
      submitted: before.submitted + submitted,
      // Fractions that were added and taken back may leave less than nothing.
      credits: Math.max(0, before.credits + credits),
    });
  }

  /** The newest submission counts: a job that is still to be delivered before an answer that was. */
  #takeOver(old: string, older: { jobs: Map<string, Job>; finished: FinishedItems }, key: string): void {
    const job = older.jobs.get(old);
    const day = older.finished.dayOf(old);
    if (job !== undefined) {
      const known = this.#jobs.get(key);
      if (known === undefined || known.at < job.at) this.#jobs.set(key, job);
      older.jobs.delete(old);
      this.#moved.set(old, key);
    }
    if (day !== undefined) {
      this.finished.add(key, day);
      older.finished.delete(old);
    }
  }
}
