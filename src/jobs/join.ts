import { type Day, dayOf, later } from "../base/time.ts";

/**
 * How far a submission has come, the furthest last. `unknown`: it may have left, and no answer came. `open`: a job works on
 * it. `void`: nothing was bought, because it did not leave, was not taken, or the account had run dry. `refused`: the
 * service does not take the item. `failed`: its result says that it cost nothing. `covered`: another submission of its day
 * was answered, and its job may have the answer too. `answered`: its answer came.
 */
export const STEPS = ["unknown", "open", "void", "refused", "failed", "covered", "answered"] as const;
export type Step = (typeof STEPS)[number];

/** One submission of an item. Moments are epoch ms by the service's clock. */
export type Submission = {
  /** Made once, by the run that submits. */
  readonly id: string;
  /** When it was made. It is charged to the UTC day of this moment. */
  readonly at: number;
  /** The sync to which it is charged. */
  readonly sync: string;
  readonly step: Step;
  readonly job: string | null;
  /** The answer of a verification, for this item's eyes only: its job cannot be asked for it. */
  readonly sealed: string | null;
  /** When the service was last asked for the result, or a run learned that the answer to the submission is lost. */
  readonly asked: number | null;
  /** When to ask for the result: the service named it, or the last reply was useless. */
  readonly due: number | null;
  /** Credits that are charged already for its answer, of use or not. */
  readonly charged: number;
  /** The code of the service's last reply, if that was useless. */
  readonly code: string | null;
};

/** All that is known of one item. */
export type Item = {
  /** The UTC day on which the newest answered submission was made; "" if none was answered. */
  readonly day: Day | "";
  /** Oldest first: submissions that were made after that day, and those of that day by which the answer is retrieved again. */
  readonly subs: readonly Submission[];
  /** By stream of this connection that knows the item: the `day` of the newest answer that it has; "" if it has none. */
  readonly delivered: Readonly<Record<string, Day | "">>;
  /** Whether inputs of this run name the item. */
  readonly isNamed: boolean;
};

/** An item under its digest, or the part of it that a text or an event knows. */
export type KeyedItem = readonly [key: string, item: Partial<Item>];

export const UNBOUGHT: Item = { day: "", subs: [], delivered: {}, isNamed: false };

/** A submission that is about to leave. */
export const newSubmission = (id: string, at: number, sync: string): Submission => ({
  ...{
    id,
    at,
    sync,
    step: "unknown",
    job: null,
    sealed: null,
    asked: null,
    due: null,
    charged: 0,
    code: null,
  },
});

/** The rest of a submission whose item is answered. */
export const finished = (
  { id, at, sync, job }: Submission,
  fields: Pick<Submission, "step"> & Partial<Submission>,
): Submission => ({ ...newSubmission(id, at, sync), job, ...fields });

type Ranked = readonly (number | string)[];

export function compare(a: Ranked, b: Ranked): number {
  for (const [nth, one] of a.entries()) {
    const other = b[nth] ?? 0;
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The further of two texts of a submission. */
function further(a: Submission, b: Submission): Submission {
  const never = Number.NEGATIVE_INFINITY;
  const rankOf = ({ step, asked, due, charged }: Submission): Ranked => [
    ...[STEPS.indexOf(step), asked ?? never, due ?? never, charged],
  ];
  const order = compare(rankOf(a), rankOf(b)) || compare([JSON.stringify(a)], [JSON.stringify(b)]);
  return order < 0 ? b : a;
}

/**
 * Everything that either knows of an item: commutative, associative, idempotent. An answer covers all submissions up to
 * the end of the day on which its own was made, because no item is bought twice on one day.
 */
export function joinItems(a: Item, b: Item): Item {
  const all = [...a.subs, ...b.subs];
  const answers = all.filter(({ step }) => step === "answered").map(({ at }) => dayOf(at));
  const day = [a.day, b.day, ...answers].reduce<Day | "">(later, "");
  const subs = new Map<string, Submission>();
  for (const sub of all) {
    const made = dayOf(sub.at);
    const isRetrievable = made === day && (sub.job !== null || sub.sealed !== null);
    if (made <= day && !isRetrievable) continue;
    const known = isRetrievable && sub.step !== "answered" ? finished(sub, { step: "covered" }) : sub;
    subs.set(sub.id, further(subs.get(sub.id) ?? known, known));
  }
  const delivered = { ...a.delivered };
  for (const [stream, one] of Object.entries(b.delivered))
    delivered[stream] = later<Day | "">(delivered[stream] ?? "", one);
  return { day, subs: oldestFirst([...subs.values()]), delivered, isNamed: a.isNamed || b.isNamed };
}

const oldestFirst = (subs: Submission[]): Submission[] =>
  subs.sort((a, b) => compare([a.at, a.id], [b.at, b.id]));

/** Submissions of one item that are kept although nothing was bought by them. */
const MAX_IDLE = 4;

/** Forgets all but the newest submissions that bought nothing. An older copy of one that left makes it unknown again. */
export function trimmed(item: Item): Item {
  const idle = item.subs.filter(({ step }) => step === "void" || step === "refused");
  const forgotten = new Set(idle.slice(0, -MAX_IDLE));
  return forgotten.size === 0 ? item : { ...item, subs: item.subs.filter((sub) => !forgotten.has(sub)) };
}

/** Whether a submission waits for no answer any more, because its item has one. */
export const isFinished = ({ step }: Submission): boolean => step === "covered" || step === "answered";

/** The submission by which the newest answer is retrieved best; undefined: it is not. */
export const handleOf = ({ subs }: Item): Submission | undefined =>
  subs.findLast(({ step }) => step === "answered") ?? subs.findLast(isFinished);

export const withStep = (subs: readonly Submission[], step: Step): Submission[] =>
  subs.filter((sub) => sub.step === step);

/** Whether a submission may be paid for and has no answer so far. */
export const isOut = ({ step }: Submission): boolean => step === "open" || step === "unknown";
