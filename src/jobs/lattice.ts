import { type Day, dayOf } from "../time.ts";
import type { Digesting } from "./identity.ts";
import { remembered } from "./packed.ts";

/**
 * How far a submission without an answer has come. `unknown`: it is about to leave, or its answer was lost. `void`: it
 * did not leave, or the service did not take it. `refused`: the service does not take the item. `open`: a job works on
 * it. `unpaid`: its result says that the account has run dry. `failed`: its result says that the job failed and cost nothing.
 */
export type Step = "unknown" | "void" | "refused" | "open" | "unpaid" | "failed";

const RANK: Readonly<Record<Step, number>> = {
  unknown: 0,
  void: 1,
  refused: 2,
  open: 3,
  unpaid: 4,
  failed: 5,
};

/** A submission that brought no answer so far. Moments are epoch ms by the service's clock. */
export type Sub = {
  /** Made once, by the run that submits. */
  readonly id: string;
  readonly at: number;
  readonly step: Step;
  /** The UTC day and the sync to which it is charged. */
  readonly day: Day;
  readonly sync: string;
  readonly job: string | null;
  /** When the result came that brought no answer. */
  readonly ended: number | null;
  /** The service said that there is no answer before. */
  readonly notBefore: number | null;
  /** When the service was last asked for the result. */
  readonly asked: number | null;
  /** How often asking brought nothing of use, in runs in which another job was answered properly. */
  readonly misses: number;
  /** What the service said last, if it was not an answer. */
  readonly code: string | null;
  /** E-mail checks: the sources that were answered. */
  readonly sources: readonly string[];
};

/** By what an answer can be had again: its job, or its sealed response. */
export type Handle = {
  readonly id: string;
  readonly at: number;
  /** The UTC day of its submission. */
  readonly day: Day;
  readonly job: string | null;
  readonly sealed: string | null;
  /** Whether the answer came. If not, another submission of that day was answered, and this job may bring the answer too. */
  readonly sure: boolean;
  readonly cost: number;
};

/** All that is known of the purchases of one item. */
export type Item = {
  /** The UTC day on which the newest answered submission was made; "" if none was answered. */
  readonly day: Day | "";
  /** How the answer of that day can be had again. */
  readonly handle: Handle | null;
  /** By id, the submissions that were made after that day. */
  readonly subs: Readonly<Record<string, Sub>>;
};

/** Counters of one run, sync and day, which only grow: submissions, those that were not taken after all, credits. */
export type Spending = readonly [submitted: number, back: number, credits: number];

/** When an answer came, and its credits. */
export type Price = readonly [at: number, credits: number];

/** News of purchases. Whatever is remembered is one, and two are only ever put together by joining them. */
export type Delta = {
  /** How the keys of the items were made. */
  readonly digests: Digesting;
  readonly items: ReadonlyMap<string, Item>;
  /** Items of which only the day of the answer is known, as packed digests. */
  readonly days: readonly (readonly [Day, string])[];
  /** By sync, run and day: see `spendingKey`. */
  readonly spent: ReadonlyMap<string, Spending>;
  readonly prices: readonly Price[];
  /** By stream the generation that was begun without knowing an answer of any listed item. */
  readonly blind: ReadonlyMap<string, number>;
};

export const UNBOUGHT: Item = { day: "", handle: null, subs: {} };

export const newsOf = (digests: Digesting, news: Partial<Delta> = {}): Delta => ({
  digests,
  items: new Map(),
  days: [],
  spent: new Map(),
  prices: [],
  blind: new Map(),
  ...news,
});

/** A submission that is about to leave. */
export const newSub = (id: string, at: number, day: Day, sync: string): Sub => ({
  ...{ id, at, step: "unknown", day, sync, job: null, ended: null, notBefore: null, asked: null },
  ...{ misses: 0, code: null, sources: [] },
});

type Ranked = readonly (number | string)[];

