import { DAY_MS, HOUR_MS } from "../base/time.ts";
import { type Item, openOf, type Sub } from "./lattice.ts";
import { type ResubmitRules, retryAt } from "./wanted.ts";

/** After so long (ms) a job that brings nothing is asked for once a month. */
const OLD = 90 * DAY_MS;

/** When a job of an item is to be asked for, or the item submitted again, at the earliest. Not finite: at once, or never. */
export function nextAt(item: Item, rules: ResubmitRules): number {
  const open = openOf(item);
  return open.length > 0 ? Math.min(...open.map(dueAt)) : retryAt(item, rules);
}

/** When the result of a job is to be asked for next; a moment in the past: now. */
export function dueAt({ at, asked, misses, notBefore }: Sub): number {
  const age = (asked ?? at) - at;
  const pauses = [0, HOUR_MS, DAY_MS, age > OLD ? 30 * DAY_MS : 7 * DAY_MS];
  if (misses > 0 && asked !== null) return asked + (pauses[Math.min(misses, 3)] ?? 0);
  if (notBefore === null) return Number.NEGATIVE_INFINITY;
  // The service may name any moment, so a job is asked for at least once a day.
  return Math.min(notBefore, (asked ?? at) + DAY_MS);
}

/** How the results of a kind of job are polled in one run, in ms. */
export type Polling = { readonly first: number; readonly longest: number; readonly total: number };

/** The polls of one job in this run. `next` null: no more in this run. */
export type Polls = { readonly next: number | null; readonly pause: number; readonly until: number };

/** The service says its time in whole seconds, so what is known of it moves by so much. */
const CLOCK_STEP = 2_000;

/** Of a first answer that was slow the next jobs' first polls wait no longer (ms). */
const LATEST_FIRST = 60_000;

/** How much longer each pause is than the one before: times that grow faster would find an answer long after it came. */
const GROWTH = 1.5;

/**
 * Polls after one that brought nothing: pauses of 5, 7.5, 11.25 seconds and so on. They begin after a job was submitted,
 * after its first poll in a run that did not submit it, and at a moment that the service names, unless the pause ends later.
 * @param quickest no job of this run was answered sooner (ms)
 */
export function nextPolls(
  polls: Polls | undefined,
  notBefore: number | null,
  { first, longest, total }: Polling,
  now: number,
  quickest = 0,
): Polls {
  const longer = Math.min(longest, (polls?.pause ?? 0) * GROWTH);
  const named = notBefore !== null && notBefore > now + longer ? notBefore : undefined;
  if (polls === undefined || named !== undefined) {
    const next = named ?? now + Math.max(first, Math.min(quickest, LATEST_FIRST));
    return { next, pause: first, until: (named ?? now) + total };
  }
  const { pause, until } = polls;
  if (now >= until - CLOCK_STEP) return { next: null, pause, until };
  return { next: Math.min(now + longer, until), pause: longer, until };
}
