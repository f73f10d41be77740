import { plural } from "../base/text.ts";
import type { Account, Charged } from "./charges.ts";

/** The most that may be submitted and spent. Infinity: no cap. Only look-ups cost credits. */
export type Caps = {
  readonly submissions: { readonly sync: number; readonly day: number };
  readonly credits: { readonly sync: number; readonly day: number; readonly month: number };
};

/**
 * How many items may be submitted now. Each open job reserves the highest price known. While no price is known, one is open
 * at a time, of all syncs. One item may go alone while anything of a cap is left: only its answer, or a higher price than
 * all before, can pass the cap. After a higher price nothing goes until the jobs that were open then are answered.
 */
export function roomFor({ submissions, credits }: Caps, account: Account): number {
  const { sync, day, month, isRising, probes } = account;
  const rooms = [
    submissions.sync - sync.submitted,
    submissions.day - day.submitted,
    creditRoom(credits.sync, sync, account),
    creditRoom(credits.day, day, account),
    creditRoom(credits.month, month, account),
  ];
  return isRising ? 0 : Math.max(0, Math.min(probes, ...rooms));
}

function creditRoom(cap: number, { credits, open }: Charged, { price, isAwaited }: Account): number {
  const left = cap - credits;
  if (left <= 0 || left === Number.POSITIVE_INFINITY) return left;
  if (price === 0) return open > 0 || isAwaited ? 0 : 1;
  return Math.max(open === 0 ? 1 : 0, Math.floor(left / price) - open);
}

/** The caps that were passed, in words. */
export const passedCaps = ({ credits }: Caps, account: Account): readonly string[] =>
  (["sync", "day", "month"] as const).flatMap((period) =>
    account[period].credits > credits[period]
      ? [`a ${period} may use ${plural(credits[period], "credit")}, and ${account[period].credits} were used`]
      : [],
  );
