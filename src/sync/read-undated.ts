import { DataError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { BEGINNING, instant, OLDEST } from "../base/time.ts";
import type { Pass } from "./pass.ts";
import { type Batch, bounded, type Page } from "./service.ts";
import type { Window } from "./window.ts";

const EVERYTHING: Window = { kind: "open", from: BEGINNING, undated: true };

/** Reads the rows without a date, which no date filter matches, from the export of everything. */
export async function* exportUndated({ count, window, rules }: Pass): AsyncGenerator<Batch> {
  for await (const batch of bounded(rules.service.stream(EVERYTHING, true), window, count))
    yield undatedOf(batch);
}

/** Reads them page by page from each end of the list, where its order puts them, until a page has none or enough are found. */
export async function* readEnds(pass: Pass): AsyncGenerator<Batch> {
  const page = async (number: number): Promise<Page> => {
    const found = await pass.rules.service.page(EVERYTHING, number);
    return { ...found, rows: undatedOf(found.rows) };
  };
  const goesOn = ({ rows }: Page): boolean => rows.length > 0 && pass.latest.undated < pass.count.undated;
  let next = await page(1);
  yield next.rows;
  const last = Math.ceil((next.total ?? 0) / next.size);
  let reached = 1;
  while (reached < last && goesOn(next)) {
    reached += 1;
    next = await page(reached);
    yield next.rows;
  }
  for (let number = last; number > reached && pass.latest.undated < pass.count.undated; number--) {
    next = await page(number);
    yield next.rows;
    if (!goesOn(next)) return;
  }
}

/** Leaves the rows without a cursor, with one that no rule can read, or of a day that no filter names. */
const undatedOf = (rows: Batch): Batch => rows.filter(({ cursor }) => !(instant(cursor ?? "") >= OLDEST));

/**
 * Counts again if the list of everything continues past its total, and fails if the service counts no more then. Totals that are
 * capped hide the people without a date, who are only the difference of two of them.
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
