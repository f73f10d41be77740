import { type Day, dayOf } from "../base/time.ts";

/**
 * How far a submission has come, the furthest last. `unknown`: it may have left, and no answer came. `void`: it did not
 * leave, or the service did not take it. `refused`: the service does not take the item. `open`: a job works on it.
 * `unpaid`: its result says that the account has run dry. `failed`: its result says that it cost nothing. `covered`:
 * another submission of its day was answered, and its job may have the answer too. `answered`: its answer came.
 */
export const STEPS = [
  ...(["unknown", "void", "refused", "open", "unpaid", "failed"] as const),
  ...(["covered", "answered"] as const),
] as const;
export type Step = (typeof STEPS)[number];

/** One submission of an item. Moments are epoch ms by the service's clock. */
export type Submission = {
  /** Made once, by the run that submits. */
  readonly id: string;
  readonly at: number;
  readonly step: Step;
  /** The UTC day and the sync to which it is charged. */
  readonly day: Day;
  readonly sync: string;
  readonly job: string | null;
  /** The answer of a verification, for this item's eyes only: its job cannot be asked for it. */
  readonly sealed: string | null;
  /** When this run learned that its answer is lost, or its result came without an answer. */
  readonly ended: number | null;
  /** When to ask for the result: the service named it, or the last reply was useless. */
  readonly due: number | null;
  /** When the service was last asked for the result. */
  readonly asked: number | null;
  /** Credits that are charged already for its answer, of use or not. */
  readonly charged: number;
  /** The code of the service's last reply, if that was useless. */
  readonly code: string | null;
};

/** All that is known of the purchases of one item. */
export type Item = {
  /** The UTC day on which the newest answered submission was made; "" if none was answered. */
  readonly day: Day | "";
  /** By id, the submissions that were made after that day, and those of that day by which the answer is retrieved again. */
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

export const UNBOUGHT: Item = { day: "", subs: {} };

/** A submission that is about to leave. */
export const newSubmission = (id: string, at: number, day: Day, sync: string): Submission => ({
  ...{ id, at, step: "unknown", day, sync, job: null, sealed: null, ended: null, due: null, asked: null },
  ...{ charged: 0, code: null },
});

/** The rest of a submission whose item is answered. */
export const finished = (
  { id, at, day, sync, job }: Submission,
  fields: Pick<Submission, "step"> & Partial<Submission>,
): Submission => ({ ...newSubmission(id, at, day, sync), job, ...fields });

type Ranked = readonly (number | string)[];

function compare(a: Ranked, b: Ranked): number {
  for (const [nth, one] of a.entries()) {
    const other = b[nth] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** Later moments and larger counters count where two texts know one submission. The text decides only between two writers. */
function higher(a: Submission, b: Submission): Submission {
  const never = Number.NEGATIVE_INFINITY;
  const rankOf = ({ step, asked, due, ended, charged }: Submission): Ranked => [
    ...[STEPS.indexOf(step), asked ?? never, due ?? never, ended ?? never, charged],
  ];
  const order = compare(rankOf(a), rankOf(b)) || compare([JSON.stringify(a)], [JSON.stringify(b)]);
  return order < 0 ? b : a;
}

/**
 * Everything that either knows of an item: commutative, associative, idempotent. An answer covers all submissions up to
 * the end of the day on which its own was made, because no item is bought twice on one day.
 */
export function joinItems(a: Item, b: Item): Item {
  const all = [...Object.values(a.subs), ...Object.values(b.subs)];
  const answers = all.filter(({ step }) => step === "answered").map(({ at }) => dayOf(at));
  const day = [a.day, b.day, ...answers].reduce((one, other) => (other > one ? other : one));
  const subs: Record<string, Submission> = {};
  for (const sub of all) {
    const made = dayOf(sub.at);
    const isRetrievable = made === day && (sub.job !== null || sub.sealed !== null);
    if (made <= day && !isRetrievable) continue;
    const known = isRetrievable && sub.step !== "answered" ? finished(sub, { step: "covered" }) : sub;
    subs[sub.id] = higher(subs[sub.id] ?? known, known);
  }
  return { day, subs: Object.keys(subs).length === 0 ? UNBOUGHT.subs : subs };
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

/** Submissions, oldest first. */
export const submissionsOf = ({ subs }: Item): Submission[] =>
  Object.values(subs).sort((a, b) => compare([a.at, a.id], [b.at, b.id]));

/** Whether a submission waits for no answer any more, because its item has one. */
export const isFinished = ({ step }: Submission): boolean => step === "covered" || step === "answered";

/** The submission by which the newest answer is retrieved best; undefined: it is not. */
export function handleOf(item: Item): Submission | undefined {
  const all = submissionsOf(item).filter(isFinished);
  return all.findLast(({ step }) => step === "answered") ?? all.at(-1);
}

/** The jobs that work on an item. */
export const openOf = (item: Item): Submission[] => submissionsOf(item).filter(({ step }) => step === "open");

/** Whether no submission of this item can still be charged. */
export const isSettled = ({ subs }: Item): boolean => !Object.values(subs).some(isOut);

/** Whether a submission may be paid for and has no answer so far. */
export const isOut = ({ step }: Submission): boolean => step === "open" || step === "unknown";
