import { BodyError, DataError } from "../errors.ts";
import type { Lines } from "./event.ts";
import { Pass } from "./evidence.ts";
import type { Ledger } from "./ledger.ts";
import type { Count, Page } from "./ports.ts";
import type { Run } from "./reading.ts";
import { describe, type Window } from "./window.ts";

const MOST_WALKS = 5;
const MOST_SHORT_WALKS = 3;

export type Walked = {
  readonly proven: boolean;
  readonly newest?: string | undefined;
  readonly cause?: unknown;
};

/**
 * Reads a window page by page, the last resort for one that no stream could close. Proven when every page is full but
 * the last and the page after it is empty, and what was shown agrees with the counts around the walk (closed days) or
 * with a second walk (days that still grow).
 * @param clean the pass right before, if it was clean: its keys may excuse a page that is short in the middle
 * @throws DataError if the totals contradict the pages
 */
export async function* walk(
  window: Window,
  run: Run,
  ledger: Ledger,
  clean?: Pass,
): AsyncGenerator<Lines, Walked> {
  return window.kind === "closed"
    ? yield* walkClosed(window, run, ledger, clean)
    : yield* walkOpen(window, run, ledger);
}

/** From the last page to the first, so that rows leaving for today shift no unread row past us. */
async function* walkClosed(
  window: Window,
  run: Run,
  ledger: Ledger,
  clean: Pass | undefined,
): AsyncGenerator<Lines, Walked> {
  const { ports } = run;
  const before = await ports.count(window);
  const pass = new Pass(window, before, ledger, { until: run.until, ...(clean && { since: clean.number }) });
  const first = await ports.page(window, 1);
  const counted = Math.max(1, Math.ceil(before.rows / first.size));
  const last = await lastPage(window, run, counted);
  if (last === undefined) return unproven(window, "its pages do not end where the count says");
  const pages = new Pages();
  for (let number = last; number >= 1; number--) {
    const page = await ports.page(window, number);
    if (!pages.follows(number, page)) return unproven(window, "a page repeats its neighbour");
    yield pass.admit(page.rows);
  }
  const sameAsStream =
    clean !== undefined && pass.shared === pass.distinct && pass.distinct === clean.distinct;
  if (pages.shortBefore(last) && !sameAsStream) return unproven(window, "a page in the middle is short");
  const after = await ports.count(window);
  compareWithCounts(window, run, pass, before, after);
  return { proven: true, newest: pass.newest };
}

/** The number of the last page that holds rows, looked for forwards from where the count puts it. */
async function lastPage(window: Window, run: Run, counted: number): Promise<number | undefined> {
  for (let number = counted + 1; number <= counted * 2 + 1; number++) {
    const page = await run.ports.page(window, number);
    if (page.rows.length === 0) return number - 1;
  }
  return undefined;
}

function compareWithCounts(window: Window, run: Run, pass: Pass, before: Count, after: Count): void {
  if (!run.verify) return;
  if (pass.distinct > before.rows) throw contradiction(window, pass.distinct, before, after);
  if (pass.distinct >= after.rows) {
    run.shortWalks = 0;
    return;
  }
  run.shortWalks += 1;
  if (run.shortWalks >= MOST_SHORT_WALKS) throw contradiction(window, pass.distinct, before, after);
  run.ports.note({
    kind: "log",
    level: "warn",
    text: `The pages of ${describe(window)} show ${pass.distinct} rows, fewer than the ${after.rows} counted after them`,
  });
}

function contradiction(window: Window, shown: number, before: Count, after: Count): DataError {
  return new DataError(
    `Cannot trust the service's totals: the pages of ${describe(window)} show ${shown} rows, the counts before and ` +
      `after them say ${before.rows} and ${after.rows}. Tell the service's owner; "verify_counts": false reads without proof`,
  );
}

/** From the first page on, again and again, until a walk shows nothing that an earlier one lacked. */
async function* walkOpen(window: Window, run: Run, ledger: Ledger): AsyncGenerator<Lines, Walked> {
  const count = await run.ports.count(window);
  let since: number | undefined;
  let newest: string | undefined;
  for (let walks = 1; walks <= MOST_WALKS; walks++) {
    const pass: Pass = new Pass(window, count, ledger, {
      until: run.until,
      ...(since !== undefined && { since }),
    });
    const fault = yield* walkForwards(window, run, pass, count);
    newest = pass.newest ?? newest;
    if (fault !== undefined) return unproven(window, fault);
    if (since !== undefined && pass.unseen === 0) return { proven: true, newest };
    since ??= pass.number;
  }
  return unproven(window, `each of ${MOST_WALKS} walks shows rows that the ones before lacked`);
}

/** Returns what is wrong with the walk, if anything is. */
async function* walkForwards(
  window: Window,
  run: Run,
  pass: Pass,
  count: Count,
): AsyncGenerator<Lines, string | undefined> {
  const pages = new Pages();
  const rows = count.rows + count.undated;
  for (let number = 1; ; number++) {
    const page = await run.ports.page(window, number);
    if (page.rows.length === 0) {
      return pages.shortBefore(number - 1) ? "a page in the middle is short" : undefined;
    }
    if (!pages.follows(number, page)) return "a page repeats its neighbour";
    if (number > 2 * Math.ceil(rows / page.size) + 1) return "there are twice as many pages as were counted";
    yield pass.admit(page.rows);
  }
}

/** What a walk remembers of its pages. */
class Pages {
  #neighbour = "";
  readonly #short: number[] = [];

  /** False if the page shows the same rows as the one before it. */
  follows(number: number, { rows, size }: Page): boolean {
    const keys = JSON.stringify(rows.map(({ key }) => key));
    const repeats = rows.length > 0 && keys === this.#neighbour;
    this.#neighbour = keys;
    if (rows.length < size) this.#short.push(number);
    return !repeats;
  }

  shortBefore(last: number): boolean {
    return this.#short.some((number) => number < last);
  }
}

function unproven(window: Window, why: string): Walked {
  return { proven: false, cause: new BodyError(`The pages of ${describe(window)} prove nothing: ${why}`) };
}
