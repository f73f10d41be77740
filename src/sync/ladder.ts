import type { Day } from "../base/time.ts";
import type { Status } from "./coverage.ts";
import type { Pass } from "./pass.ts";
import type { Window } from "./window.ts";

/** `ends` reads pages from both ends of the list of everything. Rows without a date are first or last in the list. */
export type Attempt = "export" | "pages" | "ends" | "halve";
export type Verdict = Status | "failed";
type Next = Status | readonly Attempt[];

/** The attempts at several closed days. */
const RANGE: readonly Attempt[] = ["export", "export", "pages", "halve"];
/** The attempts at a window that cannot be halved: a single day, the days from yesterday on, or a stream without days. */
const WHOLE: readonly Attempt[] = ["export", "export", "export", "pages", "pages", "pages"];
const WHOLE_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "pages", "pages", "export", "export"];
const UNDATED: readonly Attempt[] = ["ends", "ends", "export", "export", "export"];

/** A range of several days that needs more pages is halved, because reading many pages is slow. */
const MAX_WALKED_PAGES = 20;

/** The attempts at a window in their order. If no export proved the last window, the pages follow after one export. */
export function attemptsAt(pass: Pass): readonly Attempt[] {
  const { window, count, rules } = pass;
  const isExported = rules.isExported && !rules.windowSize.exportsLackForm;
  if (window.kind === "undated")
    return UNDATED.filter((attempt) => (attempt === "export" ? isExported : count.known));
  if (window.kind === "open" && window.from < rules.yesterday) return ["export", "halve"];
  const isRange = hasSeveralDays(window);
  if (isRange && (pass.isWalked || count.rows > rules.windowSize.maxRows)) return ["halve"];
  const [first, afterFailure] = isRange ? [RANGE, RANGE.slice(1)] : [WHOLE, WHOLE_AFTER_FAILURE];
  const can = { export: isExported, pages: isWalkable(pass), halve: true };
  const attempts = rules.windowSize.exportsFail ? afterFailure : first;
  return attempts.filter((attempt) => attempt !== "ends" && can[attempt]);
}

const hasSeveralDays = (window: Window): boolean => window.kind === "closed" && window.from < window.to;

/** Whether the pages of a window may be read. Only a window that can be halved has a maximum number of pages. */
function isWalkable({ window, count, after = count, rules }: Pass): boolean {
  const { known, rows } = after;
  const isShort = known && rows <= MAX_WALKED_PAGES * rules.service.pageSize;
  return rules.isListed && (isShort || !hasSeveralDays(window));
}

/** Returns the status of the window after an attempt, or the next attempts. @param left the attempts after this attempt */
export function whatFollows(attempt: Attempt, verdict: Verdict, left: readonly Attempt[], pass: Pass): Next {
  const { exportsLackForm } = pass.rules.windowSize;
  if (verdict === "failed") return left.filter((one) => one !== "export" || !exportsLackForm);
  if (verdict !== "again" || pass.why !== "retry") return verdict;
  // In two runs, an attempt showed fewer rows than the first count, but all rows of the second count. Either rows disappeared in
  // both runs, or the export and the second count lack rows. The pages decide, because the service reads pages in another way.
  if (attempt === "export" && isWalkable(pass)) return ["pages", ...left];
  return attempt === "export" || pass.latest.fresh === 0 ? "proven" : "again";
}

/** Whether a window is complete without an attempt: the service counts no rows, or only rows that the larger window has shown. */
export function isShown({ window, count, shown, wasShown }: Pass): boolean {
  if (!count.known) return false;
  if (window.kind === "undated") return count.undated === 0;
  return window.kind === "closed" && shown === count.rows && (shown > 0 || !wasShown);
}

/**
 * Judges the latest attempt. If counts are not verified, an attempt proves its window by reaching its end.
 * In closed days rows only disappear, so an attempt must show exactly the count. From yesterday on rows arrive, so an attempt
 * must show at least the count.
 */
export function judge(attempt: Attempt, pass: Pass): Verdict {
  const { window, count, after, shown, isClean, rules } = pass;
  if (!rules.verifyCounts && attempt !== "ends") return isClean ? "proven" : "failed";
  if (window.kind === "open") return showsOpen(pass, window.from) ? "proven" : "failed";
  if (window.kind === "undated") return showsUndated(pass) ? "proven" : "failed";
  if (!count.known) return isClean && shown >= pass.total ? "proven" : "failed";
  if (shown === count.rows) return "proven";
  if (after === undefined) return "failed";
  if (shown > count.rows) return shown === after.rows ? "proven" : "failed";
  return window.kind === "closed" && isClean && pass.latest.distinct >= after.rows ? "again" : "failed";
}

/** Whether an open window is proven. If it has days before yesterday, only newer rows may be added to the counted rows. */
function showsOpen(pass: Pass, from: Day): boolean {
  const { count, after = count, isClean, latest } = pass;
  if (from >= pass.rules.yesterday) return isClean && latest.dated >= Math.min(count.rows, after.rows);
  const isExact = latest.beforeCount === count.rows && latest.distinct - latest.dated <= count.undated;
  return isClean && isExact && latest.undated >= count.undated;
}

function showsUndated({ count, after, shown, isClean }: Pass): boolean {
  if (after === undefined) return isClean && count.known && shown === count.undated;
  const hasNone = after.known && after.undated === 0;
  return hasNone || (isClean && shown >= Math.max(count.undated, after.undated));
}
