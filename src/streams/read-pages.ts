import { BodyError } from "../errors.ts";
import { plural } from "../plural.ts";
import type { LineBatch } from "./event.ts";
import { contradiction, Pass, provenBy } from "./proof.ts";
import type { SeenRows } from "./seen-rows.ts";
import { type Count, NOT_COUNTED, type Page, type StreamApi } from "./stream-api.ts";
import { type ClosedWindow, describe, halves, type Window } from "./window.ts";
import type { Attempt, Planned, RunRules } from "./window-result.ts";

const MOST_WALKS = 5;
/** A walk goes on past this number of broken pages, to deliver the rows of the others. */
const MOST_BROKEN_PAGES = 3;

/**
 * Reads a window page by page, the last resort for one that no stream could close. A walk over the pages proves a closed
 * window if it shows exactly what was counted, and an open one if a second walk shows nothing that the first lacked.
 * It never closes a window with a shortfall.
 * @throws DataError if the pages show more rows than the totals say
 */
export async function* readPages(
  window: Window,
  clears: Planned["clears"],
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  switch (window.kind) {
    case "closed":
      return yield* walkClosed(window, clears, rules, seen);
    case "all":
      return yield* walkAll(window, rules, seen);
    default:
      return yield* walkOpen(window, rules, seen);
  }
}

async function* walkClosed(
  window: ClosedWindow,
  clears: Planned["clears"],
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  const { api, verifyCounts, yesterday } = rules;
  let count = await api.count(window);
  let shownInAll = 0;
  let fault = "";
  seen.beginGroup();
  for (let walks = 0; walks < MOST_WALKS; walks++) {
    const pass = new Pass(window, count, seen, rules);
    const wrong = yield* walkBackwards(window, api, pass, count);
    if (!verifyCounts && wrong === undefined) return provenBy(window, pass, count);
    shownInAll += pass.added;
    const shown = pass.beforeCount;
    if (shownInAll === count.rows && count.isTooLow !== true) return provenBy(window, pass, count);
    const after = await api.count(window);
    if (after.isTooLow === true) throw contradiction(window, shown, count, after);
    if (shownInAll > count.rows && shownInAll > after.rows) throw contradiction(window, shown, count, after);
    if (wrong === undefined && after.rows < count.rows && shown >= after.rows) {
      return clears === "again"
        ? provenBy(window, pass, count)
        : { window, kind: "again", newest: pass.newest };
    }
    fault = wrong ?? `they show ${shown} of ${plural(count.rows, "row")}`;
    if (after.rows === count.rows && count.isTooLow !== true) continue;
    // The walks that were made under one count are proven together; another count begins again.
    count = after;
    shownInAll = 0;
    seen.beginGroup();
  }
  const parts = halves(window, yesterday);
  if (parts !== undefined) return { kind: "split", parts, trustsZero: true };
  return { kind: "failed", cause: unprovenPages(window, fault) };
}

/**
 * From the last page to the first, so that rows that leave for today shift no unread row past us.
 * Returns what is wrong with the walk, undefined if nothing is.
 */
async function* walkBackwards(
  window: Window,
  api: StreamApi,
  pass: Pass,
  count: Count,
): AsyncGenerator<LineBatch, string | undefined> {
  const pages = new Pages(window, api);
  const first = await pages.read(1);
  const size = first?.size ?? 1000;
  const counted = Math.max(1, Math.ceil(count.rows / size));
  const last = await pages.lastFrom(counted);
  pages.forget();
  for (let number = last ?? counted; number >= 1 && !pages.isHopeless; number--) {
    const page = await pages.read(number);
    if (page === undefined) continue;
    if (number < (last ?? counted) && page.rows.length < page.size)
      pages.fault ??= "a page in the middle is short";
    yield pass.accept(page);
  }
  pass.refuseMissingKeys();
  return last === undefined ? "they do not end where the count says" : pages.fault;
}

/** From the first page on, again and again, until a walk shows nothing that the ones before lacked. */
async function* walkOpen(
  window: Window,
  rules: RunRules,
  seen: SeenRows,
): AsyncGenerator<LineBatch, Attempt> {
  const { api, verifyCounts } = rules;
  const first = await api.count(window);
  let before = first;
  let isShown = false;
  let newest: string | undefined;
  let fault = "each walk shows rows that the ones before lacked";
  seen.beginGroup();
  for (let walks = 0; walks < MOST_WALKS; walks++) {
    const pass = new Pass(window, first, seen, rules);
    const wrong = yield* walkForwards(window, api, pass, before.rows + before.undated);
    newest = pass.newest ?? newest;
    const after = await api.count(window);
    const isShort =
      verifyCounts &&
      (pass.dated < Math.min(before.rows, after.rows) ||
        pass.undated < Math.min(before.undated, after.undated));
    before = after;
    if (wrong !== undefined) fault = wrong;
    else if (isShort) fault = `they show ${plural(pass.distinct, "row")}, fewer than were counted`;
    else if (isShown && pass.added === 0) return { ...provenBy(window, pass, after), newest };
    else isShown = true;
  }
  return { kind: "failed", cause: unprovenPages(window, fault) };
}

