import { BodyError, UnmadeError } from "../base/errors.ts";
import { plural } from "../base/text.ts";
import type { LineBatch } from "./event.ts";
import { contradiction, isProvenByRows, numbersOf, Pass, provenBy, refuseContradiction } from "./pass.ts";
import type { SeenRows } from "./seen-rows.ts";
import { type Count, NOT_COUNTED, type Page } from "./service.ts";
import { describe, halves, type Window } from "./window.ts";
import type { Attempt, FailedAttempt, Planned, RunRules } from "./window-result.ts";

const MOST_WALKS = 5;
/** A walk goes on past this number of broken pages, to deliver the rows of the others. */
const MOST_BROKEN_PAGES = 3;
/** A walk ends at this number of empty pages in a row, which are short: what the total says beyond them is not there. */
const MOST_EMPTY_PAGES = 3;

/** The walks over a window's pages, and what is known between two of them. */
type Walks = {
  readonly window: Window;
  readonly clears: Planned["clears"];
  readonly rules: RunRules;
  readonly seen: SeenRows;
  /** What the next walk is held against. */
  count: Count;
  /** How many keys the walks under this count have shown together. */
  shown: number;
  /** Whether a walk has shown as many rows as were counted. */
  isShown: boolean;
  /** Why each walk is no proof. */
  readonly failed: FailedAttempt[];
};

/**
 * Reads a window page by page, the last resort for one that no stream could close. A walk over the pages proves a closed
 * window if it shows exactly what was counted, and an open one if a second walk shows nothing that the first lacked.
 * It never closes a window with a shortfall.
 * @param count the window's, taken just now
 * @throws DataError if the pages show more rows than the totals say, by the same numbers in each walk
 */
export async function* readPages(
  window: Window,
  clears: Planned["clears"],
  rules: RunRules,
  seen: SeenRows,
  count: Count,
): AsyncGenerator<LineBatch, Attempt> {
  const first = window.kind === "all" ? NOT_COUNTED : count;
  const walks: Walks = {
    ...{ window, clears, rules, seen },
    ...{ count: first, shown: 0, isShown: false, failed: [] },
  };
  const isClosed = window.kind === "closed";
  const isCounted = first.known && rules.verifyCounts;
  const prove = isClosed ? proveClosed : window.kind === "all" ? proveAll : proveOpen;
  seen.beginGroup();
  for (let nth = 0; nth < MOST_WALKS; nth++) {
    const { rows, undated } = walks.count;
    const pass = new Pass(window, isClosed ? walks.count : first, seen, rules);
    const walk = new Walk(window, rules, pass, isCounted);
    yield* isClosed ? walk.backwards(rows) : walk.forwards(rows + undated);
    const attempt = await prove(walks, pass, walk);
    if (attempt !== undefined) return attempt;
    // What showed the same rows under the same counts would do so again.
    const isRepeated = seen.isRepeated && walks.failed.at(-1)?.numbers !== undefined;
    if (walk.isUnanswered || isRepeated) break;
    await rules.api.backOff(nth + 1);
  }
  refuseContradiction(walks.failed);
  const parts = isClosed ? halves(window, rules.yesterday) : undefined;
  return parts === undefined ? lastOf(walks) : { kind: "split", parts };
}

/** How the attempt ends; undefined: another walk may prove it. Proven by what the walks under one count show together, because a list may order equal dates at random. */
async function proveClosed(walks: Walks, pass: Pass, { fault }: Walk): Promise<Attempt | undefined> {
  const { window, clears, rules, seen, count } = walks;
  const { beforeCount: shown, newest } = pass;
  walks.shown += pass.added;
  const isClean = fault === undefined;
  if (walks.shown === count.rows || (isClean && !rules.verifyCounts)) return provenBy(window, pass, count);
  if (isClean && isProvenByRows(window, count.rows, seen, rules)) return provenBy(window, pass, count);
  const after = await rules.api.count(window);
  const isTooMany = walks.shown > Math.max(count.rows, after.rows);
  if (isClean && !isTooMany && after.rows < count.rows && shown >= after.rows) {
    return clears === "again" ? provenBy(window, pass, count) : { window, kind: "again", newest };
  }
  const numbers = isClean ? numbersOf(walks.shown, count, after) : undefined;
  const short = fault ?? `they show ${shown} of ${plural(count.rows, "row")}`;
  const cause =
    isTooMany && rules.verifyCounts
      ? contradiction(window, walks.shown, count, after)
      : unproven(window, short);
  walks.failed.push({ kind: "failed", cause, numbers });
  if (isTooMany || after.rows !== count.rows) {
    walks.count = after;
    walks.shown = 0;
    seen.beginGroup();
  }
  return undefined;
}

