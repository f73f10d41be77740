import { DAY_MS, dayOf, HOUR_MS, startOf } from "../base/time.ts";
import { type Item, type Submission, withStep } from "./join.ts";

/** For this long (ms) a job may yet have a result: its price is waited for, and a result without use fails the stream. */
export const FRESH_MS = 7 * DAY_MS;
/** An item that the service refused is submitted again after this time (ms). */
const REFUSED_FOR = 30 * DAY_MS;
/** How long (ms) to wait before an item whose job failed is submitted again: once each. */
const FAILED_FOR = [HOUR_MS, DAY_MS, 7 * DAY_MS] as const;
/** How often `retry_unknown` submits an item again. */
const UNKNOWN_TIMES = 3;
/** The pause (ms) after a useless reply, for jobs that are younger than an age (ms). */
const PAUSES = [
  [DAY_MS, HOUR_MS],
  [7 * DAY_MS, DAY_MS],
] as const;

/** When an item is submitted again. */
export type ResubmitRules = {
  /** Null: an answer stays good for ever. */
  readonly refreshAfterDays: number | null;
  readonly retryUnknown: boolean;
};

/** Why an item is bought: `refresh` comes after all else, `doubted` after what is new. */
export type BuyReason = "new" | "doubted" | "refresh";

/** Whether a failed job is an answer, because the item has failed too often. */
export const isLastFailure = ({ subs }: Item): boolean =>
  withStep(subs, "failed").length >= FAILED_FOR.length;

/** Whether the service refused the form of an item's last request. Other items go first. */
function isDoubted(item: Item): boolean {
  const last = item.subs.at(-1);
  return last?.step === "void" && last.code !== null;
}

/** The first moment (epoch ms) at which an item may be submitted, by all that is known; Infinity: never. */
function retryAt(item: Item, { refreshAfterDays, retryUnknown }: ResubmitRules): number {
  const never = Number.POSITIVE_INFINITY;
  const refreshIn = refreshAfterDays === null ? never : refreshAfterDays * DAY_MS;
  const isAnswered = item.day !== "";
  const failed = withStep(item.subs, "failed");
  const unknown = withStep(item.subs, "unknown").length;
  const isOpen = withStep(item.subs, "open").length > 0 || unknown > (retryUnknown ? UNKNOWN_TIMES : 0);
  return Math.max(
    isOpen ? never : -never,
    // The answer came at some moment of its day.
    item.day === "" ? -never : startOf(item.day) + DAY_MS + refreshIn,
    ...failed.map(({ asked, at }) => (asked ?? at) + (FAILED_FOR[failed.length - 1] ?? never)),
    ...withStep(item.subs, "refused").map(({ at }) => at + (isAnswered ? refreshIn : REFUSED_FOR)),
  );
}

/** Why an item is to be bought now, whatever that costs; undefined: it is not. Knowing more of it can only forbid. */
export function reasonToBuy(item: Item, rules: ResubmitRules, now: number): BuyReason | undefined {
  if (now < retryAt(item, rules)) return undefined;
  if (item.day !== "") return "refresh";
  return isDoubted(item) ? "doubted" : "new";
}

/** When a job is asked for, or the item may be submitted again. Not finite: at once, or never. */
export function nextAt(item: Item, rules: ResubmitRules): number {
  const open = withStep(item.subs, "open");
  return open.length > 0 ? Math.min(...open.map(dueAt)) : retryAt(item, rules);
}

/** When the result of a job is asked for next; a moment in the past: now. */
export function dueAt({ at, asked, code, due }: Submission): number {
  if (due === null) return Number.NEGATIVE_INFINITY;
  // The service may name any moment, so a job is asked for at least once a day.
  return code === null ? Math.min(due, (asked ?? at) + DAY_MS) : due;
}

/** When a job is asked for again after a useless reply. */
export const laterAt = (at: number, now: number): number =>
  now + (PAUSES.find(([age]) => now - at < age)?.[1] ?? 7 * DAY_MS);

/** How the results of a kind of job are polled in one run, in ms. */
export type Polling = { readonly first: number; readonly longest: number; readonly total: number };

/** The polls of one job in this run. Pauses grow from `since` on. `next` null: no more in this run. */
export type Polls = { readonly since: number; readonly next: number | null };

/** The service says its time in whole seconds, so the moments that are known of it vary by this (ms). */
const CLOCK_STEP = 2_000;

/** The polls after one without a result. They begin after a submission, and at a moment that the service names. */
export function nextPolls(
  polls: Polls | undefined,
  due: number | null,
  { first, longest, total }: Polling,
  now: number,
): Polls {
  const { since } = polls ?? { since: now };
  // Each pause is half as long again as the one before.
  const pause = Math.min(longest, first + (now - since) / 2);
  if (due !== null && due > now + pause) return { since: due, next: due };
  const until = since + total;
  return { since, next: now >= until - CLOCK_STEP ? null : Math.min(now + pause, until) };
}

/** Submissions that were open before a moment and are still waited for. */
export const isInFlight = ({ step, code }: Submission): boolean => step === "open" && code === null;

/**
 * How many items may go by the newest submissions: one at a time after three answers in a row were lost, and none on a
 * day after its fourth lost answer. An intent that a kill left does not count as a lost answer.
 */
export function probesLeft(all: readonly Submission[], lastAnswer: number, today: string): number {
  const replied = all.filter(({ step, asked }) => (step === "unknown" ? asked !== null : step !== "void"));
  replied.sort((a, b) => b.at - a.at);
  const answered = replied.findIndex(({ step, at }) => step !== "unknown" || at <= lastAnswer);
  const lost = answered < 0 ? replied.length : answered;
  if (lost < 3) return Number.POSITIVE_INFINITY;
  return lost > 3 && dayOf(replied[0]?.at ?? 0) === today ? 0 : 1;
}
