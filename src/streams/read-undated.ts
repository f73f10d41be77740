import { BodyError, ScrambledError } from "../errors.ts";
import { BEGINNING, instant } from "../time.ts";
import { endless, isEndless, readWhileNew } from "./endless.ts";
import type { LineBatch } from "./event.ts";
import { Pass } from "./proof.ts";
import { SeenRows } from "./seen-rows.ts";
import { type Batch, type Count, NOT_COUNTED, type StreamApi } from "./stream-api.ts";
import type { Window } from "./window.ts";
import type { Planned, RunRules, WindowOutcome } from "./window-result.ts";

const UNDATED_WINDOW: Window = { kind: "undated" };
const EVERYTHING: Window = { kind: "open", from: BEGINNING, undated: true };
const SWEEPS = 2;
const MOST_STREAMS = 3;
/** A page number beyond any list. A service that still returns a row wraps around. */
const PAST_ALL = 1_000_000_000;

/**
 * Reads the rows without a date, which no date filter matches: a handful is fetched from the ends of the unfiltered
 * list (newest first puts them at one end), and only if that does not bring as many as the counts say, from the
 * unfiltered export. What cannot be had, or not be proven, is missing.
 * @param planned `count`: the run's first, which says that there are none if it shows none; `undatedRows`: how many were
 *   delivered before, so that only another number is a reason to read
 */
export async function* readUndated(
  { count: first, undatedRows }: Planned,
  rules: RunRules,
  shared?: SeenRows,
): AsyncGenerator<LineBatch, WindowOutcome> {
  const { api, verifyCounts } = rules;
  let count = first?.known === true && first.undated === 0 ? first : await api.count(UNDATED_WINDOW);
  if (count.known && count.undated === undatedRows && count.isTooLow !== true) return deliveredBy(count);
  const past = verifyCounts && count.known ? await lookPast(api, count) : "end";
  if (past === "grown") count = await api.count(UNDATED_WINDOW);
  const seen = shared ?? new SeenRows(count.undated);
  if (past === "too low") return yield* fromUncounted(rules, seen);
  if (count.known && count.undated === 0) return deliveredBy(count);
  return yield* fromCounted(count, rules, seen);
}

const deliveredBy = ({ undated }: Count): WindowOutcome => ({
  window: UNDATED_WINDOW,
  kind: "proven",
  undatedRows: undated,
});

