import { BodyError, DataError, ScrambledError, UnmadeError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { addDays } from "../base/time.ts";
import { readWhileNew } from "./endless.ts";
import type { LineBatch } from "./event.ts";
import { partsOf } from "./parts.ts";
import {
  contradiction,
  isAlike,
  isProvenByRows,
  judge,
  numbersOf,
  Pass,
  provenBy,
  refuseContradiction,
} from "./pass.ts";
import { readPages } from "./read-pages.ts";
import { readUndated } from "./read-undated.ts";
import { MOST_SEEN_ROWS, SeenRows } from "./seen-rows.ts";
import { type Count, NOT_COUNTED, type Service, untrusted } from "./service.ts";
import {
  type ClosedWindow,
  closedWindow,
  describe,
  halves,
  splitAtYesterday,
  type Window,
} from "./window.ts";
import {
  type Attempt,
  type FailedAttempt,
  missingInARow,
  type Planned,
  type RunRules,
  type WindowOutcome,
  type WindowResult,
} from "./window-result.ts";

/** A count older than this (ms) is taken again before it is used. */
const COUNT_LIFETIME = 60_000;
/** Failed passes after which a window of several days is halved, and after which a single day, or a part of one, is read by pages. */
const PASSES_BEFORE_HALVES = 2;
const PASSES_BEFORE_PAGES = 5;
/** A range that drains again is read by pages if it has at most this number of them. */
const MOST_PAGES_AGAIN = 20;

/** What a part of a window takes over from the window. */
type Shared = {
  readonly seen: SeenRows;
  /** More rows were shown than counted: a part is read even if its count says 0. */
  readonly isContradicted: boolean;
  /** Attempts that have failed on the very same rows. */
  readonly failed: readonly FailedAttempt[];
  /** The missing days right before it. */
  readonly row: WindowResult;
};

/** Reads one window, and says of each part of it what it took. */
export async function* readWindow(
  planned: Planned,
  rules: RunRules,
  shared?: Shared,
): AsyncGenerator<LineBatch, WindowResult> {
  const result = yield* attempts(planned, rules, shared);
  const { tally } = rules;
  if (tally === undefined) return result;
  return result.map((one) =>
    one.facts === undefined ? { ...one, facts: tally.take(one.window.kind) } : one,
  );
}

/**
 * Reads one window until it is proven, drained, halved or given up, and emits no row twice. Only what is wrong with a body's
 * content is a failed attempt; every other error ends the stream.
 * @throws BodyError for a window that cannot become a missing day; DataError where totals contradict the rows
 */
async function* attempts(
  planned: Planned,
  rules: RunRules,
  shared?: Shared,
): AsyncGenerator<LineBatch, WindowResult> {
  const { window, clears } = planned;
  if (window.kind === "undated") return [yield* readUndated(planned, rules, shared?.seen)];
  const counted = await freshCount(planned, rules);
  const { isContradicted = false, failed: earlier = [], row = [] } = shared ?? {};
  if (!isContradicted && window.kind === "closed" && counted.known && counted.rows === 0) return [];
  const seen = shared?.seen ?? new SeenRows(counted.rows + counted.undated);
  const parts = halves(window, rules.yesterday);
  const isIgnored =
    window.kind === "closed" && window.from === window.to && rules.ignoredDays.has(window.from);
  const failed = [...earlier];
  const isTooLarge = counted.rows > rules.windowSize.most;
  const isHugeDay =
    parts === undefined && rules.verifyCounts && counted.rows > rules.windowSize.maxWindowRows;
  let count: Count | undefined = counted;
  let isPaged = false;
  let exports: readonly Window[] = [];
  let isBrokenInParts = false;
  for (;;) {
    const isInVain = isBrokenInParts || (rules.windowSize.fallsShort && isAlike(failed));
    const next = nextAttempt(
      failed.length,
      { splits: parts !== undefined, isTooLarge, isPaged, isInVain },
      rules,
    );
    if (next !== "stream") refuseContradiction(failed);
    if (next === "halves") {
      learnFrom(failed, counted.rows, true, rules);
      return yield* readParts(parts ?? [], clears, rules, { seen, isContradicted, failed, row });
    }
    if (next === "give up") return [await givenUp(planned, failed, rules)];
    if (failed.length > earlier.length) await rules.api.backOff(failed.length);
    isPaged = next === "pages";
    const hasBroken = failed.length > 0 && failed.at(-1)?.numbers === undefined;
    if (isHugeDay && hasBroken && !isPaged && exports.length === 0)
      exports = await partsOf(window, counted.rows, rules);
    count = await freshCount({ window, clears, count }, rules);
    let attempt: Attempt;
    try {
      attempt = yield* isPaged
        ? readPages(window, clears, rules, seen, count)
        : readExport(window, exports.length > 0 ? exports : [window], clears, count, rules, seen);
    } catch (error) {
      if (error instanceof ScrambledError) seen.forget();
      if (!(error instanceof BodyError)) throw error;
      attempt = { kind: "failed", cause: error };
      isBrokenInParts = exports.length > 1;
    }
    if (isIgnored) return [{ window, kind: "ignored" }];
    if (attempt.kind === "split") {
      const all = {
        seen,
        isContradicted: isContradicted || attempt.isContradicted === true,
        failed: [],
        row,
      };
      return yield* readParts(attempt.parts, clears, rules, all);
    }
    if (attempt.kind !== "failed") {
      if (failed.length > earlier.length) rules.windowSize.fallsShort = false;
      return [attempt];
    }
    failed.push(attempt);
    count = attempt.count;
    const wasTried = isBrokenInParts || failed.length === PASSES_BEFORE_PAGES;
    const isLast = parts === undefined && rules.isExported && wasTried;
    if (isLast) learnFrom(failed, counted.rows, false, rules);
  }
}

type Situation = Readonly<Record<"splits" | "isTooLarge" | "isPaged" | "isInVain", boolean>>;

/**
 * What to do with a window after this number of attempts that did not close it. `isPaged`: the last was by pages.
 * `isInVain`: another export would fail too, because all fell short alike, as those of a day before that was tried to the
 * end, or because the exports of its parts broke.
 */
function nextAttempt(
  failures: number,
  { splits, isTooLarge, isPaged, isInVain }: Situation,
  { isExported, isListed, windowSize }: Pick<RunRules, "isExported" | "isListed" | "windowSize">,
): "stream" | "halves" | "pages" | "give up" {
  if (!isExported) return failures < PASSES_BEFORE_PAGES ? "pages" : "give up";
  const isByPages = windowSize.exportsFail && isListed;
  if (splits && isTooLarge && !isByPages) return "halves";
  const passes = splits ? PASSES_BEFORE_HALVES : PASSES_BEFORE_PAGES;
  const isEnough = failures >= (isInVain || (splits && isByPages) ? 1 : passes);
  if (!isEnough && (splits || !isByPages)) return "stream";
  if (!isPaged && isListed && (!splits || isByPages)) return "pages";
  return splits ? "halves" : "give up";
}

/** Where exports failed before their end, smaller ones are made from now on; where not even a day's could be begun, none. */
function learnFrom(failed: readonly FailedAttempt[], rows: number, splits: boolean, rules: RunRules): void {
  const { api, windowSize } = rules;
  if (failed.length === 0) return;
  if (splits) windowSize.tooLarge(rows);
  else windowSize.dayFailed(rows);
  const unmade = failed.filter(({ cause }) => cause instanceof UnmadeError);
  const last = unmade.at(-1)?.cause;
  if (!(last instanceof UnmadeError) || (!splits && unmade.length < failed.length)) return;
  windowSize.exportsFail = !splits;
  const most = plural(windowSize.most, "row");
  const then = splits
    ? `Windows of at most ${most} are read instead. Set max_window_rows to ${Math.max(1_000, windowSize.most)} to begin with such`
    : "It is read page by page, and so are the days after it";
  api.notify({ kind: "log", level: "warn", text: `${last.message}. ${then}` });
}

/** A list of a stream without an export says its total on its pages, if it has one. */
async function freshCount(
  { window, count }: Planned,
  { api, verifyCounts, isExported }: RunRules,
): Promise<Count> {
  if (window.kind === "all" && (!verifyCounts || !isExported)) return NOT_COUNTED;
  if (count !== undefined && (!count.known || Math.abs(api.now() - count.answered) < COUNT_LIFETIME))
    return count;
  return await api.count(window);
}

/** One pass over the export of a window, or over those of its parts, and its verdict. */
async function* readExport(
  window: Window,
  exports: readonly Window[],
  clears: Planned["clears"],
  count: Count,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  const { api, yesterday, windowSize } = rules;
  const began = api.monotonic();
  const pass = new Pass(window, count, seen, rules);
  const isShown = (): boolean =>
    rules.verifyCounts && count.known && judge(window, rules, count, pass) === "proven";
  for (const part of exports) yield* readPart(part, exports.length > 1, pass, count, rules, isShown);
  pass.refuseMissingKeys();
  windowSize.measure(pass.distinct, api.monotonic() - began);
  if (seen.isFull) {
    const text =
      `The window ${describe(window)} holds more than ${plural(MOST_SEEN_ROWS, "row")}: beyond them a row that comes twice is ` +
      "passed on twice. Lower max_window_rows, or upsert on the key";
    api.notify({ kind: "log", level: "warn", text });
  }
  const verdict = rules.verifyCounts ? judge(window, rules, count, pass) : "proven";
  const parts = splitAtYesterday(window, yesterday) ?? [];
  switch (verdict) {
    case "proven":
      return provenBy(window, pass, count);
    case "split":
      return { kind: "split", parts, isContradicted: pass.beforeCount > count.rows };
    case "too many":
      return await afterTooMany(window, count, pass, rules);
    case "short":
      return yield* afterShort(window, clears, count, pass, rules, seen);
  }
}

/** One export of a pass. One of several is made again by itself if it breaks. */
async function* readPart(
  part: Window,
  isOneOfSeveral: boolean,
  pass: Pass,
  count: Count,
  rules: RunRules,
  isShown: () => boolean,
): AsyncGenerator<LineBatch> {
  const restart = pass.beginPart();
  for (let tries = 1; ; tries++) {
    try {
      for await (const batch of readWhileNew(part, count, pass, rules, isShown)) yield pass.accept(batch);
      return;
    } catch (error) {
      const isLast = !isOneOfSeveral || tries === PASSES_BEFORE_PAGES;
      if (isLast || !(error instanceof BodyError) || error instanceof ScrambledError) throw error;
      await rules.api.backOff(tries);
      restart();
    }
  }
}

/** Fewer rows than were counted: people have left, or rows were lost. The next count tells which. */
async function* afterShort(
  window: Window,
  clears: Planned["clears"],
  count: Count,
  pass: Pass,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  if (isProvenByRows(window, count.rows + count.undated, seen, rules)) return provenBy(window, pass, count);
  const cause = unproven(window, count, pass);
  if (window.kind !== "closed") {
    const failed: Attempt = { kind: "failed", cause, numbers: numbersOf(pass.distinct, count) };
    // A replica that lags shows a little later what is counted now, and never what is counted then.
    return window.kind === "open" ? { ...failed, count } : failed;
  }
  const after = await rules.api.count(window);
  if (pass.beforeCount < after.rows) {
    return { kind: "failed", cause, count: after, numbers: numbersOf(pass.beforeCount, count, after) };
  }
  if (clears !== "again") return { window, kind: "again", newest: pass.newest };
  const isLong = !rules.isListed || after.rows > MOST_PAGES_AGAIN * (await rules.api.page(window, 1)).size;
  return isLong ? provenBy(window, pass, count) : yield* readPages(window, clears, rules, seen, after);
}

/** More rows than were counted: the totals are too low, or a row came in late. */
async function afterTooMany(window: Window, count: Count, pass: Pass, rules: RunRules): Promise<Attempt> {
  const parts = halves(window, rules.yesterday);
  if (parts !== undefined) return { kind: "split", parts, isContradicted: true };
  const { api } = rules;
  const after = await api.count(window);
  const numbers = numbersOf(pass.shown, count, after);
  if (pass.shown <= after.rows) {
    if (window.kind === "all") return provenBy(window, pass, count);
    return { kind: "failed", cause: unproven(window, count, pass), count: after, numbers };
  }
  const cause = contradiction(window, pass.shown, count, after);
  if (window.kind !== "all") return { kind: "failed", cause, count: after, numbers };
  const [last, next] = [await api.rowAt(window, pass.shown), await api.rowAt(window, pass.shown + 1)];
  if (last?.row === undefined || next === undefined || next.row !== undefined) throw cause;
  return provenBy(window, pass, count);
}

/** Reads the parts of a window in its place: what the window has emitted is not emitted again. */
async function* readParts(
  parts: readonly Window[],
  clears: Planned["clears"],
  rules: RunRules,
  shared: Shared,
): AsyncGenerator<LineBatch, WindowResult> {
  const result: WindowOutcome[] = [];
  let { row } = shared;
  for (const [nth, window] of parts.entries()) {
    // While the parts have held nothing, the rest of them is all that failed.
    const failed = nth > 0 && result.length === 0 ? shared.failed : [];
    const planned: Planned = { window, clears };
    const part = yield* readWindow(planned, rules, { ...shared, failed, row });
    result.push(...part);
    if (clears !== "missing") row = missingInARow([...row, ...part]);
  }
  return result;
}

/** Counts that vary while a day is read say nothing against it the first time. */
async function givenUp(
  { window, clears }: Planned,
  failed: readonly FailedAttempt[],
  { windowSize, api }: RunRules,
): Promise<WindowOutcome> {
  const cause = failed.at(-1)?.cause;
  if (window.kind === "closed") {
    if (clears === null && failed.some(({ cause: one }) => one instanceof DataError))
      return { window, kind: "again" };
    const isShort = isAlike(failed) && (windowSize.fallsShort || failed.length > PASSES_BEFORE_PAGES);
    if (isShort && !windowSize.fallsShort) await refuseSum(window, api);
    windowSize.fallsShort = isShort;
    return { window, kind: "missing", cause, isAlike: isShort };
  }
  const why = cause instanceof Error ? cause.message : `Cannot prove ${describe(window)} complete`;
  throw new BodyError(
    `${why}. No attempt showed all the rows that are counted, so the state stays before them. Run again later`,
    { cause },
  );
}

/** Rows of two closed days either come late or leave between these counts, so that together they hold no fewer than each. */
async function refuseSum(day: ClosedWindow, api: Service): Promise<void> {
  const next = addDays(day.to, 1);
  const both = closedWindow(day.from, next);
  const counts: number[] = [];
  for (const window of [both, day, closedWindow(next, next), both])
    counts.push((await api.count(window)).rows);
  const [before = 0, first = 0, second = 0, after = 0] = counts;
  if (first + second <= Math.max(before, after)) return;
  throw untrusted(`${day.from} counts ${first}, ${next} counts ${second}, and both together ${after}`);
}

function unproven(window: Window, count: Count, pass: Pass): BodyError {
  return new BodyError(
    `Cannot prove ${describe(window)} complete: the service counts ${plural(count.rows + count.undated, "row")} and shows ${pass.shown}`,
  );
}
