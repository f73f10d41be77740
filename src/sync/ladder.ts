import type { Day } from "../base/time.ts";
import type { Status } from "./coverage.ts";
import type { RunRules } from "./outcome.ts";
import type { Pass } from "./pass.ts";

/** `ends`: pages from both ends of the list of everything, where its order puts the rows without a date. */
export type Attempt = "export" | "pages" | "ends" | "halve";

/** After a window that no export proved, the next ones begin with a single export. */
const RANGE: readonly Attempt[] = ["export", "export", "pages", "halve"];
const RANGE_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "halve"];
const DAY: readonly Attempt[] = ["export", "export", "export", "pages", "pages", "pages"];
const DAY_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "pages", "pages", "export", "export"];
const UNDATED: readonly Attempt[] = ["ends", "ends", "export", "export", "export"];

/** Several days with more rows than 20 pages have are not walked over. */
const MAX_WALKED_ROWS = 20_000;

/** The attempts at a window, in their order. */
export function attemptsAt(pass: Pass, rules: RunRules): Attempt[] {
  const { window, count } = pass;
  const { isExported, windowSize, yesterday } = rules;
  if (window.kind === "undated") return UNDATED.filter((attempt) => count.known || attempt === "export");
  if (window.kind === "open" && window.from < yesterday) return ["export", "halve"];
  const isRange = hasDays(pass);
  if (isRange && (pass.isWalked || count.rows > windowSize.most)) return ["halve"];
  const [first, afterFailure] = isRange ? [RANGE, RANGE_AFTER_FAILURE] : [DAY, DAY_AFTER_FAILURE];
  const can = { export: isExported, pages: isWalkable(pass, rules), halve: true };
  const attempts = windowSize.exportsFail ? afterFailure : first;
  return attempts.filter((attempt) => attempt !== "ends" && can[attempt]);
}

const hasDays = ({ window }: Pass): boolean => window.kind === "closed" && window.from < window.to;

export function isWalkable(pass: Pass, { isListed }: RunRules): boolean {
  const { known, rows } = pass.after ?? pass.count;
  return isListed && (!hasDays(pass) || (known && rows <= MAX_WALKED_ROWS));
}

/** Whether a window is complete without an attempt: nothing is counted, or as much as its whole has shown of it. */
export function isShown({ window, count, shown, wasShown }: Pass): boolean {
  if (!count.known) return false;
  if (window.kind === "undated") return count.undated === 0;
  return window.kind === "closed" && shown === count.rows && (shown > 0 || !wasShown);
}

/**
 * Judges the latest attempt. Rows only leave closed days, so that the count must be met exactly there. From yesterday on rows
 * arrive while they are read, so that the count is a lower bound.
 */
export function judge(pass: Pass, yesterday: Day): Status | "failed" {
  const { window, count, after, shown, isClean } = pass;
  if (window.kind === "open" || window.kind === "undated") {
    const hasAll = window.kind === "open" ? showsOpen(pass, window.from < yesterday) : showsUndated(pass);
    return hasAll ? "proven" : "failed";
  }
  if (!count.known) return isClean && shown >= pass.total ? "proven" : "failed";
  if (shown === count.rows) return "proven";
  if (after === undefined) return "failed";
  if (shown > count.rows) return shown === after.rows ? "proven" : "failed";
  return window.kind === "closed" && isClean && pass.distinct >= after.rows ? "again" : "failed";
}

/** @param hasClosedDays whether the window is one for everything: what stood before the count must be met exactly */
function showsOpen(pass: Pass, hasClosedDays: boolean): boolean {
  const { count, after = count, isClean, dated, undated, distinct } = pass;
  if (!hasClosedDays) return isClean && dated >= Math.min(count.rows, after.rows);
  const isExact = pass.beforeCount === count.rows && distinct - dated <= count.undated;
  return isClean && isExact && undated >= count.undated;
}

function showsUndated({ count, after, shown, isClean }: Pass): boolean {
  if (after === undefined) return isClean && count.known && shown === count.undated;
  const hasNone = after.known && after.undated === 0;
  return hasNone || (isClean && shown >= Math.max(count.undated, after.undated));
}
