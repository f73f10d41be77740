import { plural } from "../base/text.ts";
import type { Day } from "../base/time.ts";

/** The most that may be submitted and spent. Infinity: no cap. Only look-ups cost credits. */
export type Caps = {
  readonly submissions: { readonly sync: number; readonly day: number };
  readonly credits: { readonly sync: number; readonly day: number; readonly month: number };
};

/** What is charged to one period. `open`: jobs whose cost is not known yet. */
export type Charged = { readonly submitted: number; readonly credits: number; readonly open: number };

/** What is charged to this sync, the UTC day and the month. */
export type ChargedSoFar = { readonly sync: Charged; readonly day: Charged; readonly month: Charged };

/** What an open job counts with before any answer is known. */
const FIRST_ESTIMATE = 10;

/** How many answers tell what the next one may cost. */
export const PRICES_KEPT = 50;

/** What an open job counts with: the dearest of the last answers, in credits. */
export const estimateOf = (prices: readonly number[]): number =>
  prices.length === 0 ? FIRST_ESTIMATE : Math.max(1, ...prices);

/**
 * How many items may be submitted now. With nothing charged to a period its cap lets at least one go, because an open
 * job never counts with more than the cap; a cap of 0 lets none go.
 */
export function roomFor(caps: Caps, charged: ChargedSoFar, estimate: number): number {
  const rooms = [
    caps.submissions.sync - charged.sync.submitted,
    caps.submissions.day - charged.day.submitted,
    creditRoom(caps.credits.sync, charged.sync, estimate),
    creditRoom(caps.credits.day, charged.day, estimate),
    creditRoom(caps.credits.month, charged.month, estimate),
  ];
  return Math.max(0, Math.min(...rooms));
}

function creditRoom(cap: number, { credits, open }: Charged, estimate: number): number {
  if (cap <= 0) return 0;
  if (cap === Number.POSITIVE_INFINITY) return cap;
  const each = Math.min(estimate, cap);
  return Math.floor((cap - credits - open * each) / each);
}

/** A cap that was passed anyway: one answer can bring thousands of contacts. */
export function passedCaps({ credits }: Caps, charged: ChargedSoFar): readonly string[] {
  return (["sync", "day", "month"] as const).flatMap((period) =>
    charged[period].credits > credits[period]
      ? [`a ${period} may use ${plural(credits[period], "credit")}, and ${charged[period].credits} were used`]
      : [],
  );
}

/** The month of a day, such as 2026-03. */
export const monthOf = (day: Day): string => day.slice(0, 7);