async function* fromCounted(
  first: Count,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, WindowOutcome> {
  let count = first;
  const found = new Pass(UNDATED_WINDOW, count, seen, rules);
  for (let sweeps = 0; count.known && sweeps < SWEEPS; sweeps++) {
    const isWhole = yield* sweep(rules.api, found);
    const before = count;
    count = await rules.api.count(UNDATED_WINDOW);
    if (isWhole && found.undated >= Math.max(before.undated, count.undated)) return deliveredBy(count);
  }
  return yield* fromExport(rules, seen, count);
}

/** Page by page from each end of the list until a page holds no undated row. Returns false if a page cannot be parsed. */
async function* sweep(api: StreamApi, found: Pass): AsyncGenerator<LineBatch, boolean> {
  try {
    const first = await api.page(EVERYTHING, 1);
    const last = Math.ceil((first.total ?? 0) / first.size);
    const front = undatedRowsOf(first);
    yield found.accept(front);
    let reached = 1;
    for (let more = front.rows.length > 0; more && reached < last; ) {
      reached += 1;
      const batch = undatedRowsOf(await api.page(EVERYTHING, reached));
      yield found.accept(batch);
      more = batch.rows.length > 0;
    }
    for (let number = last; number > reached; number--) {
      const batch = undatedRowsOf(await api.page(EVERYTHING, number));
      yield found.accept(batch);
      if (batch.rows.length === 0) break;
    }
    return true;
  } catch (error) {
    if (error instanceof BodyError) return false;
    throw error;
  }
}

async function* fromExport(
  rules: RunRules,
  seen: SeenRows,
  first: Count,
): AsyncGenerator<LineBatch, WindowOutcome> {
  const everything = new SeenRows(first.rows + first.undated);
  const lacking = new BodyError("Cannot find as many people without a date as the service counts");
  return yield* exportTries(rules.api, lacking, [everything, seen], async function* (failures) {
    const count = failures === 0 ? first : await rules.api.count(UNDATED_WINDOW);
    const { found } = yield* readEverything(count, rules, everything, seen);
    found.refuseMissingKeys();
    const isProven = !rules.verifyCounts || found.undated >= count.undated;
    return isProven ? (count.known ? count.undated : found.undated) : undefined;
  });
}

/**
 * One pass over the unfiltered export, and its undated rows among it.
 * @throws BodyError for an export that does not end
 */
async function* readEverything(
  count: Count,
  rules: RunRules,
  everything: SeenRows,
  seen: SeenRows,
): AsyncGenerator<LineBatch, { all: Pass; found: Pass }> {
  const all = new Pass(EVERYTHING, count, everything, { ...rules, onPass: () => {} });
  const found = new Pass(UNDATED_WINDOW, count, seen, rules);
  let rows = 0;
  for await (const batch of readWhileNew(EVERYTHING, all, rules)) {
    all.accept(batch);
    yield found.accept(undatedRowsOf(batch));
    rows += batch.rows.length;
    if (isEndless(rows, count)) throw endless(EVERYTHING, rows, count);
  }
  return { all, found };
}

/** Tries a few times to read the undated from the export; `attempt` returns how many there are once it has proven them. */
async function* exportTries(
  api: StreamApi,
  unproven: BodyError,
  tables: readonly SeenRows[],
  attempt: (failures: number) => AsyncGenerator<LineBatch, number | undefined>,
): AsyncGenerator<LineBatch, WindowOutcome> {
  let cause: unknown = unproven;
  for (let failures = 0; failures < MOST_STREAMS; failures++) {
    if (failures > 0) await api.backOff(failures);
    try {
      const undatedRows = yield* attempt(failures);
      if (undatedRows !== undefined) return { window: UNDATED_WINDOW, kind: "proven", undatedRows };
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      if (error instanceof ScrambledError) for (const table of tables) table.forget();
      cause = error;
    }
  }
  return { window: UNDATED_WINDOW, kind: "missing", cause };
}

/**
 * What the list of everything shows past the last row that it counts: nothing, more rows that it counts by now (`grown`), or
 * more than its own total (`too low`). Totals that are capped hide the undated, who are only the difference of two of them.
 */
async function lookPast(api: StreamApi, count: Count): Promise<"end" | "grown" | "too low"> {
  if (count.isTooLow === true) return "too low";
  const rows = count.rows + count.undated;
  const past = await api.rowAt(EVERYTHING, rows + 1);
  if (past?.row === undefined || past.total === null) return "end";
  if (past.total > rows) return "grown";
  const end = await api.rowAt(EVERYTHING, PAST_ALL);
  return end?.row === undefined ? "too low" : "end";
}

/**
 * Reads the undated where totals are too low to tell of them: from the unfiltered export, proven when the list holds no
 * row past as many as that showed. Nobody leaves the unfiltered list, so none of its rows can hide behind one that left.
 */
async function* fromUncounted(rules: RunRules, seen: SeenRows): AsyncGenerator<LineBatch, WindowOutcome> {
  const everything = new SeenRows();
  const lacking = new BodyError("The list holds more rows than the export shows, and its totals are too low");
  return yield* exportTries(rules.api, lacking, [everything, seen], async function* () {
    const { all, found } = yield* readEverything(NOT_COUNTED, rules, everything, seen);
    all.refuseMissingKeys();
    const past = await rules.api.rowAt(EVERYTHING, all.distinct + 1);
    const isProven = !everything.isFull && past !== undefined && past.row === undefined;
    return isProven ? found.undated : undefined;
  });
}

/** The rows without a cursor, or with one that no rule can read. */
function undatedRowsOf({ rows, facts }: Batch): Batch {
  return { rows: rows.filter(({ cursor }) => cursor === null || Number.isNaN(instant(cursor))), facts };
}
