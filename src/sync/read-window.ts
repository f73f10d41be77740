import { BodyError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import type { LineBatch } from "./event.ts";
import { type Attempt, attemptsAt, isShown, isWalkable, judge } from "./ladder.ts";
import type { Outcome, RunRules } from "./outcome.ts";
import { Pass } from "./pass.ts";
import type { Planned } from "./plan.ts";
import { readPages } from "./read-pages.ts";
import { exportUndated, isCountedToTheEnd, readEnds } from "./read-undated.ts";
import { MOST_SEEN_ROWS } from "./seen-rows.ts";
import { type Batch, bounded, type Count } from "./service.ts";
import { describe, halves, splitAtYesterday } from "./window.ts";

/** A count older than this (ms) is taken again before it is used. */
const COUNT_LIFETIME = 60_000;

/**
 * Reads one window until it is proven, drained or given up, and emits no row twice. Yields an outcome for each part as soon
 * as the part has ended, oldest first.
 * @param whole the pass over the window that this one is a part of
 * @throws BodyError for a window from yesterday on that no attempt proved
 */
export async function* readWindow(
  planned: Omit<Planned, "isReread">,
  rules: RunRules,
  whole?: Pass,
): AsyncGenerator<LineBatch | Outcome> {
  const { window, isRetry } = planned;
  const pass = new Pass(window, await countOf(planned, rules), rules, whole);
  if (window.kind === "undated" && !(await isCountedToTheEnd(pass, rules)))
    return yield pass.outcome("missing");
  if (isShown(pass)) return yield pass.outcome("proven");
  const attempts = attemptsAt(pass, rules);
  for (let attempt = attempts.shift(); attempt !== undefined; attempt = attempts.shift()) {
    if (attempt === "halve") return yield* readParts(pass, isRetry, rules);
    yield* make(attempt, pass, rules);
    const verdict = await verdictOn(attempt, pass, attempts, rules);
    const isDrained = verdict === "again" && isRetry;
    // A service that twice shows too few and counts what it shows must show the same by its pages.
    if (isDrained && attempt === "export" && isWalkable(pass, rules)) attempts.unshift("pages");
    else if (isDrained)
      return yield pass.outcome(attempt === "export" || pass.fresh === 0 ? "proven" : "again");
    else if (verdict !== "failed") return yield pass.outcome(verdict);
    else if (attempt === "export" && attempts[0] === "pages") warnOfPages(pass, rules);
  }
  if (window.kind === "closed" || window.kind === "undated") return yield pass.outcome("missing");
  const { cause } = pass;
  throw new BodyError(`${cause.message}. The state stays before it. Run again later`, { cause });
}

/** Makes one attempt. Only what is wrong with a body's content fails it; every other error ends the stream. */
async function* make(attempt: Attempt, pass: Pass, rules: RunRules): AsyncGenerator<LineBatch | Outcome> {
  const { service, windowSize } = rules;
  const { window } = pass;
  if (pass.passes > 0) await service.backOff(pass.passes);
  // A list that lags shows a little later what was counted before, and never what is counted then.
  const count = window.kind === "open" ? pass.count : (pass.after ?? pass.count);
  pass.begin(await countOf({ window, count }, rules));
  try {
    const asked = service.monotonic();
    for await (const batch of batchesOf(attempt, pass, rules)) yield pass.accept(batch);
    if (attempt === "export" && window.kind === "closed")
      windowSize.measure(pass.distinct, service.monotonic() - asked);
    pass.end();
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    pass.fail(error);
  }
  if (pass.isFull) warnOfRepeats(pass, rules);
}

function batchesOf(attempt: Attempt, pass: Pass, { service }: RunRules): AsyncIterable<Batch> {
  const { window, count } = pass;
  if (attempt === "ends") return readEnds(pass, service);
  if (attempt === "pages") return bounded(readPages(pass, service), window, count);
  return window.kind === "undated"
    ? exportUndated(pass, service)
    : bounded(service.stream(window, true), window, count);
}

/** Judges an attempt, and counts again where that may decide. @param attempts those that are left */
async function verdictOn(
  attempt: Attempt,
  pass: Pass,
  attempts: readonly Attempt[],
  { service, verifyCounts, windowSize, yesterday }: RunRules,
): Promise<ReturnType<typeof judge>> {
  const judged = (): ReturnType<typeof judge> => {
    if (verifyCounts || attempt === "ends") return judge(pass, yesterday);
    return pass.isClean ? "proven" : "failed";
  };
  let verdict = judged();
  const isCounted = pass.count.known && (verifyCounts || pass.window.kind === "undated");
  const isSplit = pass.window.kind === "open" && attempts.includes("halve");
  if (verdict === "failed" && isCounted && !isSplit) {
    pass.after = await service.count(pass.window);
    verdict = judged();
    if (verdict === "proven") pass.count = pass.after;
  }
  if (attempt === "export") windowSize.exportsFail = verdict === "failed";
  pass.isWalked = attempt === "pages" && pass.isClean && (pass.after ?? pass.count).rows === pass.count.rows;
  return verdict;
}

/** Reads the parts of a window in its place. They emit nothing that the window has emitted. */
async function* readParts(
  pass: Pass,
  isRetry: boolean,
  rules: RunRules,
): AsyncGenerator<LineBatch | Outcome> {
  const { window, count, after = count } = pass;
  const parts = (window.kind === "closed" ? halves(window) : splitAtYesterday(window, rules.yesterday)) ?? [];
  const counts: Count[] = [];
  if (window.kind === "closed" && count.known)
    for (const part of parts) counts.push(await rules.service.count(part));
  const sum = counts.reduce((rows, one) => rows + one.rows, 0);
  // The same numbers before and after: no row moved, so each half begins with its shown rows.
  pass.keep(counts.length > 0 && sum === count.rows && sum === after.rows);
  for (const [nth, part] of parts.entries())
    yield* readWindow({ window: part, isRetry, count: counts[nth] }, rules, pass);
}

/** The given count if it is young, else a new one. */
async function countOf(
  { window, count }: Pick<Planned, "window" | "count">,
  { service }: RunRules,
): Promise<Count> {
  const isFresh =
    count !== undefined && (!count.known || Math.abs(service.now() - count.answered) < COUNT_LIFETIME);
  return isFresh ? count : await service.count(window);
}

function warnOfRepeats({ window }: Pass, { service }: RunRules): void {
  const text =
    `The window ${describe(window)} has more than ${plural(MOST_SEEN_ROWS, "row")}: beyond them a row that comes twice is ` +
    "passed on twice. Lower max_window_rows, or upsert on the key";
  service.notify({ kind: "log", level: "warn", text });
}

function warnOfPages({ isClean, cause }: Pass, { service }: RunRules): void {
  if (isClean) return;
  service.notify({ kind: "log", level: "warn", text: `${cause.message}. It is read page by page` });
}
