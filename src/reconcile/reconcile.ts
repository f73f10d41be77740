import { DataError } from "../base/errors.ts";
import { type JsonObject, objectOf, tryParseJson } from "../base/json.ts";
import { fromLatin1, plural, toLatin1 } from "../base/text.ts";
import {
  addDays,
  BEGINNING,
  type Day,
  dayOf,
  earlier,
  instant,
  LAST,
  later,
  OLDEST,
  startOf,
} from "../base/time.ts";
import { csvCell } from "../output/files/csv.ts";
import { type Coverage, withStatus } from "../sync/coverage.ts";
import type { Event, RawLine } from "../sync/event.ts";
import { contentOf, undatedDigest } from "../sync/pass.ts";
import type { Service } from "../sync/service.ts";
import { NEW_STATE, type RowState } from "../sync/state.ts";
import { type Differences, differences, type Numbers } from "./by-counts.ts";
import {
  AS_NUMBER,
  AS_TEXT,
  HELD,
  KeyTable,
  MOVED,
  type Moment,
  NAMED,
  NO_MOMENT,
  SHOWN,
} from "./key-table.ts";
import type { DayDifference, Lists, Report, Results } from "./results.ts";
import { type TableForm, tableRows, unitOf } from "./table-file.ts";

/** Which rows of the service are read: those of some days, or all that a state lacks. */
type Look = {
  readonly from?: Day;
  readonly to?: Day;
  readonly state?: RowState;
  /** Without the filters of the config. */
  readonly everyone?: boolean;
};

/** What is asked, and whom. */
export type Question = {
  readonly stream: string;
  readonly table: string;
  /** A `cursor` of null: rows have no date. */
  readonly form: TableForm;
  /** What the syncs so far have read; undefined: everything, or by counts up to the newest row of the table. */
  readonly state: RowState | undefined;
  readonly startDate: Day | null;
  readonly endDate: Day | null;
  /** Whether the config restricts whom it reads. */
  readonly isFiltered: boolean;
  readonly mode: Report["mode"];
  /** How many keys may be gone without being too many; undefined: 100, or 1 % of the table. */
  readonly mostGone: number | undefined;
  readonly api: Pick<Service, "count" | "now">;
  /** The events of a read; suppressed rows are among its lines, as the service spells them. */
  readonly read: (look: Look) => AsyncIterable<Event>;
  readonly emit: (event: Event) => Promise<void>;
  /** How a key, and how a row, leaves under the privacy settings. */
  readonly keyOf: (key: string) => string;
  readonly leave: (line: RawLine) => string;
  readonly isSuppressed: (row: JsonObject) => boolean;
  readonly requests: () => number;
  /** What takes the results; undefined: nothing. */
  readonly results: Results | undefined;
};

/** What a row of the service is to the table. */
type Standing = "same" | "lost" | "stale" | "later" | "new" | "suppressed";

export const MOST_REQUESTS = 300;
/** How often who moves while everything is read is looked for. */
const MOST_ROUNDS = 8;

/**
 * Compares a table of a warehouse with the service. Throws ConfigError for a table that cannot be read, and DataError for
 * days that cannot be proven and for another table.
 */
export async function compare(asked: Question): Promise<Report> {
  const table = new KeyTable();
  for await (const rows of tableRows(asked.table, asked.form)) {
    for (const { key, moment } of rows) {
      table.put(key, moment);
      if (asked.isSuppressed({ [asked.form.key]: key })) table.mark(key, HELD);
    }
  }
  const comparison = new Comparison(asked, table);
  return asked.mode === "full" ? await comparison.keyByKey() : await comparison.byCounts();
}

class Comparison {
  readonly #asked: Question;
  readonly #table: KeyTable;
  readonly #began: number;
  /** The newest moment whose rows the syncs must have brought. */
  readonly #until: number;
  readonly #found: Record<Standing, number> = { same: 0, lost: 0, stale: 0, later: 0, new: 0, suppressed: 0 };
  readonly #days: Record<string, DayDifference> = {};
  #rowsRead = 0;
  /** Of the last checkpoint. */
  #state: RowState = NEW_STATE;

  constructor(asked: Question, table: KeyTable) {
    this.#asked = asked;
    this.#table = table;
    this.#began = asked.api.now();
    const { state, mode } = asked;
    const newest = state === undefined ? table.newest : instant(state.discoveredAt ?? "");
    const isEverything = state === undefined && mode === "full";
    this.#until = isEverything ? LAST : Number.isFinite(newest) ? newest : OLDEST - 1;
  }

