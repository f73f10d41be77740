import { BodyError, ScrambledError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { missingInARow, type Outcome, type Planned, type RunRules, type WindowEvent } from "./outcome.ts";
import { judge, type Kept, Pass, wereShown } from "./pass.ts";
import { readPages } from "./read-pages.ts";
import { readUndated } from "./read-undated.ts";
import { MOST_SEEN_ROWS, SeenRows } from "./seen-rows.ts";
import { bounded, type Count, freshCount, NOT_COUNTED } from "./service.ts";
import { describe, halves, splitAtYesterday, type Window } from "./window.ts";

/** Several days with more rows than 20 pages have are not walked over. */
const MAX_WALKED_ROWS = 20_000;

type Attempt = "export" | "pages" | "halve";

/** After a window that no export proved, the next ones begin with a single export. */
const RANGE: readonly Attempt[] = ["export", "export", "pages", "halve"];
const RANGE_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "halve"];
const DAY: readonly Attempt[] = ["export", "export", "export", "pages", "pages", "pages"];
const DAY_AFTER_FAILURE: readonly Attempt[] = ["export", "pages", "pages", "pages", "export", "export"];

/** Shared by the parts of a window. `missing`: the missing days right before the next part. */
type Shared = { readonly seen: SeenRows; missing: readonly Outcome[] };

/** Kept by a half of its whole. `isWalked`: a walk over the whole came to its end, so that the half is only counted. */
type Before = { readonly kept: Kept; readonly isWalked: boolean };

/**
 * Reads one window until it is proven, drained or given up, and emits no row twice. Yields an outcome for each part as soon
 * as the part has ended, oldest first. Only what is wrong with a body's content is a failed attempt.
 * @throws BodyError for too many missing days in a row, and for a window from yesterday on that no attempt proved
 */
export async function* readWindow(planned: Planned, rules: RunRules): AsyncGenerator<WindowEvent> {
  const { window } = planned;
  const count = window.kind === "undated" ? planned.count : await countOf(planned, rules);
  const seen = new SeenRows((count?.rows ?? 0) + (count?.undated ?? 0));
  yield* readPart({ ...planned, count }, rules, { seen, missing: [] });
}

async function* readPart(
  planned: Planned,
  rules: RunRules,
  shared: Shared,
  before?: Before,
): AsyncGenerator<WindowEvent> {
  const { window, isRetry } = planned;
  const { service, windowSize } = rules;
  if (window.kind === "undated") return yield* readUndated(planned, rules, shared.seen);
  const began = service.now();
  let count = planned.count ?? (await countOf(planned, rules));
  const pass = new Pass(window, count, rules, shared.seen, before?.kept);
  const end = (kind: Outcome["kind"], more: Partial<Outcome> = {}): WindowEvent => {
    const seconds = Math.max(0, service.now() - began) / 1_000;
    const outcome = { kind, ...pass.facts, seconds, ...more };
    shared.missing = missingInARow(shared.missing, outcome);
    return { kind: "outcome", outcome };
  };
  if (window.kind === "closed" && count.known && pass.shown === count.rows) {
    const isDoubtful = pass.shown === 0 && wereShown(window, before?.kept);
    if (!isDoubtful) return yield end("proven");
  }
  let isWalked = before?.isWalked === true && pass.isKept;
  const attempts = attemptsAt(window, count, isWalked, rules);
  let [failures, isClean, isRead] = [0, false, false];
  let cause: unknown;
  for (let attempt = attempts.shift(); attempt !== undefined; attempt = attempts.shift()) {
    if (attempt === "halve") return yield* readParts(pass, count, isWalked, isRetry, rules, shared);
    if (failures > 0) await service.backOff(failures);
    count = await countOf({ window, count }, rules);
    pass.begin(count, isClean);
    isClean = false;
    try {
      const asked = service.monotonic();
      const batches = attempt === "export" ? service.stream(window, true) : readPages(pass, rules);
      for await (const batch of bounded(batches, window, count))
        yield { kind: "rows", batch: pass.accept(batch) };
      if (attempt === "export") windowSize.measure(pass.distinct, service.monotonic() - asked);
      pass.refuseMissingKeys();
      isClean = true;
      isRead = true;
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      if (error instanceof ScrambledError) pass.forget();
      cause = error;
    }
    if (pass.isFull) warnOfRepeats(pass, rules);
    const { verdict, after = count } = await judged(pass, isClean, attempts, rules);
    if (attempt === "export") windowSize.exportsFail = verdict === "failed";
    if (verdict === "proven") return yield end("proven", undatedOf(pass));
    failures += 1;
    if (isClean) cause = unproven(pass);
    else if (attempt === "export" && attempts[0] === "pages") warnOfPages(cause, rules);
    // A service that twice shows too few and counts what it shows must show the same by its pages.
    const isWalkedFirst = isRetry && attempt === "export" && isWalkable(window, after, rules);
    if (verdict === "again" && isWalkedFirst) attempts.unshift("pages");
    else if (verdict === "again" && window.kind === "closed")
      return yield end(isRetry && (attempt === "export" || pass.fresh === 0) ? "proven" : "again");
    isWalked = attempt === "pages" && isClean && after.rows === count.rows;
    // A list that lags shows a little later what was counted before, and never what is counted then.
    if (window.kind !== "open") count = after;
  }
  if (window.kind === "closed") return yield end("missing", { isRead, cause });
  const why = cause instanceof Error ? cause.message : `Cannot prove ${describe(window)} complete`;
  throw new BodyError(`${why}. The state stays before it. Run again later`, { cause });
}

