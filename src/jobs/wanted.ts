import { DAY_MS, HOUR_MS, startOf } from "../base/time.ts";
import { type Item, type Step, type Sub, subsOf } from "./lattice.ts";

/** An item that the service refused is submitted again after so long. */
const REFUSED_FOR = 30 * DAY_MS;
/** How long to wait before an item whose job failed is submitted again: once each. */
const FAILED_FOR = [HOUR_MS, DAY_MS, 7 * DAY_MS] as const;
const UNKNOWN_TIMES = 3;

/** How often an item whose jobs fail is submitted again. */
export const FAILED_TIMES: number = FAILED_FOR.length;

/** Codes of results that say that the account has run dry: no fault of the item. */
export const OUT_OF_CREDITS: ReadonlySet<string> = new Set(["INSUFFICIENT_CREDITS", "QUOTA_EXCEEDED"]);

/** When an item is submitted again. */
export type ResubmitRules = {
  /** Null: an answer stays good for ever. */
  readonly refreshAfterDays: number | null;
  readonly retryUnknown: boolean;
};

/** Why an item is to be submitted: `refresh` comes after all else, `doubted` after what is new. */
export type SubmitReason = "new" | "doubted" | "refresh";

const withStep = ({ subs }: Item, step: Step): Sub[] =>
  Object.values(subs).filter((sub) => sub.step === step);

/** How often an item's jobs failed since it was last answered. */
export const failedTimes = (item: Item): number => withStep(item, "failed").length;

/** Whether the service liked the form of an item's last request so little that others go first. */
export function isDoubted(item: Item): boolean {
  const last = subsOf(item).at(-1);
  return last?.step === "void" && last.code !== null;
}

/** The first moment (epoch ms) at which an item may be submitted, by all that is known; Infinity: never. */
export function retryAt(item: Item, { refreshAfterDays, retryUnknown }: ResubmitRules): number {
  const never = Number.POSITIVE_INFINITY;
  const refreshIn = refreshAfterDays === null ? never : refreshAfterDays * DAY_MS;
  const isAnswered = item.day !== "";
  const failed = withStep(item, "failed");
  const unknown = withStep(item, "unknown").length;
  const isOut = withStep(item, "open").length > 0 || unknown > (retryUnknown ? UNKNOWN_TIMES : 0);
  return Math.max(
    isOut ? never : -never,
    // The answer came at some moment of its day.
    item.day === "" ? -never : startOf(item.day) + DAY_MS + refreshIn,
    ...failed.map(({ ended, at }) => (ended ?? at) + (FAILED_FOR[failed.length - 1] ?? never)),
    ...withStep(item, "refused").map(({ at }) => at + (isAnswered ? refreshIn : REFUSED_FOR)),
  );
}

/**
 * Whether an item is to be submitted now, and why. Nothing else ever submits an item. All that is known can only forbid,
 * so that knowing more never buys more.
 */
export function reasonToSubmit(item: Item, rules: ResubmitRules, now: number): SubmitReason | undefined {
  if (now < retryAt(item, rules)) return undefined;
  if (item.day !== "") return "refresh";
  return isDoubted(item) ? "doubted" : "new";
}