/** Proven by a walk that shows nothing that the ones before lacked, one of which showed all that was counted. */
async function proveOpen(walks: Walks, pass: Pass, { fault }: Walk): Promise<Attempt | undefined> {
  const { window, rules, count } = walks;
  const after = await rules.api.count(window);
  walks.count = after;
  const isShort =
    pass.dated < Math.min(count.rows, after.rows) || pass.undated < Math.min(count.undated, after.undated);
  let why = fault ?? "each walk shows rows that the ones before lacked";
  if (fault === undefined && isShort && rules.verifyCounts) {
    why = `they show ${plural(pass.distinct, "row")}, fewer than were counted`;
  } else if (fault === undefined) {
    if (walks.isShown && pass.added === 0) return provenBy(window, pass, after);
    walks.isShown = true;
  }
  walks.failed.push({ kind: "failed", cause: unproven(window, why) });
  return undefined;
}

/** Everything, of a stream without days: proven by what the walks over a list of one length show together. */
async function proveAll(walks: Walks, pass: Pass, { fault, total }: Walk): Promise<Attempt | undefined> {
  const { window, rules, seen, count } = walks;
  walks.shown = total === count.rows ? walks.shown + pass.added : pass.distinct;
  walks.count = { ...NOT_COUNTED, rows: total };
  const short = fault ?? `they show ${walks.shown} of ${plural(total, "row")}`;
  walks.failed.push({ kind: "failed", cause: unproven(window, short) });
  if (fault !== undefined) return lastOf(walks);
  const isProven = walks.shown >= total || !rules.verifyCounts || isProvenByRows(window, total, seen, rules);
  if (isProven) return provenBy(window, pass, NOT_COUNTED);
  return pass.added === 0 ? lastOf(walks) : undefined;
}

/** One walk over the pages of a window, and what is wrong with it. */
class Walk {
  /** The first thing that is wrong. */
  fault: string | undefined;
  /** The most rows that a page says there are. */
  total = 0;
  /** Whether a page failed after all its tries: another walk would meet the same. */
  isUnanswered = false;
  readonly #window: Window;
  readonly #rules: RunRules;
  readonly #pass: Pass;
  /** Whether a count is held against it. */
  readonly #isCounted: boolean;
  #neighbour = "";
  #broken = 0;

  constructor(window: Window, rules: RunRules, pass: Pass, isCounted: boolean) {
    this.#window = window;
    this.#rules = rules;
    this.#pass = pass;
    this.#isCounted = isCounted;
  }

