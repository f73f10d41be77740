import { plural } from "../base/text.ts";
import type { Account, Charged } from "./charges.ts";

/** The highest number of submissions and credits. Infinity: no cap. Only look-ups cost credits. */
export type Caps = {
  readonly submissions: { readonly sync: number; readonly day: number };
  readonly credits: { readonly sync: number; readonly day: number; readonly month: number };
};

/**
 * The number of items that may be submitted now. Each open job reserves the highest known price. While no price is known, only
 * one job of all syncs may be open. If no job is open, one item may be submitted while any credit is left. So only the answer
 * to this item, or a rise of the price, can exceed a cap. After a rise, nothing is submitted while older jobs are open.
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

/** One sentence for each cap that was passed. */
export const passedCaps = ({ credits }: Caps, account: Account): readonly string[] =>
  (["sync", "day", "month"] as const).flatMap((period) =>
    account[period].credits > credits[period]
      ? [`a ${period} may use ${plural(credits[period], "credit")}, and ${account[period].credits} were used`]
      : [],
  );
