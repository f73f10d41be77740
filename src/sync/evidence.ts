import { DataError } from "../errors.ts";
import type { Lines, RawLine } from "./event.ts";
import { instant } from "./instant.ts";
import type { Ledger } from "./ledger.ts";
import type { Count, Row } from "./ports.ts";
import { addDays, type Day, describe, startOf, type Window } from "./window.ts";

const SEEN = 1;
const UP_TO_ANSWERED = 2;
const BEFORE_ASKED = 4;
const UNDATED = 8;

/** For a pass that no count is held against. */
export const NOT_COUNTED: Count = { rows: 0, undated: 0, known: false, asked: 0, answered: 0 };

export type PassOptions = {
  /** Epoch ms. Rows with a later cursor are evidence but are not emitted: they lie past `end_date`. */
  readonly until?: number;
  /** The number of an earlier pass to compare with. */
  readonly since?: number;
};

/**
 * One reading of a window. `older`, `upTo` and `undated` count distinct keys: with a cursor before the moment the count
 * was asked, up to the moment it was answered, and without a cursor. So neither a repeated row nor one that arrived
 * meanwhile can stand in for a lost one.
 */
export class Pass {
  readonly number: number;
  older = 0;
  upTo = 0;
  undated = 0;
  /** Distinct keys of all kinds. */
  distinct = 0;
  /** Distinct keys that a pass from `since` on had shown too. */
  shared = 0;
  /** Distinct keys with a cursor before *asked*, or without one, that no pass from `since` on had shown. */
  unseen = 0;
  /** The newest cursor that this pass showed and that is not too late to be emitted, as it was spelt. */
  newest: string | undefined;
  readonly #window: Window;
  readonly #count: Count;
  readonly #ledger: Ledger;
  readonly #until: number;
  readonly #since: number;
  readonly #from: number;
  readonly #end: number;
  #newestAt = Number.NEGATIVE_INFINITY;

  constructor(window: Window, count: Count, ledger: Ledger, options: PassOptions = {}) {
    this.#window = window;
    this.#count = count;
    this.#ledger = ledger;
    this.#until = options.until ?? Number.POSITIVE_INFINITY;
    this.#since = options.since ?? Number.POSITIVE_INFINITY;
    const dated = window.kind === "closed" || (window.kind === "open" && !window.undated);
    this.#from = dated ? startOf(window.from) : Number.NEGATIVE_INFINITY;
    this.#end = window.kind === "closed" ? startOf(addDays(window.to, 1)) : Number.POSITIVE_INFINITY;
    this.number = ledger.begin();
  }

  /** Returns the rows' lines that no pass over this ledger has emitted before. */
  admit(rows: readonly Row[]): Lines {
    const lines: RawLine[] = [];
    const moments = rows.map((row) => this.#expect(row));
    let nth = 0;
    for (const row of rows) {
      const at = moments[nth++] ?? Number.NaN;
      const flags = this.#flagsAt(at);
      const noted = this.#ledger.note(flags);
      this.#tally(flags, noted.had, noted.before);
      if (at > this.#until) continue;
      if (noted.fresh) lines.push(row.raw);
      if (
        at > this.#newestAt ||
        (at === this.#newestAt && row.cursor !== null && row.cursor > (this.newest ?? ""))
      ) {
        this.#newestAt = at;
        this.newest = row.cursor ?? undefined;
      }
    }
    return lines;
  }

  /** Tells the ledger of a row, and returns its moment. */
  #expect({ raw, key, cursor }: Row): number {
    const at = cursor === null ? Number.NaN : instant(cursor);
    const identity = cursor === null ? respell(raw) : isItsMoment(cursor, at) ? at : cursor;
    this.#ledger.expect(key === "" ? String(identity) : key, identity);
    return at;
  }

  #flagsAt(at: number): number {
    if (Number.isNaN(at)) return SEEN | UNDATED;
    if (at < this.#from || (at >= this.#end && at < this.#count.asked)) throw outside(this.#window);
    if (at < this.#count.asked) return SEEN | UP_TO_ANSWERED | BEFORE_ASKED;
    return at <= this.#count.answered ? SEEN | UP_TO_ANSWERED : SEEN;
  }

  #tally(flags: number, had: number, before: number): void {
    const news = flags & ~had;
    if (news & BEFORE_ASKED) this.older += 1;
    if (news & UP_TO_ANSWERED) this.upTo += 1;
    if (news & UNDATED) this.undated += 1;
    if (news & SEEN) this.distinct += 1;
    if (news & SEEN && before >= this.#since) this.shared += 1;
    if (news & (BEFORE_ASKED | UNDATED) && before < this.#since) this.unseen += 1;
  }
}

/** `YYYY-MM-DDTHH:MM:SS.mmmZ`, which says no more than its moment; other spellings may be finer. */
const isItsMoment = (cursor: string, at: number): boolean =>
  cursor.length === 24 && cursor.charCodeAt(23) === 90 && !Number.isNaN(at);

/** A row without a cursor is known by its content, however an endpoint spelt it. */
function respell(raw: RawLine): string {
  return JSON.stringify(JSON.parse(raw));
}

/** A row that came in after the count may already stand outside (it was checked again); one that was there before may not. */
function outside(window: Window): DataError {
  return new DataError(
    `Cannot trust the service's date filters: a request for ${describe(window)} brought rows of other days. ` +
      "Tell the service's owner; nothing that is read this way can be proven complete",
  );
}

/** `split`: at yesterday, where closed days end. `halve`: the totals are not what they say. */
export type Verdict = "proven" | "again" | "split" | "halve";

/**
 * Whether a clean pass shows all that was counted before it. Where days are closed the count must be met exactly, since
 * rows only leave them; from yesterday on rows arrive while they are counted, so there it is a lower bound.
 */
export function judge(window: Window, yesterday: Day, count: Count, pass: Pass): Verdict {
  if (window.kind === "undated") return pass.undated >= count.undated ? "proven" : "again";
  if (window.kind === "all") return pass.distinct >= count.rows ? "proven" : "again";
  if (pass.undated < count.undated) return "again";
  if (window.from >= yesterday) return pass.upTo >= count.rows ? "proven" : "again";
  if (pass.older === count.rows) return "proven";
  if (window.kind === "open") return "split";
  return pass.older > count.rows ? "halve" : "again";
}