  /** From the last page to the first, so that rows that leave for today shift no unread row past us. */
  async *backwards(rows: number): AsyncGenerator<LineBatch> {
    const first = await this.#read(1);
    const counted = Math.max(1, Math.ceil(rows / (first?.size ?? 1000)));
    const { last, beyond } = await this.#lastFrom(counted, first);
    // The page that comes next is no neighbour of the one before.
    this.#neighbour = "";
    this.#broken = 0;
    let empty = 0;
    for (let number = last ?? counted; number >= 1 && !this.#isHopeless; number--) {
      const page = (last === 1 ? first : undefined) ?? (await this.#read(number));
      // Lists that cannot be asked so deep may show what stands further up.
      if (page === undefined && this.isUnanswered) number = Math.ceil(number / 2);
      if (page === undefined) continue;
      empty = page.rows.length === 0 ? empty + 1 : 0;
      if (empty === MOST_EMPTY_PAGES) return;
      if (number < (last ?? counted)) this.#refuseShort(page);
      yield this.#pass.accept(page);
    }
    // Past the end of a list that turns back stand rows that were shown; others say that the total is too low.
    if (beyond !== undefined) yield this.#pass.accept(beyond);
    this.#pass.refuseMissingKeys();
    if (last === undefined) this.fault = "they do not end where the count says";
  }

  /**
   * From the first page on to the first empty one. A list that no count is held against ends with the first page without a
   * new row, which is the end also of one that shows all of it each time.
   */
  async *forwards(rows: number): AsyncGenerator<LineBatch> {
    const isAll = this.#window.kind === "all";
    let before: Page | undefined;
    for (let number = 1; !this.#isHopeless; number++) {
      const page = await this.#read(number);
      if (page === undefined) continue;
      if (page.rows.length === 0) break;
      if (number > this.#reach(Math.ceil(rows / page.size))) {
        this.fault = "there are twice as many as were counted";
        return;
      }
      if (!isAll && before !== undefined) this.#refuseShort(before);
      before = page;
      const { distinct } = this.#pass;
      yield this.#pass.accept(page);
      if (!this.#isCounted && this.#pass.distinct === distinct) break;
    }
    this.#pass.refuseMissingKeys();
  }

  /** How many pages a list may have where its count says so many. As many as it likes if no count is held against it. */
  #reach(counted: number): number {
    return this.#isCounted ? 2 * counted + 1 : Number.POSITIVE_INFINITY;
  }

  /** Whether going on would bring nothing. */
  get #isHopeless(): boolean {
    return this.#broken > MOST_BROKEN_PAGES;
  }

  /** A page; undefined if it cannot be had or parsed. */
  async #read(number: number): Promise<Page | undefined> {
    try {
      const page = await this.#rules.api.page(this.#window, number);
      this.total = Math.max(this.total, page.total ?? 0);
      const rows = page.rows.map(({ raw }) => raw).join("\n");
      if (rows !== "" && rows === this.#neighbour && this.#window.kind !== "all") {
        this.fault ??= "a page repeats its neighbour";
        this.#broken = MOST_BROKEN_PAGES + 1;
      }
      this.#neighbour = rows;
      return page;
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      this.isUnanswered ||= error instanceof UnmadeError;
      this.#broken += 1;
      this.fault ??= error.message;
      return undefined;
    }
  }

  /**
   * `last`: the number of the last page that holds rows, looked for forwards from where the count puts it: an empty page comes
   * after it, or, where no count is held against the list, the first one again. `beyond`: without an end, the first page beyond
   * the count.
   */
  async #lastFrom(counted: number, first?: Page): Promise<{ last?: number; beyond?: Page | undefined }> {
    let beyond: Page | undefined;
    for (let number = counted + 1; number <= this.#reach(counted) && !this.#isHopeless; number++) {
      const page = await this.#read(number);
      if (page === undefined) break;
      const isAgain = !this.#isCounted && page.rows[0]?.raw === first?.rows[0]?.raw;
      if (page.rows.length === 0 || isAgain) return { last: number - 1 };
      beyond ??= page;
    }
    return { beyond };
  }

  #refuseShort({ rows, size }: Page): void {
    if (rows.length < size) this.fault ??= "a page in the middle is short";
  }
}

const unproven = (window: Window, fault: string): BodyError =>
  new BodyError(`Cannot prove ${describe(window)} complete by its pages: ${fault}`);

/** How the last walk failed. Numbers count if all walks showed the same. */
function lastOf({ failed, window }: Walks): FailedAttempt {
  const last = failed.at(-1) ?? { kind: "failed", cause: unproven(window, "there are none") };
  return failed.every(({ numbers }) => numbers === last.numbers) ? last : { ...last, numbers: undefined };
}