/** The attempts at a window, in their order. */
function attemptsAt(window: Window, count: Count, isWalked: boolean, rules: RunRules): Attempt[] {
  const { isExported, windowSize, yesterday } = rules;
  if (window.kind === "open" && window.from < yesterday) return ["export", "halve"];
  const isRange = window.kind === "closed" && window.from < window.to;
  if (isRange && (isWalked || count.rows > windowSize.most)) return ["halve"];
  const [first, afterFailure] = isRange ? [RANGE, RANGE_AFTER_FAILURE] : [DAY, DAY_AFTER_FAILURE];
  const can = { export: isExported, pages: isWalkable(window, count, rules), halve: true };
  return (windowSize.exportsFail ? afterFailure : first).filter((attempt) => can[attempt]);
}

function isWalkable(window: Window, { known, rows }: Count, { isListed }: RunRules): boolean {
  const isRange = window.kind === "closed" && window.from < window.to;
  return isListed && (!isRange || (known && rows <= MAX_WALKED_ROWS));
}

/** A list of a stream without an export says its total on its pages, if it has one. */
const countOf = ({ window, count }: Pick<Planned, "window" | "count">, rules: RunRules): Promise<Count> => {
  const { service, verifyCounts, isExported } = rules;
  const isCounted = window.kind !== "all" || (verifyCounts && isExported);
  return freshCount({ window, count: isCounted ? count : NOT_COUNTED }, service);
};

/** Judges an attempt, and counts again where that may decide. @param attempts those that are left */
async function judged(
  pass: Pass,
  isClean: boolean,
  attempts: readonly Attempt[],
  { service, verifyCounts, yesterday }: RunRules,
): Promise<{ verdict: Outcome["kind"] | "failed"; after?: Count }> {
  if (!verifyCounts) return { verdict: isClean ? "proven" : "failed" };
  const verdict = judge(pass, undefined, isClean, yesterday);
  const isSplit = pass.window.kind === "open" && attempts.includes("halve");
  if (verdict === "proven" || !pass.count.known || isSplit) return { verdict };
  const after = await service.count(pass.window);
  return { verdict: judge(pass, after, isClean, yesterday), after };
}

/** Reads the parts of a window in its place. They emit nothing that the window has emitted. */
async function* readParts(
  pass: Pass,
  count: Count,
  isWalked: boolean,
  isRetry: boolean,
  rules: RunRules,
  shared: Shared,
): AsyncGenerator<WindowEvent> {
  const { window } = pass;
  const isClosed = window.kind === "closed";
  const parts = (isClosed ? halves(window) : splitAtYesterday(window, rules.yesterday)) ?? [];
  const counts: Count[] = [];
  if (isClosed && count.known) for (const part of parts) counts.push(await rules.service.count(part));
  const sum = counts.reduce((rows, one) => rows + one.rows, 0);
  // The same numbers before and after: no row moved, so each half begins with its shown rows.
  const isSame = counts.length > 0 && sum === count.rows && sum === pass.count.rows;
  const before = { kept: pass.keep(isSame), isWalked: isWalked && isSame };
  for (const [nth, part] of parts.entries())
    yield* readPart({ window: part, isRetry, count: counts[nth] }, rules, shared, before);
}

function warnOfRepeats({ window }: Pass, { service }: RunRules): void {
  const text =
    `The window ${describe(window)} has more than ${plural(MOST_SEEN_ROWS, "row")}: beyond them a row that comes twice is ` +
    "passed on twice. Lower max_window_rows, or upsert on the key";
  service.notify({ kind: "log", level: "warn", text });
}

function warnOfPages(cause: unknown, { service }: RunRules): void {
  const why = cause instanceof BodyError ? cause.message : String(cause);
  service.notify({ kind: "log", level: "warn", text: `${why}. It is read page by page` });
}

const undatedOf = ({ window, count, undated }: Pass): Partial<Outcome> =>
  window.kind === "open" && window.undated ? { undated: count.known ? count.undated : undated } : {};

function unproven({ window, count, shown }: Pass): BodyError {
  const counted = plural(count.rows + count.undated, "row");
  return new BodyError(
    `Cannot prove ${describe(window)} complete: the service counts ${counted} and shows ${shown}`,
  );
}
