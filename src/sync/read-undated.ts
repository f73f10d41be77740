import { BodyError, DataError, ScrambledError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import { BEGINNING, instant, OLDEST } from "../base/time.ts";
import type { Outcome, Planned, RunRules, WindowEvent } from "./outcome.ts";
import { Pass } from "./pass.ts";
import type { SeenRows } from "./seen-rows.ts";
import { type Batch, bounded, type Count, freshCount, type Service } from "./service.ts";
import type { Window } from "./window.ts";

const UNDATED: Window = { kind: "undated" };
const EVERYTHING: Window = { kind: "open", from: BEGINNING, undated: true };
const SWEEPS = 2;
const EXPORTS = 3;

/**
 * Reads the rows without a date, which no date filter matches: from the ends of the unfiltered list, where its order puts
 * them, and from the unfiltered export if these lack some. Rows that cannot be proven are missing.
 */
export async function* readUndated(
  planned: Planned,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<WindowEvent> {
  const { service, verifyCounts } = rules;
  const began = service.now();
  const first = await freshCount(planned, service);
  const pass = new Pass(UNDATED, first, rules, seen);
  const end = (kind: Outcome["kind"], undated: number, more: Partial<Outcome> = {}): WindowEvent => {
    const seconds = Math.max(0, service.now() - began) / 1_000;
    return { kind: "outcome", outcome: { kind, ...pass.facts, undated, seconds, ...more } };
  };
  let count: Count | undefined = first;
  if (verifyCounts && first.known) count = await countPastEnd(service, first);
  if (count === undefined) return yield end("missing", first.undated, { cause: tooLow(first) });
  if (count.known && count.undated === 0) return yield end("proven", 0);
  let cause: unknown = new BodyError("Cannot find as many people without a date as the service counts");
  let isRead = false;
  for (let nth = count.known ? 0 : SWEEPS; nth < SWEEPS + EXPORTS; nth++) {
    const isSweep = nth < SWEEPS;
    if (pass.passes > 0) await service.backOff(pass.passes);
    pass.begin(count, false);
    let isClean = false;
    try {
      const batches = isSweep
        ? sweep(service, pass)
        : bounded(service.stream(EVERYTHING, true), EVERYTHING, count);
      for await (const batch of batches) yield { kind: "rows", batch: pass.accept(undatedRowsOf(batch)) };
      pass.refuseMissingKeys();
      isClean = true;
      isRead = true;
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      if (error instanceof ScrambledError) pass.forget();
      cause = error;
    }
    const isExact = count.known && pass.undated === count.undated;
    const isBelieved = !isSweep && !verifyCounts;
    if (isClean && (isExact || isBelieved)) return yield end("proven", pass.undated);
    const after = await service.count(UNDATED);
    if (after.known && after.undated === 0) return yield end("proven", 0);
    if (isClean && pass.undated >= Math.max(count.undated, after.undated))
      return yield end("proven", after.undated);
    count = after;
  }
  yield end("missing", count.undated, { isRead, cause });
}

/**
 * Returns the count again if the list of everything goes on past it, undefined if the service counts no more then. Totals
 * that are capped hide the undated, who are only the difference of two of them.
 */
async function countPastEnd(service: Service, count: Count): Promise<Count | undefined> {
  const past = await service.rowAt(EVERYTHING, count.rows + count.undated + 1);
  if (past?.row === undefined) return count;
  const again = await service.count(UNDATED);
  return again.rows + again.undated > count.rows + count.undated ? again : undefined;
}

const tooLow = ({ rows, undated }: Count): DataError =>
  new DataError(
    `Cannot trust the service's totals: it counts ${plural(rows + undated, "row")}, and its list goes on past them. ` +
      'Tell the service\'s owner. "verify_counts": false reads without proof',
  );

/** Page by page from each end of the list until a page has no undated row, or enough are found. */
async function* sweep(service: Service, pass: Pass): AsyncGenerator<Batch> {
  const first = await service.page(EVERYTHING, 1);
  const last = Math.ceil((first.total ?? 0) / first.size);
  let reached = 1;
  const goesOn = (batch: Batch): boolean =>
    undatedRowsOf(batch).rows.length > 0 && pass.undated < pass.count.undated;
  let page = first;
  yield page;
  while (reached < last && goesOn(page)) {
    reached += 1;
    page = await service.page(EVERYTHING, reached);
    yield page;
  }
  for (let number = last; number > reached && pass.undated < pass.count.undated; number--) {
    page = await service.page(EVERYTHING, number);
    yield page;
    if (!goesOn(page)) return;
  }
}

/** The rows without a cursor, with one that no rule can read, or of a day that no filter names. */
function undatedRowsOf({ rows, facts }: Batch): Batch {
  return { rows: rows.filter(({ cursor }) => !(instant(cursor ?? "") >= OLDEST)), facts };
}