  async keyByKey(): Promise<Report> {
    const { isFiltered, mostGone, form } = this.#asked;
    await this.#read({}, true);
    this.#refuseStranger();
    const unshown = (): number => this.#keysWith(isGone);
    if (isFiltered && unshown() > 0) await this.#read({ everyone: true });
    // Whoever was not shown and is there has moved meanwhile: to today, or to those without a date. Days that people left
    // while they were read prove nothing before they were read in peace.
    for (let round = 1; unshown() > 0 && form.cursor !== null; round++) {
      const [before, { days }] = [unshown(), this.#state];
      const known = days.filter(({ status }) => status !== "again");
      await this.#read({
        everyone: true,
        state: { ...this.#state, days: known, undated: null, checked: null },
      });
      if (unshown() === before && withStatus(this.#state.days, "again").length === 0) break;
      if (round < MOST_ROUNDS) continue;
      throw new DataError(
        `Cannot say who is gone: people still move between ${MOST_ROUNDS} looks. Run again when fewer are checked`,
      );
    }
    const [gone, most] = [unshown(), mostGone ?? Math.max(100, Math.floor(this.#table.size / 100))];
    for (const [day, rows] of this.#table.byDay(isGone)) this.#on(day).gone += rows;
    const tooMany =
      `${gone} of ${plural(this.#table.size, "key")} of the table are gone from the service, more than ${most}. ` +
      `No gone.csv was written. If these rows may be deleted, run again with --yes-gone ${gone}`;
    return await this.#end(gone, undefined, gone > most ? [tooMany] : []);
  }

  async byCounts(): Promise<Report> {
    const { api, requests } = this.#asked;
    const open = addDays(earlier(dayOf(this.#until), dayOf(api.now())), -1);
    await this.#read({ from: later(open, BEGINNING) }, true, startOf(open));
    const numbers = this.#table.byDay((marks) => (marks & (MOVED | HELD)) === 0);
    const left = (): number => MOST_REQUESTS - requests();
    const found = await differences(api, this.#covered(open), numbers, open, left);
    for (const { range } of found.lacking) await this.#read({ from: range[0], to: range[1] }, true);
    await this.#meet(numbers, open);
    const days = found.unlooked.map(({ range }) => range.join(" to "));
    const many = `${MOST_REQUESTS} requests are not enough to say which rows are lost on ${days.join(", ")}. --full says it`;
    return await this.#end(null, found, days.length > 0 ? [many] : []);
  }

  /** Equal numbers are no sign that it is the right table: a day of it must show a key that both have. */
  async #meet(numbers: ReadonlyMap<Day | "none", number>, before: Day): Promise<void> {
    const { same, stale, later: newer } = this.#found;
    if (same + stale + newer > 0) return;
    const days = [...numbers].flatMap(([day, rows]) =>
      day !== "none" && day < before ? [{ day, rows }] : [],
    );
    const [fullest] = days.sort((a, b) => b.rows - a.rows);
    if (fullest !== undefined && (await this.#read({ from: fullest.day, to: fullest.day })) === 0) return;
    this.#refuseStranger();
  }

  /** Throws DataError if rows were shown and none of them has a key of the table. */
  #refuseStranger(): void {
    if (this.#rowsRead === 0 || this.#keysWith((marks) => (marks & SHOWN) !== 0) > 0) return;
    throw new DataError(
      `Cannot compare the table with "${this.#asked.stream}": they have no key in common. It is another table, or its keys were hashed with another salt`,
    );
  }

  /**
   * Reads rows and marks their keys. Throws DataError for a read that is not proven complete.
   * @param judges whether what is lost and stale is noted
   * @param movedFrom epoch ms: keys that the table has at an earlier moment have left their day
   * @returns how many rows came
   */
  async #read(look: Look, judges = false, movedFrom = Number.NEGATIVE_INFINITY): Promise<number> {
    const { emit, read, stream } = this.#asked;
    const before = this.#rowsRead;
    let end: Extract<Event, { kind: "close" }> | undefined;
    for await (const event of read(look)) {
      if (event.kind === "checkpoint") this.#state = { ...NEW_STATE, ...event.state } as RowState;
      else if (event.kind === "close") end = event;
      else await emit(event);
      if (event.kind !== "records") continue;
      for (const line of event.lines) await this.#take(line, judges, movedFrom);
    }
    if (end?.complete === true) return this.#rowsRead - before;
    const why = end?.error instanceof Error ? `. ${end.error.message}` : "";
    throw new DataError(`Cannot compare the table with "${stream}": not all days could be proven${why}`);
  }

  async #take(line: RawLine, judges: boolean, movedFrom: number): Promise<void> {
    const { form, keyOf, leave, results } = this.#asked;
    const row = objectOf(tryParseJson(fromLatin1(line)));
    const key = row[form.key];
    if (typeof key !== "string" && typeof key !== "number") return;
    this.#rowsRead += 1;
    const isSuppressed = this.#asked.isSuppressed(row);
    const moment = form.cursor === null ? NO_MOMENT : momentOf(row[form.cursor]);
    const shown = (typeof key === "number" ? AS_NUMBER : AS_TEXT) | (isSuppressed ? HELD : 0);
    const known = keyOf(`${key}`);
    const held = this.#table.mark(known, shown);
    if (held !== undefined && held.at < movedFrom) this.#table.mark(known, MOVED);
    if (!judges) return;
    const digest = (): string => undatedDigest(toLatin1(JSON.stringify(key)), contentOf(line));
    const standing = isSuppressed ? "suppressed" : this.#standingOf(held, moment, digest);
    this.#found[standing] += 1;
    if (standing !== "lost" && standing !== "stale") return;
    this.#on(isUndated(moment.at) ? "none" : dayOf(moment.at))[standing] += 1;
    await results?.lose(leave(line));
  }

  #standingOf(held: Moment | undefined, moment: Moment, digest: () => string): Standing {
    if (held !== undefined && isSame(held, moment)) return "same";
    if (!this.#isExpected(moment.at, digest)) return "new";
    if (held === undefined) return "lost";
    return Number.isNaN(moment.at) || held.at > moment.at ? "later" : "stale";
  }

  #on(day: Day | "none"): DayDifference {
    this.#days[day] ??= { lost: 0, stale: 0, gone: 0 };
    return this.#days[day];
  }

  #keysWith(isAsked: (marks: number) => boolean): number {
    return [...this.#table.byDay(isAsked).values()].reduce((sum, rows) => sum + rows, 0);
  }

  /** Whether the syncs so far must have brought a row. @param at epoch ms, NaN: none @param digest of a row without a date */
  #isExpected(at: number, _digest: () => string): boolean {
    const { state, startDate, endDate } = this.#asked;
    if (this.#asked.form.cursor === null) return true;
    if (isUndated(at)) {
      if (state === undefined) return (startDate ?? endDate) === null;
      // The state knows rows with a date by that.
      return state.undated !== null;
    }
    if (at > this.#until) return false;
    const day = dayOf(at);
    const days = this.#covered(addDays(day, 1));
    const last = state === undefined ? dayOf(this.#until) : (days.at(-1)?.to ?? BEGINNING);
    return (
      day > last || days.some(({ from, to, status }) => from <= day && day <= to && status !== "missing")
    );
  }

  /** The days before a day that the table should hold. */
  #covered(before: Day): Coverage {
    const { state, startDate, endDate } = this.#asked;
    if (state !== undefined) return state.days;
    const [from, to] = [startDate ?? BEGINNING, earlier(addDays(before, -1), endDate ?? before)];
    return from > to ? [] : [{ from, to, status: "proven", rows: 0 }];
  }

  async #end(
    gone: number | null,
    found: Differences | undefined,
    unanswered: readonly string[],
  ): Promise<Report> {
    const { stream, mode } = this.#asked;
    const { lost, stale, later: newer, new: isNew } = this.#found;
    const rowsIn = (numbers: readonly Numbers[] = []) =>
      numbers.map(({ range: [from, to], table, service }) => ({ from, to, rows: Math.abs(table - service) }));
    const report: Report = {
      ...{ stream, mode, at: new Date(this.#began).toISOString(), table_rows: this.#table.size },
      ...{ rows_read: this.#rowsRead, requests: this.#asked.requests() },
      ...{ lost, stale, gone, later: newer, new: isNew },
      ...{ unclear: this.#keysWith(isUnclear), suppressed: this.#keysWith(isSuppressed) },
      days: Object.fromEntries(Object.entries(this.#days).sort(([a], [b]) => (a < b ? -1 : 1))),
      ...{ more_in_table: rowsIn(found?.more), not_looked_at: rowsIn(found?.unlooked), unanswered },
    };
    const lists: Lists = {
      "suppressed.csv": this.#list(isSuppressed),
      "unclear.csv": this.#list(isUnclear),
      ...(gone !== null && unanswered.length === 0 && { "gone.csv": this.#list(isGone) }),
    };
    await this.#asked.results?.publish(report, lists);
    return report;
  }

  /** Keys of the table, each once, as they are spelt there. */
  async *#list(isListed: (marks: number) => boolean): AsyncGenerator<string> {
    const { table, form } = this.#asked;
    yield `${csvCell(form.key)}\n`;
    for await (const rows of tableRows(table, form)) {
      const keys = rows.filter(({ key }) => {
        const marks = this.#table.mark(key)?.marks ?? NAMED;
        if ((marks & NAMED) !== 0 || !isListed(marks)) return false;
        return this.#table.mark(key, NAMED) !== undefined;
      });
      yield keys.map(({ key }) => `${csvCell(key)}\n`).join("");
    }
  }
}

/** A suppressed row is listed as such, whether the service has it or not. */
const isGone = (marks: number): boolean => (marks & (SHOWN | HELD)) === 0;
const isSuppressed = (marks: number): boolean => (marks & HELD) !== 0;
const isUnclear = (marks: number): boolean => (marks & (SHOWN | HELD)) === SHOWN;

/** Rows of before the first day that can be asked for come with those without a date. @param at epoch ms */
const isUndated = (at: number): boolean => !(at >= OLDEST);

function momentOf(value: unknown): Moment {
  const text = typeof value === "string" || typeof value === "number" ? `${value}` : "";
  return { at: instant(text), unit: unitOf(text) };
}

/** Equal at the coarser of their precisions, however a loader has rounded. */
function isSame(a: Moment, b: Moment): boolean {
  if (Number.isNaN(a.at)) return Number.isNaN(b.at);
  return Math.abs(a.at - b.at) < Math.max(a.unit, b.unit);
}
