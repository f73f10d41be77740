import type { Day } from "../time.ts";
import { startOf } from "../time.ts";
import type { Job } from "./job.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;
const MONTH = 30 * DAY;
/** After so long a job that brings nothing is asked for once a month. */
const OLD = 90 * DAY;
/** An item that the service refused is submitted again after so long. */
const REFUSED_FOR = 30 * DAY;
/** How long to wait before an item whose job failed is submitted again: once each. */
const FAILED_FOR = [HOUR, DAY, WEEK] as const;
const UNKNOWN_TIMES = 3;
/** "Processing" is a usual answer for so long. */
const SLOW = 2 * DAY;

/** How often an item whose jobs fail is submitted again. */
export const FAILED_TIMES: number = FAILED_FOR.length;

/** Codes of results that say that the account has run dry: no fault of the item. */
export const OUT_OF_CREDITS: ReadonlySet<string> = new Set(["INSUFFICIENT_CREDITS", "QUOTA_EXCEEDED"]);

export type Wishes = {
  /** Null: an answer stays good for ever. */
  readonly refreshAfterDays: number | null;
  readonly retryUnknown: boolean;
};

/** Why an item is to be submitted: `refresh` comes after all else, `doubted` after what is new. */
export type Want = "new" | "doubted" | "refresh";

/**
 * Whether an item is to be submitted now, and why. Nothing else ever submits an item.
 * @param finished the day of its answer, for an item that is done
 */
export function wantOf(
  job: Job | undefined,
  finished: Day | undefined,
  { refreshAfterDays, retryUnknown }: Wishes,
  now: number,
): Want | undefined {
  if (job === undefined && finished === undefined) return "new";
  if (job === undefined) {
    // The answer came at some moment of its day.
    const since = now - startOf(finished as Day) - DAY;
    return refreshAfterDays !== null && since >= refreshAfterDays * DAY ? "refresh" : undefined;
  }
  switch (job.step) {
    case "open":
    case "answered":
      return undefined;
    case "unknown":
      return retryUnknown && job.unknowns < UNKNOWN_TIMES ? "new" : undefined;
    case "failed":
      return now >= retryAt(job) ? "new" : undefined;
    case "refused":
      return now - job.at >= REFUSED_FOR ? "new" : undefined;
    case "doubted":
      return "doubted";
  }
}

/** When an item whose job failed may be submitted again. */
export function retryAt({ ended, at, tries, code }: Job): number {
  if (OUT_OF_CREDITS.has(code ?? "")) return Number.NEGATIVE_INFINITY;
  return (ended ?? at) + (FAILED_FOR[tries - 1] ?? WEEK);
}

/** When a job is to be asked for, or its item submitted again, at the earliest. Not finite: at once, or never. */
export function nextAt(job: Job | undefined, finished: Day | undefined, wishes: Wishes): number {
  switch (job?.step) {
    case "open":
      return dueAt(job);
    case "failed":
      return retryAt(job);
    case "refused":
      return job.at + REFUSED_FOR;
    case undefined:
      if (finished === undefined || wishes.refreshAfterDays === null) return Number.POSITIVE_INFINITY;
      return startOf(finished) + (wishes.refreshAfterDays + 1) * DAY;
    default:
      return Number.POSITIVE_INFINITY;
  }
}

/** When the result of a job is to be asked for next; a moment in the past: now. */
export function dueAt({ at, asked, misses, notBefore }: Job): number {
  if (misses > 0 && asked !== null) return asked + pauseAfter(misses, asked - at);
  if (notBefore === null) return Number.NEGATIVE_INFINITY;
  // The service may name any moment, so a job is asked for at least once a day.
  return Math.min(notBefore, (asked ?? at) + DAY);
}

function pauseAfter(misses: number, age: number): number {
  if (misses === 1) return HOUR;
  if (misses === 2) return DAY;
  return age > OLD ? MONTH : WEEK;
}

/** Whether a job that is still in process is taken for one that brings nothing. */
export const isSlow = ({ at }: Job, now: number): boolean => now - at >= SLOW;

/** How the results of a kind of job are polled in one run, in ms. */
export type Polling = { readonly first: number; readonly longest: number; readonly total: number };

/** The polls of one job in this run. `next` null: no more in this run. */
export type Polls = { readonly next: number | null; readonly pause: number; readonly until: number };

/** The service says its time in whole seconds, so what is known of it moves by so much. */
const CLOCK_STEP = 2_000;

/** Polls after a job was submitted, or after its first poll in a run that did not submit it. */
export function firstPolls(notBefore: number | null, { first, total }: Polling, now: number): Polls {
  const named = notBefore !== null && notBefore > now ? notBefore : undefined;
  return { next: named ?? now + first, pause: first, until: (named ?? now) + total };
}

/** Polls after one that brought nothing: 5, 10, 20 seconds and so on. */
export function nextPolls(
  polls: Polls | undefined,
  notBefore: number | null,
  polling: Polling,
  now: number,
): Polls {
  if (polls === undefined || (notBefore !== null && notBefore > now))
    return firstPolls(notBefore, polling, now);
  const { pause, until } = polls;
  if (now >= until - CLOCK_STEP) return { next: null, pause, until };
  const longer = Math.min(polling.longest, pause * 2);
  return { next: Math.min(now + longer, until), pause: longer, until };
}
