import type { Day } from "../base/time.ts";
import type { Status } from "./coverage.ts";
import type { Pass } from "./pass.ts";
import type { Window } from "./window.ts";

/** `ends`: pages from both ends of the list of everything, where its order puts the rows without a date. */
export type Attempt = "export" | "pages" | "ends" | "halve";
export type Verdict = Status | "failed";
type Next = Status | readonly Attempt[];

/** A range of several closed days. */
const RANGE: readonly Attempt[] = ["export", "export", "pages", "halve"];
/** A window that has no halves: a single day, the days from yesterday on, or everything of a stream without days. */
const WHOLE: readonly Attempt[] = ["export", "export", "export", "pages", "pages", "pages"];
const WHOLE_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "pages", "pages", "export", "export"];
const UNDATED: readonly Attempt[] = ["ends", "ends", "export", "export", "export"];

/** A range of several days with more rows than these pages have is halved, not walked over. */
const MAX_WALKED_PAGES = 20;

/** The attempts at a window, in their order. It begins with one export if no export proved the window before. */
export function attemptsAt(pass: Pass): readonly Attempt[] {
  const { window, count, rules } = pass;
  const isExported = rules.isExported && !rules.windowSize.exportsLackForm;
  if (window.kind === "undated")
    return UNDATED.filter((attempt) => (attempt === "export" ? isExported : count.known));
  if (window.kind === "open" && window.from < rules.yesterday) return ["export", "halve"];
  const isRange = hasSeveralDays(window);
  if (isRange && (pass.isWalked || count.rows > rules.windowSize.most)) return ["halve"];
  const [first, afterFailure] = isRange ? [RANGE, RANGE.slice(1)] : [WHOLE, WHOLE_AFTER_FAILURE];
  const can = { export: isExported, pages: isWalkable(pass), halve: true };
  const attempts = rules.windowSize.exportsFail ? afterFailure : first;
  return attempts.filter((attempt) => attempt !== "ends" && can[attempt]);
}

const hasSeveralDays = (window: Window): boolean => window.kind === "closed" && window.from < window.to;

/** Whether a window's pages may be read. A single day, or an open window, has no halves: its pages have no limit. */
function isWalkable({ window, count, after = count, rules }: Pass): boolean {
  const { known, rows } = after;
  const isShort = known && rows <= MAX_WALKED_PAGES * rules.service.pageSize;
  return rules.isListed && (isShort || !hasSeveralDays(window));
}

/** How the window ends after an attempt, or the attempts that are still to be made. @param left those after this one */
export function whatFollows(attempt: Attempt, verdict: Verdict, left: readonly Attempt[], pass: Pass): Next {
  const { exportsLackForm } = pass.rules.windowSize;
  if (verdict === "failed") return left.filter((one) => one !== "export" || !exportsLackForm);
  if (verdict !== "again" || pass.why !== "retry") return verdict;
  // Two runs showed fewer rows than they counted, and counted no more rows afterwards. Either rows left during both, or the
  // export lacks rows that the count lacks too. The pages tell which, because they read the rows another way.
  if (attempt === "export" && isWalkable(pass)) return ["pages", ...left];
  return attempt === "export" || pass.latest.fresh === 0 ? "proven" : "again";
}

/** Whether a window is complete without an attempt: nothing is counted, or what the window that was halved has shown of it. */
export function isShown({ window, count, shown, wasShown }: Pass): boolean {
  if (!count.known) return false;
  if (window.kind === "undated") return count.undated === 0;
  return window.kind === "closed" && shown === count.rows && (shown > 0 || !wasShown);
}

/**
 * Judges the latest attempt. Unless counts are verified, an export or a walk that came to its end is enough. Rows only leave
 * closed days, so that the count must be met exactly there. From yesterday on rows arrive while they are read, so that the
 * count is a lower bound.
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

/** A window with days before yesterday must show exactly the rows that were counted, and newer ones; others may show more. */
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
