import { type Day, dayOf } from "../base/time.ts";
import { PRICES_KEPT } from "./caps.ts";
import type { Digesting } from "./identity.ts";
import type { PackedDay } from "./packed.ts";

/**
 * How far a submission without an answer has come, the furthest last. `unknown`: it is about to leave, or its answer was
 * lost. `void`: it did not leave, or the service did not take it. `refused`: the service does not take the item. `open`: a
 * job works on it. `unpaid`: its result says that the account has run dry. `failed`: its result says that the job failed
 * and cost nothing.
 */
export const STEPS = ["unknown", "void", "refused", "open", "unpaid", "failed"] as const;
export type Step = (typeof STEPS)[number];

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
  /** Credits that are charged already for an answer that is too long to take in. */
  readonly charged: number;
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

/** Under its digest. */
export type KeyedItem = readonly [key: string, item: Item];

/** Counters of one day, sync and run, which only grow: submissions, those that were not taken after all, credits. */
export type Spending = readonly [
  ...[day: Day, sync: string, by: string],
  ...[submitted: number, back: number, credits: number],
];

/** When an answer came, and its credits. */
export type Price = readonly [at: number, credits: number];

/** A stream and its generation that was begun without knowing an answer of any listed item. */
export type Blind = readonly [stream: string, generation: number];

/** News of purchases. Whatever is remembered is one, and two are only ever put together by joining them. */
export type Delta = Money & {
  /** How the keys of the items were made. */
  readonly digests: Digesting;
  readonly items?: readonly KeyedItem[];
  /** Items of which only the day of the answer is known. */
  readonly days?: readonly PackedDay[];
};

/** Counters, which every memory holds. */
export type Money = {
  readonly spent?: readonly Spending[];
  readonly prices?: readonly Price[];
  readonly blind?: readonly Blind[];
};

export const UNBOUGHT: Item = { day: "", handle: null, subs: {} };

/** A submission that is about to leave. */
export const newSub = (id: string, at: number, day: Day, sync: string): Sub => ({
  ...{ id, at, step: "unknown", day, sync, job: null, ended: null, notBefore: null, asked: null },
  ...{ charged: 0, misses: 0, code: null, sources: [] },
});

type Ranked = readonly (number | string)[];

function compare(a: Ranked, b: Ranked): number {
  for (const [nth, one] of a.entries()) {
    const other = b[nth] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The one that ranks higher. The text decides only between two writers of one submission. */
const higherBy =
  <Part>(rankOf: (part: Part) => Ranked) =>
  (a: Part | null, b: Part | null): Part | null => {
    if (a === null || b === null || a === b) return a ?? b;
    const order = compare(rankOf(a), rankOf(b)) || compare([JSON.stringify(a)], [JSON.stringify(b)]);
    return order < 0 ? b : a;
  };

/** Of moments and counters of one submission that is known in two ways the later and larger count. */
const higherSub = higherBy<Sub>(({ step, asked, ended, misses, charged }) => {
  const never = Number.NEGATIVE_INFINITY;
  return [STEPS.indexOf(step), asked ?? never, ended ?? never, misses, charged];
});

/** The better of two handles. */
export const higherHandle: (a: Handle | null, b: Handle | null) => Handle | null = higherBy<Handle>(
  ({ day, sure, at, id, job, sealed, cost }) => {
    const ways = [job, sealed].filter((way) => way !== null);
    return [day, Number(sure), at, id, ways.length, cost];
  },
);

/** Whether nothing of an item is known but the day of its answer, as of most. */
const isDayAlone = ({ handle, subs }: Item): boolean => handle === null && subs === UNBOUGHT.subs;

/**
 * Everything that either knows of an item: commutative, associative, idempotent. An answer covers all submissions up to
 * the end of the day on which its own was made, because nothing is bought twice on one day; of those that are covered
 * the job may still bring the answer to a stream that lacks it.
 */
export function joinItems(a: Item, b: Item): Item {
  const day = a.day > b.day ? a.day : b.day;
  if (a === b || (isDayAlone(a) && isDayAlone(b))) return day === a.day ? a : b;
  const handles = [a.handle, b.handle].map((one) => (one?.day === day ? one : null));
  let handle = handles.reduce(higherHandle);
  const subs: Record<string, Sub> = {};
  for (const sub of [...Object.values(a.subs), ...Object.values(b.subs)]) {
    const made = dayOf(sub.at);
    if (made > day) subs[sub.id] = higherSub(subs[sub.id] ?? null, sub) ?? sub;
    else if (made === day && sub.job !== null) {
      const { id, at, job } = sub;
      handle = higherHandle(handle, { id, at, day: made, job, sealed: null, sure: false, cost: 0 });
    }
  }
  return { day, handle, subs: Object.keys(subs).length === 0 ? UNBOUGHT.subs : subs };
}

/** Adds a price to the newest ones, oldest first. */
export function addPrice(prices: readonly Price[], price: Price): readonly Price[] {
  const after = prices.findLastIndex((one) => compare(one, price) <= 0);
  const before = prices[after];
  if (before !== undefined && compare(before, price) === 0) return prices;
  return prices.toSpliced(after + 1, 0, price).slice(-PRICES_KEPT);
}

/** Submissions of one item that are kept although the service did not take them. */
const MOST_NOT_TAKEN = 4;

/** Forgets all but the newest submissions that were not taken. If an older memory then says that one left, it is unknown. */
export function trimmed(item: Item): Item {
  if (item.subs === UNBOUGHT.subs) return item;
  const isIdle = ({ step }: Sub): boolean => step === "void" || step === "refused" || step === "unpaid";
  const idle = subsOf(item).filter(isIdle);
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

/** Whether a submission may be paid for, and nobody knows how much. */
export const isUncharged = (sub: Sub): boolean => isOut(sub) && sub.charged === 0;

/** Whether a submission may be paid for and has brought nothing so far. */
export const isOut = ({ step }: Sub): boolean => step === "open" || step === "unknown";
