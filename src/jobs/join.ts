import { type Day, dayOf } from "../base/time.ts";

/**
 * How far a submission without an answer has come, the furthest last. `unknown`: it may have left, and no answer came.
 * `void`: it did not leave, or the service did not take it. `refused`: the service does not take the item. `open`: a job
 * works on it. `unpaid`: its result says that the account has run dry. `failed`: its result says that it cost nothing.
 */
export const STEPS = ["unknown", "void", "refused", "open", "unpaid", "failed"] as const;
export type Step = (typeof STEPS)[number];

/** A submission that has no answer so far. Moments are epoch ms by the service's clock. */
export type Submission = {
  /** Made once, by the run that submits. */
  readonly id: string;
  readonly at: number;
  readonly step: Step;
  /** The UTC day and the sync to which it is charged. */
  readonly day: Day;
  readonly sync: string;
  readonly job: string | null;
  /** When this run learned that its answer is lost, or its result came without an answer. */
  readonly ended: number | null;
  /** When to ask for the result: the service named it, or the last reply was useless. */
  readonly due: number | null;
  /** When the service was last asked for the result. */
  readonly asked: number | null;
  /** Credits that are charged already for an answer that could not be used. */
  readonly charged: number;
  /** The code of the service's last reply, if that was useless. */
  readonly code: string | null;
};

/** How an answer is retrieved again: by its job, or from its sealed response. */
export type Handle = {
  readonly id: string;
  readonly at: number;
  readonly job: string | null;
  readonly sealed: string | null;
  /** False: another submission of that day was answered, and this job may have the answer too. */
  readonly sure: boolean;
  readonly cost: number;
};

/** All that is known of the purchases of one item. */
export type Item = {
  /** The UTC day on which the newest answered submission was made; "" if none was answered. */
  readonly day: Day | "";
  /** How the answer of that day is retrieved again. */
  readonly handle: Handle | null;
  /** By id, the submissions that were made after that day. */
  readonly subs: Readonly<Record<string, Submission>>;
};

/** Under its digest. */
export type KeyedItem = readonly [key: string, item: Item];

/** Counters of one day, sync and run, which only grow: submissions, those that were not taken after all, credits. */
export type Spending = readonly [
  ...[day: Day, sync: string, runId: string],
  ...[submitted: number, back: number, credits: number],
];

/** When an answer came, and its credits. */
export type Price = readonly [at: number, credits: number];

/** A day, and the digests of items that were answered by a submission of that day, joined without a separator. */
export type PackedDay = readonly [day: Day, digests: string];

/** Changes of the book. State and receipts are texts of the same changes. */
export type Changes = {
  readonly items?: readonly KeyedItem[];
  /** Items of which only the day of the answer is known. */
  readonly answered?: readonly PackedDay[];
  readonly spent?: readonly Spending[];
  readonly prices?: readonly Price[];
};

export const UNBOUGHT: Item = { day: "", handle: null, subs: {} };

/** A submission that is about to leave. */
export const newSubmission = (id: string, at: number, day: Day, sync: string): Submission => ({
  ...{ id, at, step: "unknown", day, sync, job: null, ended: null, due: null, asked: null },
  ...{ charged: 0, code: null },
});

type Ranked = readonly (number | string)[];

function compare(a: Ranked, b: Ranked): number {
  for (const [nth, one] of a.entries()) {
    const other = b[nth] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** Chooses the one that ranks higher. The text decides only between two writers of one submission. */
const higherBy =
  <Part>(rankOf: (part: Part) => Ranked) =>
  (a: Part | null, b: Part | null): Part | null => {
    if (a === null || b === null || a === b) return a ?? b;
    const order = compare(rankOf(a), rankOf(b)) || compare([JSON.stringify(a)], [JSON.stringify(b)]);
    return order < 0 ? b : a;
  };

/** Later moments and larger counters count where two texts know one submission. */
const higherSubmission = higherBy<Submission>(({ step, asked, due, ended, charged }) => {
  const never = Number.NEGATIVE_INFINITY;
  return [STEPS.indexOf(step), asked ?? never, due ?? never, ended ?? never, charged];
});

/** The better of two handles of one day. */
export const higherHandle: (a: Handle | null, b: Handle | null) => Handle | null = higherBy<Handle>(
  ({ sure, at, id, job, sealed, cost }) => {
    const ways = [job, sealed].filter((way) => way !== null);
    return [Number(sure), at, id, ways.length, cost];
  },
);

/**
 * Everything that either knows of an item: commutative, associative, idempotent. An answer covers all submissions up to
 * the end of the day on which its own was made, because no item is bought twice on one day.
 */
export function joinItems(a: Item, b: Item): Item {
  const day = a.day > b.day ? a.day : b.day;
  const handles = [a, b].map((one) => (one.day === day ? one.handle : null));
  let handle = handles.reduce(higherHandle);
  const subs: Record<string, Submission> = {};
  for (const sub of [...Object.values(a.subs), ...Object.values(b.subs)]) {
    const made = dayOf(sub.at);
    if (made > day) subs[sub.id] = higherSubmission(subs[sub.id] ?? null, sub) ?? sub;
    else if (made === day && sub.job !== null) {
      const { id, at, job } = sub;
      handle = higherHandle(handle, { id, at, job, sealed: null, sure: false, cost: 0 });
    }
  }
  return { day, handle, subs: Object.keys(subs).length === 0 ? UNBOUGHT.subs : subs };
}

/** How many answers teach what the next one may cost. */
const PRICES_KEPT = 50;

/** Adds a price to the newest ones, oldest first. The newest answer without a cost stays too: it tells when one came. */
export function addPrice(prices: readonly Price[], price: Price): readonly Price[] {
  const all = [...prices.filter((one) => compare(one, price) !== 0), price].sort(compare);
  const free = all.findLast(([, credits]) => credits === 0);
  const paid = all.filter(([, credits]) => credits > 0).slice(-PRICES_KEPT);
  return free === undefined ? paid : [...paid, free].sort(compare);
}

/** Submissions of one item that are kept although the service did not take them. */
const MAX_NOT_TAKEN = 4;

/** Forgets all but the newest submissions that were not taken. An older copy of one that left makes it unknown again. */
export function trimmed(item: Item): Item {
  if (item.subs === UNBOUGHT.subs) return item;
  const isIdle = ({ step }: Submission): boolean =>
    step === "void" || step === "refused" || step === "unpaid";
  const idle = submissionsOf(item).filter(isIdle);
  if (idle.length <= MAX_NOT_TAKEN) return item;
  const subs = { ...item.subs };
  for (const { id } of idle.slice(0, -MAX_NOT_TAKEN)) delete subs[id];
  return { ...item, subs };
}

/** Submissions without an answer, oldest first. */
export const submissionsOf = ({ subs }: Item): Submission[] =>
  Object.values(subs).sort((a, b) => compare([a.at, a.id], [b.at, b.id]));

/** The jobs that work on an item. */
export const openOf = (item: Item): Submission[] => submissionsOf(item).filter(({ step }) => step === "open");

/** Whether no submission of this item can still be charged. */
export const isSettled = ({ subs }: Item): boolean => !Object.values(subs).some(isOut);

/** Whether a submission may be paid for and has no answer so far. */
export const isOut = ({ step }: Submission): boolean => step === "open" || step === "unknown";
