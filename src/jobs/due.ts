import { DAY_MS, dayOf, HOUR_MS, startOf } from "../base/time.ts";
import { type Item, type Submission, withStep } from "./join.ts";

/** Up to this age (ms) a job may still get a result. Syncs wait for its price, and an unusable result fails the stream. */
export const FRESH_MS = 7 * DAY_MS;
/** Time (ms) after which a refused item is submitted again. */
const REFUSED_FOR = 30 * DAY_MS;
/** Waiting times (ms) after the first, second and third failure of an item. */
const FAILED_FOR = [HOUR_MS, DAY_MS, 7 * DAY_MS] as const;
/** `retry_unknown` submits an item again at most this many times. */
const UNKNOWN_TIMES = 3;
/** Pairs of ms: the age of a job, and the pause after a useless reply while the job is younger. */
const PAUSES = [
  [DAY_MS, HOUR_MS],
  [7 * DAY_MS, DAY_MS],
] as const;

/** The settings that decide when an item is submitted again. */
export type ResubmitRules = {
  /** An item is bought again this many days after its answer. Null: never. */
  readonly refreshAfterDays: number | null;
  readonly retryUnknown: boolean;
};

/** Why an item is bought, in the order of submission. `doubted`: the service refused the form of the item's last request. */
export type BuyReason = "new" | "doubted" | "refresh";

/** Whether the next failed job of an item counts as its answer, because the item failed too often. */
export const isLastFailure = ({ subs }: Item): boolean =>
  withStep(subs, "failed").length >= FAILED_FOR.length;

/** The first moment (epoch ms) at which an item may be submitted; Infinity: never. */
function retryAt(item: Item, { refreshAfterDays, retryUnknown }: ResubmitRules): number {
  const never = Number.POSITIVE_INFINITY;
  const refreshIn = refreshAfterDays === null ? never : refreshAfterDays * DAY_MS;
  const isAnswered = item.day !== "";
  const failed = withStep(item.subs, "failed");
  const unknown = withStep(item.subs, "unknown").length;
  const isOpen = withStep(item.subs, "open").length > 0 || unknown > (retryUnknown ? UNKNOWN_TIMES : 0);
  return Math.max(
    isOpen ? never : -never,
    // Counts from the end of the day, because the time of the answer is not known.
    item.day === "" ? -never : startOf(item.day) + DAY_MS + refreshIn,
    ...failed.map(({ asked, at }) => (asked ?? at) + (FAILED_FOR[failed.length - 1] ?? never)),
    ...withStep(item.subs, "refused").map(({ at }) => at + (isAnswered ? refreshIn : REFUSED_FOR)),
  );
}

/** Why an item is due for a purchase, without a look at the caps; undefined: the item is not due. */
export function reasonToBuy(item: Item, rules: ResubmitRules, now: number): BuyReason | undefined {
  if (now < retryAt(item, rules)) return undefined;
  if (item.day !== "") return "refresh";
  // After the service refused the form of an item's request, other items are submitted first.
  const last = item.subs.at(-1);
  return last?.step === "void" && last.code !== null ? "doubted" : "new";
}

/** The next poll of an item's jobs, or its next submission (epoch ms). -Infinity: at once; Infinity: never. */
export function nextAt(item: Item, rules: ResubmitRules): number {
  const open = withStep(item.subs, "open");
  return open.length > 0 ? Math.min(...open.map(dueAt)) : retryAt(item, rules);
}

/** The next poll of a job (epoch ms). A moment in the past means now. */
export function dueAt({ at, asked, code, due }: Submission): number {
  if (due === null) return Number.NEGATIVE_INFINITY;
  // The service may name any moment, so a job is polled at least once a day.
  return code === null ? Math.min(due, (asked ?? at) + DAY_MS) : due;
}

/** The next poll (epoch ms) after a useless reply. @param at when the job was submitted (epoch ms) */
export const laterAt = (at: number, now: number): number =>
  now + (PAUSES.find(([age]) => now - at < age)?.[1] ?? 7 * DAY_MS);

/** The first pause, the longest pause and the total time of a job's polls in one run, in ms. */
export type Polling = { readonly first: number; readonly longest: number; readonly total: number };

/** The program's estimate of the service's time varies by this (ms), because the service names whole seconds. */
const CLOCK_STEP = 2_000;

/**
 * Plans the next poll after a submission or a poll without a result. If the service names a later moment, the pauses begin
 * again at this moment. Moments are epoch ms. A `due` of Infinity: no poll in this run. @param since when the polls began
 */
export function nextPoll(
  since: number,
  due: number | null,
  { first, longest, total }: Polling,
  now: number,
): { readonly since: number; readonly due: number } {
  // Each pause is 1.5 times the last pause.
  const pause = Math.min(longest, first + (now - since) / 2);
  if (due !== null && due > now + pause) return { since: due, due };
  const until = since + total;
  return { since, due: now >= until - CLOCK_STEP ? Number.POSITIVE_INFINITY : Math.min(now + pause, until) };
}

/** Whether a job is open and every reply about it was usable. */
export const isInFlight = ({ step, code }: Submission): boolean => step === "open" && code === null;

/**
 * The number of items that may be submitted after lost answers. After 3 lost answers in a row it is 1. After 4 it is 0 for the
 * rest of the day. A submission that a killed run noted does not count as a lost answer.
 */
export function probesLeft(all: readonly Submission[], lastAnswer: number, today: string): number {
  const replied = all.filter(({ step, asked }) => (step === "unknown" ? asked !== null : step !== "void"));
  replied.sort((a, b) => b.at - a.at);
  const answered = replied.findIndex(({ step, at }) => step !== "unknown" || at <= lastAnswer);
  const lost = answered < 0 ? replied.length : answered;
  if (lost < 3) return Number.POSITIVE_INFINITY;
  return lost > 3 && dayOf(replied[0]?.at ?? 0) === today ? 0 : 1;
}
