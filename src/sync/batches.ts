import { BodyError, DataError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { BEGINNING, instant, OLDEST } from "../base/time.ts";
import type { Attempt } from "./ladder.ts";
import type { Pass } from "./pass.ts";
import type { Batch, Page } from "./service.ts";
import { describe, type Window } from "./window.ts";

/** After this number of rows, an attempt stops at twice the counted rows, because its answer may be endless. */
const ENDLESS_ROWS = 10_000;
/** Reading continues after this number of broken pages, so that the rows of the other pages are delivered. */
const MAX_BROKEN_PAGES = 3;
const EVERYTHING: Window = { kind: "open", from: BEGINNING, undated: true };

/** The rows of an attempt. The pass must accept a batch before the next batch is requested. */
export function batchesOf(attempt: Attempt, pass: Pass): AsyncIterable<Batch> {
  const { window, rules } = pass;
  if (attempt === "ends") return readEnds(pass);
  if (attempt === "pages") return bounded(readPages(pass), pass);
  if (window.kind === "undated") return exportUndated(pass);
  return bounded(rules.service.stream(window, true), pass);
}

/** Yields the given batches. @throws BodyError if there are many more rows than the service counts */
async function* bounded(batches: AsyncIterable<Batch>, { window, count }: Pass): AsyncGenerator<Batch> {
  const counted = count.known ? count.rows + count.undated : Number.POSITIVE_INFINITY;
  let shown = 0;
  for await (const batch of batches) {
    yield batch;
    shown += batch.length;
    if (shown <= ENDLESS_ROWS || shown <= 2 * counted) continue;
    throw new BodyError(
      `Cannot read ${describe(window)} to its end: ${plural(shown, "row")} arrived, and the service counts ${plural(counted, "row")}`,
    );
  }
}

/**
 * Reads pages until a page shows no new row. A short page also ends the reading if all counted rows were shown.
 * @throws BodyError after the last page if a page was broken
 */
async function* readPages(pass: Pass): AsyncGenerator<Batch> {
  const { count, latest, rules } = pass;
  const broken: BodyError[] = [];
  let size = rules.service.pageSize;
  for (let number = 1; broken.length <= MAX_BROKEN_PAGES; number++) {
    let page: Page;
    try {
      page = await rules.service.page(pass.window, number);
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      broken.push(error);
      if (count.known && number * size >= pass.counted) break;
      continue;
    }
    const { distinct } = latest;
    size = page.size;
    pass.total = Math.max(pass.total, page.total ?? 0);
    yield page.rows;
    const isShown = count.known && latest.distinct >= count.rows;
    if (latest.distinct === distinct || (isShown && page.rows.length < size)) break;
  }
  if (broken[0] !== undefined) throw broken[0];
}

/** Reads the rows without a date from the export of everything, because no date filter matches these rows. */
async function* exportUndated(pass: Pass): AsyncGenerator<Batch> {
  const batches = bounded(pass.rules.service.stream(EVERYTHING, true), pass);
  for await (const batch of batches) yield undatedOf(batch);
}

/** Reads the counted rows without a date from both ends of the list. Each end is read until a page has only dated rows. */
async function* readEnds(pass: Pass): AsyncGenerator<Batch> {
  const page = async (number: number): Promise<Page> => {
    const found = await pass.rules.service.page(EVERYTHING, number);
    return { ...found, rows: undatedOf(found.rows) };
  };
  const lacksRows = (): boolean => pass.latest.undated < pass.count.undated;
  let next = await page(1);
  yield next.rows;
  const last = Math.ceil((next.total ?? 0) / next.size);
  let reached = 1;
  while (reached < last && next.rows.length > 0 && lacksRows()) {
    reached += 1;
    next = await page(reached);
    yield next.rows;
  }
  for (let number = last; number > reached && lacksRows(); number--) {
    next = await page(number);
    yield next.rows;
    if (next.rows.length === 0) return;
  }
}

/** The rows without a cursor, with an unreadable cursor, or of a day before all date filters. */
const undatedOf = (rows: Batch): Batch => rows.filter(({ cursor }) => !(instant(cursor ?? "") >= OLDEST));

/**
 * Whether the list of everything has no row after its total. If a row is there, the service counts again.
 * A service that limits its totals would hide people without a date. Their number is the difference of two totals.
 */
export async function isCountedToTheEnd(pass: Pass): Promise<boolean> {
  const { service, verifyCounts } = pass.rules;
  const { rows, undated, known } = pass.count;
  if (!verifyCounts || !known) return true;
  const past = await service.rowAt(EVERYTHING, rows + undated + 1);
  if (past?.row === undefined) return true;
  pass.count = await service.count(pass.window);
  if (pass.count.rows + pass.count.undated > rows + undated) return true;
  pass.fail(
    new DataError(
      `Cannot trust the service's totals: it counts ${plural(rows + undated, "row")}, and its list continues past them. ` +
        'Tell the service\'s owner. "verify_counts": false reads without proof',
    ),
  );
  return false;
}