/** Everything, of a stream without days: walks to the end of the pages, until they have shown as many rows as there are. */
async function* walkAll(window: Window, rules: RunRules, seen: SeenRows): AsyncGenerator<LineBatch, Attempt> {
  let total = 0;
  let shownInAll = 0;
  seen.beginGroup();
  for (let walks = 0; ; walks++) {
    const pass = new Pass(window, NOT_COUNTED, seen, rules);
    const walk = yield* walkToEnd(window, rules.api, pass);
    if (walk.fault !== undefined) return { kind: "failed", cause: unprovenPages(window, walk.fault) };
    pass.refuseMissingKeys();
    // The walks over a list of one length are proven together: it may order its rows at random.
    shownInAll = walk.total === total ? shownInAll + pass.added : pass.distinct;
    total = walk.total;
    if (shownInAll >= total || !rules.verifyCounts) return provenBy(window, pass, NOT_COUNTED);
    if (walks + 1 < MOST_WALKS && pass.added > 0) continue;
    return {
      kind: "failed",
      cause: unprovenPages(window, `they show ${shownInAll} of ${plural(total, "row")}`),
    };
  }
}

/** From the first page on to the first without a new row: the end, also of a list that shows all of it each time. */
async function* walkToEnd(
  window: Window,
  api: StreamApi,
  pass: Pass,
): AsyncGenerator<LineBatch, { readonly total: number; readonly fault: string | undefined }> {
  const pages = new Pages(window, api);
  for (let number = 1, total = 0; ; number++) {
    const page = await pages.read(number);
    if (page === undefined) return { total, fault: pages.fault };
    const before = pass.distinct;
    yield pass.accept(page);
    total = Math.max(total, page.total ?? 0);
    if (pass.distinct === before) return { total, fault: undefined };
  }
}

async function* walkForwards(
  window: Window,
  api: StreamApi,
  pass: Pass,
  rows: number,
): AsyncGenerator<LineBatch, string | undefined> {
  const pages = new Pages(window, api);
  for (let number = 1; !pages.isHopeless; number++) {
    const page = await pages.read(number);
    if (page === undefined) continue;
    if (page.rows.length === 0) break;
    if (number > 2 * Math.ceil(rows / page.size) + 1) return "there are twice as many as were counted";
    if (pages.shortAt !== undefined && pages.shortAt < number)
      pages.fault ??= "a page in the middle is short";
    if (page.rows.length < page.size) pages.shortAt = number;
    yield pass.accept(page);
  }
  pass.refuseMissingKeys();
  return pages.fault;
}

/** The pages of one walk, and what is wrong with them. */
class Pages {
  /** The first thing that is wrong. */
  fault: string | undefined;
  /** The number of a page with fewer rows than its size. */
  shortAt: number | undefined;
  readonly #window: Window;
  readonly #api: StreamApi;
  #neighbour = "";
  #broken = 0;

  constructor(window: Window, api: StreamApi) {
    this.#window = window;
    this.#api = api;
  }

  /** Whether going on would bring nothing. */
  get isHopeless(): boolean {
    return this.#broken > MOST_BROKEN_PAGES;
  }

  /** A page; undefined if it cannot be parsed. */
  async read(number: number): Promise<Page | undefined> {
    try {
      const page = await this.#api.page(this.#window, number);
      const keys = JSON.stringify(page.rows.map(({ raw }) => raw));
      if (page.rows.length > 0 && keys === this.#neighbour) this.#breakOff("a page repeats its neighbour");
      this.#neighbour = keys;
      return page;
    } catch (error) {
      if (!(error instanceof BodyError)) throw error;
      this.#broken += 1;
      this.fault ??= error.message;
      return undefined;
    }
  }

  /** The number of the last page that holds rows, looked for forwards from where the count puts it; undefined if there is no end. */
  async lastFrom(counted: number): Promise<number | undefined> {
    for (let number = counted + 1; number <= counted * 2 + 1 && !this.isHopeless; number++) {
      const page = await this.read(number);
      if (page !== undefined && page.rows.length === 0) return number - 1;
      if (page === undefined) return undefined;
    }
    return undefined;
  }

  /** What comes next is no neighbour of what came before. */
  forget(): void {
    this.#neighbour = "";
    this.#broken = 0;
  }

  #breakOff(fault: string): void {
    this.fault ??= fault;
    this.#broken = MOST_BROKEN_PAGES + 1;
  }
}

function unprovenPages(window: Window, why: string): BodyError {
  return new BodyError(`Cannot prove ${describe(window)} complete by its pages: ${why}`);
}
