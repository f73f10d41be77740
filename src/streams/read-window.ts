import { BodyError, ScrambledError } from "../errors.ts";
import { plural } from "../plural.ts";
import { readWhileNew } from "./endless.ts";
import type { LineBatch } from "./event.ts";
import { contradiction, judge, Pass, provenBy } from "./proof.ts";
import { readPages } from "./read-pages.ts";
import { readUndated } from "./read-undated.ts";
import { MOST_SEEN_ROWS, SeenRows } from "./seen-rows.ts";
import { type Count, NOT_COUNTED } from "./stream-api.ts";
import { describe, halves, splitAtYesterday, type Window } from "./window.ts";
import {
  type Attempt,
  missingInARow,
  type Planned,
  type RunRules,
  type WindowOutcome,
  type WindowResult,
} from "./window-result.ts";

/** A count older than this (ms) is taken again before it is used. */
const COUNT_LIFETIME = 60_000;
/** Failed passes after which a window of several days is halved, and after which a single day is read by pages. */
const PASSES_BEFORE_HALVES = 2;
const PASSES_BEFORE_PAGES = 5;
/** A range that drains again is read by pages if it has at most this number (of 1,000 rows each). */
const MOST_RECHECK_ROWS = 20_000;

/** What a part of a window takes over from the window. */
type Shared = {
  readonly seen: SeenRows;
  /** More rows were shown than counted: a part is read even if its count says 0. */
  readonly isContradicted: boolean;
  /** Attempts that have failed on the very same rows. */
  readonly failures: number;
};

/**
 * Reads one window until it is proven, drained, halved or given up, and emits no row twice. Only what is wrong with a body's
 * content is a failed attempt; every other error ends the stream.
 * @throws BodyError for a window that cannot become a missing day; DataError where totals contradict the rows
 */
export async function* readWindow(
  planned: Planned,
  rules: RunRules,
  shared?: Shared,
): AsyncGenerator<LineBatch, WindowResult> {
  const { window, clears } = planned;
  if (window.kind === "undated") return [yield* readUndated(planned, rules, shared?.seen)];
  const counted = await freshCount(planned, rules);
  const { isContradicted = false, failures: earlier = 0 } = shared ?? {};
  if (!isContradicted && window.kind === "closed" && counted.known && counted.rows === 0) return [];
  const seen = shared?.seen ?? new SeenRows(counted.rows + counted.undated);
  const parts = halves(window, rules.yesterday);
  const isIgnored =
    window.kind === "closed" && window.from === window.to && rules.ignoredDays.has(window.from);
  let count: Count | undefined = counted;
  let cause: unknown;
  for (let failures = earlier; ; failures++) {
    const next = nextAttempt(failures, parts !== undefined, rules);
    if (next === "halves")
      return yield* readParts(parts ?? [], clears, rules, { seen, isContradicted, failures });
    if (next === "give up") return [givenUp(window, cause)];
    if (failures > earlier) await rules.api.backOff(failures);
    count = await freshCount({ window, clears, count }, rules);
    let attempt: Attempt;
    try {
      attempt = yield* next === "pages"
        ? readPages(window, clears, rules, seen)
        : readExport(window, clears, count, rules, seen);
    } catch (error) {
      if (error instanceof ScrambledError) seen.forget();
      if (!(error instanceof BodyError)) throw error;
      attempt = { kind: "failed", cause: error };
    }
    if (isIgnored) return [{ window, kind: "ignored" }];
    if (attempt.kind === "split") {
      const all = { seen, isContradicted: isContradicted || attempt.isContradicted === true, failures: 0 };
      return yield* readParts(attempt.parts, clears, rules, all);
    }
    if (attempt.kind !== "failed") return [attempt];
    cause = attempt.cause;
    count = attempt.count;
  }
}

/** What to do with a window after this number of attempts that did not close it. */
export function nextAttempt(
  failures: number,
  splits: boolean,
  { isExported, isListed }: Pick<RunRules, "isExported" | "isListed">,
): "stream" | "halves" | "pages" | "give up" {
  if (!isExported) return failures < PASSES_BEFORE_PAGES ? "pages" : "give up";
  if (splits) return failures < PASSES_BEFORE_HALVES ? "stream" : "halves";
  if (failures < PASSES_BEFORE_PAGES) return "stream";
  return failures === PASSES_BEFORE_PAGES && isListed ? "pages" : "give up";
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

/** One pass over the export of a window, and its verdict. */
async function* readExport(
  window: Window,
  clears: Planned["clears"],
  count: Count,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  const { api, yesterday, windowSize } = rules;
  const began = api.monotonic();
  const pass = new Pass(window, count, seen, rules);
  for await (const batch of readWhileNew(window, count, pass, rules)) yield pass.accept(batch);
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

/** Fewer rows than were counted: people have left, or rows were lost. The next count tells which. */
async function* afterShort(
  window: Window,
  clears: Planned["clears"],
  count: Count,
  pass: Pass,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  if (window.kind !== "closed") return { kind: "failed", cause: unproven(window, count, pass) };
  const after = await rules.api.count(window);
  if (pass.beforeCount < after.rows) {
    return { kind: "failed", cause: unproven(window, count, pass), count: after };
  }
  if (clears !== "again") return { window, kind: "again", newest: pass.newest };
  if (after.rows > MOST_RECHECK_ROWS || !rules.isListed) return provenBy(window, pass, count);
  return yield* readPages(window, clears, rules, seen);
}

/** More rows than were counted: the totals are too low, or a row came in late. */
async function afterTooMany(window: Window, count: Count, pass: Pass, rules: RunRules): Promise<Attempt> {
  const parts = halves(window, rules.yesterday);
  if (parts !== undefined) return { kind: "split", parts, isContradicted: true };
  const after = await rules.api.count(window);
  if (pass.shown > after.rows) throw contradiction(window, pass.shown, count, after);
  if (window.kind === "all") return provenBy(window, pass, count);
  return { kind: "failed", cause: unproven(window, count, pass), count: after };
}

/** Reads the parts of a window in its place: what the window has emitted is not emitted again. */
async function* readParts(
  parts: readonly Window[],
  clears: Planned["clears"],
  rules: RunRules,
  shared: Shared,
): AsyncGenerator<LineBatch, WindowResult> {
  const result: WindowOutcome[] = [];
  for (const [nth, window] of parts.entries()) {
    // While the parts have held nothing, the rest of them is all that failed.
    const failures = nth > 0 && result.length === 0 ? shared.failures : 0;
    const planned: Planned = { window, clears };
    result.push(...(yield* readWindow(planned, rules, { ...shared, failures })));
    if (clears !== "missing") missingInARow(result);
  }
  return result;
}

function givenUp(window: Window, cause: unknown): WindowOutcome {
  if (window.kind === "closed") return { window, kind: "missing", cause };
  const last = cause instanceof Error ? `. The last one: ${cause.message}` : "";
  throw new BodyError(
    `Cannot prove ${describe(window)} complete: no attempt showed all its rows${last}. The state stays before it. Run again later`,
    { cause },
  );
}

function unproven(window: Window, count: Count, pass: Pass): BodyError {
  return new BodyError(
    `Cannot prove ${describe(window)} complete: the service counts ${plural(count.rows + count.undated, "row")} and shows ${pass.shown}`,
  );
}
