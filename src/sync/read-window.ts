import { BodyError, FormError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { batchesOf, isCountedToTheEnd } from "./batches.ts";
import type { LineBatch } from "./event.ts";
import { OWNER } from "./incomplete.ts";
import { type Attempt, attemptsAt, isShown, judge, type Verdict, whatFollows } from "./ladder.ts";
import { type Outcome, Pass } from "./pass.ts";
import type { Planned } from "./plan.ts";
import type { RunRules } from "./prepare.ts";
import { MAX_SEEN_ROWS } from "./seen-rows.ts";
import { type Count, warn } from "./service.ts";
import { describe, partsOf, type Window } from "./window.ts";

/** The maximum age of a count. Before an older count is used, the service counts again. */
const COUNT_LIFETIME_MS = 60_000;

/** The lines and outcomes of a window, in order. */
type Parts = AsyncGenerator<LineBatch | Outcome>;

/**
 * Makes attempts at one window until its status is clear, and emits no row twice. Yields the outcome of each part, oldest first.
 * @param whole the pass over the larger window, if this window is a part of one
 * @throws BodyError for a window from yesterday on that no attempt proved
 */
export async function* readWindow(planned: Planned, rules: RunRules, whole?: Pass): Parts {
  const { window } = planned;
  const pass = new Pass(planned, await freshCount(window, planned.count, rules), rules, whole);
  if (window.kind === "undated" && !(await isCountedToTheEnd(pass))) return yield pass.outcome("missing");
  if (isShown(pass)) return yield pass.outcome("proven");
  let [attempt, ...left] = attemptsAt(pass);
  while (attempt !== undefined) {
    if (attempt === "halve") return yield* readParts(pass);
    yield* make(attempt, pass);
    const lacksForm = pass.cause instanceof FormError;
    const isNew = attempt === "export" && !pass.isClean && !rules.windowSize.exportsLackForm;
    rules.windowSize.exportsLackForm ||= lacksForm;
    const verdict = await verdictOn(attempt, pass, left);
    const next = whatFollows(attempt, verdict, left, pass);
    if (isNew && (next[0] === "pages" || (lacksForm && rules.isListed)))
      warn(rules.service, `${pass.cause.message}. It is read page by page`);
    if (verdict === "failed" && next.length > 0 && !lacksForm) notifyCut(attempt, pass);
    if (typeof next === "string") return yield pass.outcome(next);
    [attempt, ...left] = next;
  }
  if (window.kind === "closed" || window.kind === "undated") return yield pass.outcome("missing");
  const { cause } = pass;
  const text = `${cause.message}. The next run reads these rows again. Run again later. ${OWNER}`;
  throw new BodyError(text, { cause });
}

/** Reports an attempt that lacked rows or broke off. */
function notifyCut(attempt: Attempt, pass: Pass): void {
  const { window, count, shown, counted, isClean, latest, rules } = pass;
  const isShort = count.known && shown < counted;
  // If no row is missing, rows moved during the attempt. The ends of a list may lack rows without a date although nothing failed.
  if ((isClean && !isShort) || attempt === "ends") return;
  const rows = { shown, counted: count.known ? counted : null };
  const days = { days: describe(window), to: window.kind === "closed" ? window.to : null };
  const isCut = (isShort || !count.known) && (isClean || latest.distinct > 0);
  rules.service.notify({ kind: "cut", isExport: attempt === "export", isCut, ...days, ...rows });
}

/** Makes one attempt. An error in the content of an answer ends only the attempt; every other error ends the stream. */
async function* make(attempt: Attempt, pass: Pass): Parts {
  const { window, rules } = pass;
  const { service, windowSize } = rules;
  if (pass.passes > 0) await service.backOff(pass.passes);
  // New rows arrive in an open window all the time, and lists may show them late. A later count has rows that the list does not
  // show yet. So every attempt is compared with the first count.
  const count = window.kind === "open" ? pass.count : (pass.after ?? pass.count);
  pass.begin(await freshCount(window, count, rules));
  if (attempt === "export") pass.exports += 1;
  try {
    const asked = service.monotonic();
    for await (const batch of batchesOf(attempt, pass)) yield pass.accept(batch);
    if (attempt === "export" && window.kind === "closed")
      windowSize.measure(pass.latest.distinct, service.monotonic() - asked);
    pass.end();
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    pass.fail(error);
  }
  if (pass.isFull)
    warn(
      service,
      `The range ${describe(window)} has more than ${plural(MAX_SEEN_ROWS, "row")}. After them, a row that arrives twice is ` +
        "sent twice. Lower max_window_rows, or upsert on the key",
    );
}

/** Judges an attempt. If the first count does not prove it, counts again. @param left the attempts after this attempt */
async function verdictOn(attempt: Attempt, pass: Pass, left: readonly Attempt[]): Promise<Verdict> {
  const { service, verifyCounts, windowSize } = pass.rules;
  let verdict = judge(attempt, pass);
  const isCounted = pass.count.known && (verifyCounts || pass.window.kind === "undated");
  const isSplit = pass.window.kind === "open" && left.includes("halve");
  if (verdict === "failed" && isCounted && !isSplit) {
    pass.after = await service.count(pass.window);
    verdict = judge(attempt, pass);
    if (verdict === "proven") pass.count = pass.after;
  }
  if (attempt === "export") windowSize.exportsFail = verdict === "failed";
  pass.isWalked = attempt === "pages" && pass.isClean && (pass.after ?? pass.count).rows === pass.count.rows;
  return verdict;
}

/** Reads the parts of a window, without the rows that the window has emitted. */
async function* readParts(pass: Pass): Parts {
  const { window, why, count, after = count, rules } = pass;
  const parts = "from" in window ? partsOf(window, rules.yesterday) : [];
  const counts: Count[] = [];
  if (window.kind === "closed" && count.known)
    for (const part of parts) counts.push(await rules.service.count(part));
  const sum = counts.reduce((rows, one) => rows + one.rows, 0);
  // If the counts of the halves add up to both counts of the window, no row moved. Then the shown rows count for the halves.
  pass.keep(counts.length > 0 && sum === count.rows && sum === after.rows);
  for (const [nth, part] of parts.entries())
    yield* readWindow({ window: part, why, count: counts[nth] }, rules, pass);
}

/** The given count if it is less than a minute old. If not, the service counts again. */
async function freshCount(window: Window, count: Count | undefined, { service }: RunRules): Promise<Count> {
  const isFresh =
    count !== undefined && (!count.known || Math.abs(service.now() - count.answered) < COUNT_LIFETIME_MS);
  return isFresh ? count : await service.count(window);
}