function compare(a: Ranked, b: Ranked): number {
  for (const [nth, one] of a.entries()) {
    const other = b[nth] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** What is not known ranks lowest. The text decides only between two writers of one submission. */
const rankOfSub = ({ step, asked, ended, misses, ...rest }: Sub): Ranked => [
  ...[RANK[step], asked ?? Number.NEGATIVE_INFINITY, ended ?? Number.NEGATIVE_INFINITY, misses],
  JSON.stringify([rest.job, rest.notBefore, rest.code, rest.sources, rest.at, rest.day, rest.sync]),
];

const rankOfHandle = ({ day, sure, at, id, job, sealed, cost }: Handle): Ranked => [
  ...[day, Number(sure), at, id, Number(sealed !== null) + Number(job !== null), cost],
  JSON.stringify([job, sealed]),
];

const higherSub = (a: Sub | undefined, b: Sub): Sub =>
  a === undefined || compare(rankOfSub(a), rankOfSub(b)) < 0 ? b : a;

/** The better of two handles. */
export function higherHandle(a: Handle | null, b: Handle | null): Handle | null {
  if (a === null || b === null || a === b) return a ?? b;
  return compare(rankOfHandle(a), rankOfHandle(b)) < 0 ? b : a;
}

/**
 * Everything that either knows of an item: commutative, associative, idempotent. An answer covers all submissions up to
 * the end of the day on which its own was made, because nothing is bought twice on one day; of those that are covered
 * the job may still bring the answer to a stream that lacks it.
 */
export function joinItems(a: Item, b: Item): Item {
  if (a === b) return a;
  const day = a.day > b.day ? a.day : b.day;
  let handle = [a.handle, b.handle].reduce((one, other) =>
    higherHandle(one?.day === day ? one : null, other?.day === day ? other : null),
  );
  if (handle?.day !== day) handle = null;
  const subs: Record<string, Sub> = {};
  for (const sub of [...Object.values(a.subs), ...Object.values(b.subs)]) {
    const made = dayOf(sub.at);
    if (made > day) subs[sub.id] = higherSub(subs[sub.id], sub);
    else if (made === day && sub.job !== null) handle = higherHandle(handle, unsure(sub, sub.job));
  }
  return { day, handle, subs };
}

const unsure = ({ id, at }: Sub, job: string): Handle => ({
  ...{ id, at, day: dayOf(at), job, sealed: null, sure: false, cost: 0 },
});

export const joinSpending = (a: Spending | undefined, b: Spending): Spending =>
  a === undefined ? b : [Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.max(a[2], b[2])];

/** How many answers tell what the next one may cost. */
const PRICES_KEPT = 50;

/** The newest of both, oldest first. */
export function joinPrices(a: readonly Price[], b: readonly Price[]): readonly Price[] {
  const all = [...a, ...b].sort(compare);
  return all
    .filter((price, nth) => nth === 0 || compare(price, all[nth - 1] ?? []) !== 0)
    .slice(-PRICES_KEPT);
}

export const spendingKey = (sync: string, by: string, day: Day): string => `${sync}|${by}|${day}`;

/** Sync, run and day of a key. Only a sync, which platforms name, may hold the sign between them. */
export const partsOfSpending = remembered(
  (key: string): { readonly sync: string; readonly by: string; readonly day: Day } => {
    const parts = key.split("|");
    const [by = "", day = ""] = parts.slice(-2);
    return { sync: parts.slice(0, -2).join("|"), by, day: day as Day };
  },
);

/** Submissions of one item that are kept although the service did not take them. */
const MOST_NOT_TAKEN = 4;
const NOT_TAKEN: ReadonlySet<Step> = new Set<Step>(["void", "refused", "unpaid"]);

/** Forgets all but the newest submissions that were not taken. If an older memory then says that one left, it is unknown. */
export function trimmed(item: Item): Item {
  const idle = subsOf(item).filter(({ step }) => NOT_TAKEN.has(step));
  if (idle.length <= MOST_NOT_TAKEN) return item;
  const subs = { ...item.subs };
  for (const { id } of idle.slice(0, -MOST_NOT_TAKEN)) delete subs[id];
  return { ...item, subs };
}

/** Submissions without an answer, oldest first. */
export const subsOf = ({ subs }: Item): Sub[] =>
  Object.values(subs).sort((a, b) => compare([a.at, a.id], [b.at, b.id]));

/** The jobs that work on an item. */
export const openOf = (item: Item): Sub[] => subsOf(item).filter(({ step }) => step === "open");

/** Whether nothing of an item is out that may be paid for. */
export const isSettled = ({ subs }: Item): boolean => !Object.values(subs).some(isOut);

/** E-mail checks: the sources that failed submissions were answered for. */
export const sourcesOf = ({ subs }: Item): readonly string[] => [
  ...new Set(Object.values(subs).flatMap(({ sources }) => sources)),
];

/** Whether a submission may be paid for and has brought nothing so far. */
export const isOut = ({ step }: Sub): boolean => step === "open" || step === "unknown";
