import { BodyError, ScrambledError } from "../base/errors.ts";
import { BEGINNING, instant, OLDEST } from "../base/time.ts";
import { readBounded } from "./endless.ts";
import type { LineBatch } from "./event.ts";
import { MOST_REMEMBERED, Pass } from "./pass.ts";
import { SeenRows } from "./seen-rows.ts";
import { type Batch, type Count, type Service, untrusted } from "./service.ts";
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
 * @param planned `count`: the run's first, which says that there are none if it shows none, or with `isKnown` how many
 */
export async function* readUndated(
  { count: first, isKnown = false }: Planned,
  rules: RunRules,
  shared?: SeenRows,
): AsyncGenerator<LineBatch, WindowOutcome> {
  const { api, verifyCounts } = rules;
  const isGiven = first?.known === true && (isKnown || first.undated === 0);
  let count = isGiven ? first : await api.count(UNDATED_WINDOW);
  if (verifyCounts && count.known && !isKnown) {
    const total = await totalPast(api, count);
    if (total !== undefined && total <= count.rows + count.undated) {
      const place = count.rows + count.undated + 1;
      return notHad(untrusted(`the list of everything has a row at place ${place}, and counts ${total}`));
    }
    if (total !== undefined) count = await api.count(UNDATED_WINDOW);
  }
  if (count.known && count.undated === 0) return deliveredBy(count);
  const seen = shared ?? new SeenRows(count.undated);
  const found = new Pass(UNDATED_WINDOW, count, seen, rules);
  for (let sweeps = 0; count.known && sweeps < SWEEPS; sweeps++) {
    const isWhole = yield* sweep(api, found, isKnown ? count.undated : Number.POSITIVE_INFINITY);
    if (isKnown && isWhole && found.undated >= count.undated) return deliveredBy(count, found);
    const before = count;
    count = await api.count(UNDATED_WINDOW);
    if (count.undated === 0) return deliveredBy(count);
    if (isWhole && found.undated >= Math.max(before.undated, count.undated)) return deliveredBy(count, found);
  }
  return yield* fromExport(rules, seen, count);
}

/** @param found the pass that showed them; more of them than are remembered are unknown to the next run */
const deliveredBy = ({ undated }: Pick<Count, "undated">, found?: Pass): WindowOutcome => ({
  ...{ window: UNDATED_WINDOW, kind: "proven", undatedRows: undated },
  undatedSeen: undated === 0 ? [] : undated > MOST_REMEMBERED ? undefined : found?.undatedSeen,
});

const notHad = (cause: unknown): WindowOutcome => ({ window: UNDATED_WINDOW, kind: "missing", cause });

/**
 * What the list of everything counts where it shows a row past the last one that was counted; undefined if it shows none.
 * Totals that are capped hide the undated, who are only the difference of two of them.
 */
async function totalPast(api: Service, { rows, undated }: Count): Promise<number | undefined> {
  const past = await api.rowAt(EVERYTHING, rows + undated + 1);
  if (past?.row === undefined || past.total === null) return undefined;
  if (past.total > rows + undated) return past.total;
  const end = await api.rowAt(EVERYTHING, PAST_ALL);
  return end?.row === undefined ? past.total : undefined;
}

/** Page by page from each end of the list until a page holds no undated row, or enough are found. Returns false if a page cannot be parsed. */
async function* sweep(api: Service, found: Pass, enough: number): AsyncGenerator<LineBatch, boolean> {
  try {
    const first = await api.page(EVERYTHING, 1);
    const last = Math.ceil((first.total ?? 0) / first.size);
    const front = undatedRowsOf(first);
    yield found.accept(front);
    let reached = 1;
    for (let more = front.rows.length > 0; more && reached < last && found.undated < enough; ) {
      reached += 1;
      const batch = undatedRowsOf(await api.page(EVERYTHING, reached));
      yield found.accept(batch);
      more = batch.rows.length > 0;
    }
    for (let number = last; number > reached && found.undated < enough; number--) {
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

/** Tries a few times to find as many undated rows in the unfiltered export as are counted. */
async function* fromExport(
  rules: RunRules,
  seen: SeenRows,
  first: Count,
): AsyncGenerator<LineBatch, WindowOutcome> {
  const { api, verifyCounts } = rules;
  let count = first;
  let cause: unknown = new BodyError("Cannot find as many people without a date as the service counts");
  for (let failures = 0; failures < MOST_STREAMS; failures++) {
    if (failures > 0) {
      await api.backOff(failures);
      count = await api.count(UNDATED_WINDOW);
    }
    const found = new Pass(UNDATED_WINDOW, count, seen, rules);
    try {
      const { undated, known } = count;
      const isShown = (): boolean => verifyCounts && known && found.undated >= undated;
      for await (const batch of readBounded(EVERYTHING, count, rules, isShown))
        yield found.accept(undatedRowsOf(batch));
      found.refuseMissingKeys();
      if (!verifyCounts || found.undated >= count.undated)
        return deliveredBy(count.known ? count : found, found);
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      if (error instanceof ScrambledError) seen.forget();
      cause = error;
    }
  }
  return notHad(cause);
}

/** The rows without a cursor, with one that no rule can read, or of a day that no filter names. */
function undatedRowsOf({ rows, facts }: Batch): Batch {
  return { rows: rows.filter(({ cursor }) => !(instant(cursor ?? "") >= OLDEST)), facts };
}
