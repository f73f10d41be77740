import { type Day, dayOf, later } from "../base/time.ts";

/**
 * The steps of a submission, in order. `unknown`: perhaps sent, without an answer. `open`: the service works on a job. `void`:
 * nothing was bought, because the request was not sent or not taken, or the account had no credits. `refused`: the service
 * does not take the item. `failed`: the job failed and cost nothing. `covered`: another submission of the day was answered, and
 * the job of this submission may give the answer again. `answered`: the answer arrived.
 */
export const STEPS = ["unknown", "open", "void", "refused", "failed", "covered", "answered"] as const;
export type Step = (typeof STEPS)[number];

/** One submission of an item. Moments are epoch ms by the service's clock. */
export type Submission = {
  /** The id of the run that submits, and a number. */
  readonly id: string;
  /** When the submission was made. Its credits count on the UTC day of this moment. */
  readonly at: number;
  /** The sync on which its credits count. */
  readonly sync: string;
  readonly step: Step;
  readonly job: string | null;
  /** The encrypted answer of a verification, because the service does not send the answer again. */
  readonly sealed: string | null;
  /** The last poll, or the moment when a run lost the answer to the submission. */
  readonly asked: number | null;
  /** The earliest next poll: named by the service, or later after a useless reply. Null: at once. */
  readonly due: number | null;
  /** The credits that were charged for all replies, also for unusable replies. */
  readonly charged: number;
  /** The code of the service's last reply, if the reply was useless. */
  readonly code: string | null;
};

/** All knowledge about one item. */
export type Item = {
  /** The UTC day on which the newest answered submission was made; "" if none was answered. */
  readonly day: Day | "";
  /** The submissions after `day`, and submissions of `day` that can give the answer again. Oldest first. */
  readonly subs: readonly Submission[];
  /** For each stream of this connection that knows the item: the `day` of the newest delivered answer; "" if none. */
  readonly delivered: Readonly<Record<string, Day | "">>;
  /** Whether inputs of this run name the item. */
  readonly isNamed: boolean;
};

/** The digest of an item, and the whole item or a part of it. */
export type KeyedItem = readonly [key: string, item: Partial<Item>];

export const UNBOUGHT: Item = { day: "", subs: [], delivered: {}, isNamed: false };

/** A submission that was not sent yet. */
export const newSubmission = (id: string, at: number, sync: string): Submission => ({
  ...{ id, at, sync, step: "unknown", job: null, sealed: null },
  ...{ asked: null, due: null, charged: 0, code: null },
});

/** The fields of a submission that the program keeps after the item is answered. */
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

/** Chooses the newer of two copies of a submission. */
function further(a: Submission, b: Submission): Submission {
  const never = Number.NEGATIVE_INFINITY;
  const rankOf = (sub: Submission): Ranked => {
    const { step, asked, due, charged } = sub;
    return [STEPS.indexOf(step), asked ?? never, due ?? never, charged, JSON.stringify(sub)];
  };
  return compare(rankOf(a), rankOf(b)) < 0 ? b : a;
}

/**
 * Joins two copies of an item. The join is commutative, associative and idempotent. An answer settles all submissions up to
 * the end of its `day`, because no item is bought twice on one day.
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
  const oldestFirst = [...subs.values()].sort((one, other) =>
    compare([one.at, one.id], [other.at, other.id]),
  );
  return { day, subs: oldestFirst, delivered, isNamed: a.isNamed || b.isNamed };
}

/** The program keeps this many submissions of an item that bought nothing. */
const MAX_IDLE = 4;

/** Removes old submissions that bought nothing. A later join with an older copy makes a removed submission unknown again. */
export function trimmed(item: Item): Item {
  const idle = item.subs.filter(({ step }) => step === "void" || step === "refused");
  const forgotten = new Set(idle.slice(0, -MAX_IDLE));
  return forgotten.size === 0 ? item : { ...item, subs: item.subs.filter((sub) => !forgotten.has(sub)) };
}

/** Whether the item of a submission is answered, so that the program waits for no reply to the submission. */
export const isFinished = ({ step }: Submission): boolean => step === "covered" || step === "answered";

/** The submission that can best give the newest answer again; undefined: no submission can. */
export const handleOf = ({ subs }: Item): Submission | undefined =>
  subs.findLast(({ step }) => step === "answered") ?? subs.findLast(isFinished);

export const withStep = (subs: readonly Submission[], step: Step): Submission[] =>
  subs.filter((sub) => sub.step === step);

/** Whether a submission may cost credits and has no answer. */
export const isOut = ({ step }: Submission): boolean => step === "open" || step === "unknown";
