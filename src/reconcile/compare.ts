import { DataError } from "../base/errors.ts";
import { type JsonObject, objectOf } from "../base/json.ts";
import { fromLatin1, plural } from "../base/text.ts";
import { BEGINNING, type Day, dayOf, instant, LAST, OLDEST } from "../base/time.ts";
import { csvCell } from "../output/files/csv.ts";
import type { RawLine } from "../sync/event.ts";
import type { Count } from "../sync/service.ts";
import type { RowState } from "../sync/state.ts";
import { IN_TABLE, inRead, isShown, KeyTable, type Moment, NO_MOMENT, SUPPRESSED } from "./key-table.ts";
import type { DayDifference, Report, Results } from "./results.ts";
import { parseRow, type TableForm, tableRows, unitOf } from "./table-file.ts";

/** A table, a service, and how their rows are compared. */
export type Comparison = {
  readonly stream: string;
  readonly table: string;
  /** A `cursor` of null: rows have no date. */
  readonly form: TableForm;
  /** Whether the config restricts which rows are read. */
  readonly isFiltered: boolean;
  /** How many keys may be gone; undefined: 100 or 1 % of the table, and at most half of it. */
  readonly mostGone: number | undefined;
  /** Whether the syncs must have delivered a row of this date. */
  readonly isExpected: (at: number) => boolean;
  /**
   * How many rows the service has now; undefined: rows cannot move between days, or may share a key.
   * @param isFiltered whether by the filters of the config
   */
  readonly count: ((isFiltered: boolean) => Promise<Pick<Count, "rows" | "asked">>) | undefined;
  /**
   * Reads every row, suppressed rows too. A number is what the service counts when the read begins.
   * @throws DataError for a read that is not proven complete
   */
  readonly read: (isFiltered: boolean) => AsyncIterable<readonly RawLine[] | number>;
  /** How a key, and how a row, leaves under the privacy settings. */
  readonly keyOf: (key: string) => string;
  readonly leave: (line: RawLine) => string;
  readonly isSuppressed: (row: JsonObject) => boolean;
  readonly requests: () => number;
  /** Takes the results; undefined: only the report is wanted. */
  readonly results: Results | undefined;
  /** Epoch ms. */
  readonly began: number;
};

type RowStatus = "same" | "lost" | "stale" | "later" | "new" | "suppressed";

/** A person who moves may be in no window of a read, so a read that lacks a row is repeated. */
const MAX_READS = 4;

/**
 * Compares a table with the service, key by key.
 * @throws ConfigError for a table that cannot be read, DataError for another table and for rows that cannot be proven
 */
export const compare = (comparison: Comparison): Promise<Report> => new Differences(comparison).find();

/**
 * Tells which rows the syncs must have delivered, by their dates (epoch ms; NaN: none).
 * @param state of the syncs; undefined: every row from `from` to `to`
 */
export function expectedBy(
  state: RowState | undefined,
  from: Day | null,
  to: Day | null,
): (at: number) => boolean {
  const days = state?.days ?? [];
  const until = state === undefined ? LAST : instant(state.discoveredAt ?? "");
  const lastDay = days.at(-1)?.to ?? BEGINNING;
  return (at) => {
    if (!(at >= OLDEST)) return state === undefined ? (from ?? to) === null : state.undated !== null;
    if (!(at <= until)) return false;
    const day = dayOf(at);
    if (state === undefined) return (from ?? day) <= day && day <= (to ?? day);
    const span = days.find(({ from: first, to: last }) => first <= day && day <= last);
    return span === undefined ? day > lastDay : span.status !== "missing";
  };
}

class Differences {
  readonly #comparison: Comparison;
  readonly #table = new KeyTable();
  /** How many rows have each status. */
  readonly #rows: Record<RowStatus, number> = { same: 0, lost: 0, stale: 0, later: 0, new: 0, suppressed: 0 };
  readonly #days: Record<string, DayDifference> = {};
  #reads = 0;
  #rowsRead = 0;
  /** The newest dates (epoch ms) in the table, and among the rows that the service showed. */
  #newestInTable = Number.NEGATIVE_INFINITY;
  #newestShown = Number.NEGATIVE_INFINITY;

  constructor(comparison: Comparison) {
    this.#comparison = comparison;
  }

  async #readTable(): Promise<void> {
    const { table, form, isSuppressed } = this.#comparison;
    for await (const rows of tableRows(table, form)) {
      this.#table.put(rows);
      for (const { key, moment } of rows) {
        if (isSuppressed({ [form.key]: key })) this.#table.mark(key, SUPPRESSED);
        // A loader may have rounded the date up.
        const least = moment.at - moment.unit / 2;
        if (least > this.#newestInTable) this.#newestInTable = least;
      }
    }
  }

  async find(): Promise<Report> {
    const { isFiltered, mostGone } = this.#comparison;
    await this.#readTable();
    let missing = await this.#readUntilWhole(isFiltered);
    // A person who left the filters of the config is not gone.
    if (missing === 0 && isFiltered && this.#keysWith(this.#isGone) > 0)
      missing = await this.#readUntilWhole(false);
    const [unshown, size] = [this.#keysWith(isUnshown), this.#keysWith(isInTable)];
    const most = mostGone ?? Math.min(Math.floor(size / 2), Math.max(100, Math.floor(size / 100)));
    const moving =
      `The service counts ${plural(missing, "row")} more than it showed in each of ${MAX_READS} complete reads. ` +
      "No gone.csv was written. Run again when fewer people are checked";
    const tooMany =
      `The service does not show ${unshown} of ${plural(size, "key")} of the table, more than ${most}. ` +
      `No gone.csv was written. If these rows may be deleted, run again with --yes-gone ${unshown}`;
    const unanswered = missing > 0 ? [moving] : unshown > most ? [tooMany] : [];
    for (const [day, rows] of this.#table.byDay(this.#isGone)) this.#on(day).gone += rows;
    return await this.#end(unanswered);
  }

  /** Reads until a read lacks no row, and everyone twice if keys of the table are not shown. @returns how many it lacks */
  async #readUntilWhole(isFiltered: boolean): Promise<number> {
    let [missing, most] = [0, 0];
    for (let reads = 1; reads <= MAX_READS; reads++) {
      const { counted, shown } = await this.#read(isFiltered);
      // A person who was counted in an earlier read may have left the filters, but hardly the service.
      most = isFiltered ? counted : Math.max(most, counted);
      missing = Math.max(0, most - shown);
      const isEnough = isFiltered || reads > 1 || this.#keysWith(this.#isGone) === 0;
      if (missing === 0 && isEnough) break;
    }
    return missing;
  }

  /** @returns how many rows were counted before the read, and how many of them it showed */
  async #read(isFiltered: boolean): Promise<{ readonly counted: number; readonly shown: number }> {
    const { count, read } = this.#comparison;
    const judges = isFiltered === this.#comparison.isFiltered;
    const counted = await count?.(isFiltered);
    this.#reads += 1;
    let [rows, shown] = [counted?.rows ?? 0, 0];
    for await (const lines of read(isFiltered)) {
      // One of several copies of the data may lag, or be empty: the larger number counts.
      if (typeof lines === "number") rows = Math.max(rows, counted === undefined ? 0 : lines);
      else for (const line of lines) if (await this.#take(line, judges, counted?.asked)) shown += 1;
    }
    this.#requireCommonKey();
    return { counted: rows, shown };
  }

  /** Throws DataError if the service showed no key of the table, unless neither has any. */
  #requireCommonKey(): void {
    if (this.#keysWith((marks) => isInTable(marks) && isShown(marks)) > 0) return;
    if (this.#rowsRead + this.#keysWith(isInTable) === 0) return;
    const why =
      this.#rowsRead === 0
        ? "the service shows no row now. Run again later"
        : "they have no key in common. It is another table, or its keys were hashed with another salt";
    throw new DataError(`Cannot compare the table with "${this.#comparison.stream}": ${why}`);
  }

  /**
   * Marks the key of a row, and notes the status of a key that was not shown before.
   * @param asked when the rows were counted (epoch ms)
   * @returns whether it is the first of a key in this read, and the key was there when the rows were counted
   */
  async #take(line: RawLine, judges: boolean, asked = 0): Promise<boolean> {
    const { form, keyOf, leave, results, isSuppressed } = this.#comparison;
    const row = objectOf(parseRow(fromLatin1(line)));
    const value = row[form.key];
    this.#rowsRead += 1;
    // A row without a key counts as often as it comes.
    if (typeof value !== "string" && typeof value !== "number") return true;
    const key = `${value}`;
    const moment = form.cursor === null ? NO_MOMENT : momentOf(row[form.cursor]);
    if (moment.at > this.#newestShown) this.#newestShown = moment.at;
    const isHidden = isSuppressed({ ...row, [form.key]: key });
    const read = inRead(this.#reads);
    const before = this.#table.mark(keyOf(key), read | (isHidden ? SUPPRESSED : 0));
    const wasThere = isInTable(before.marks) || isShown(before.marks) || moment.at < asked;
    if (judges && !isShown(before.marks)) {
      const status = isHidden ? "suppressed" : this.#statusOf(before, moment);
      this.#rows[status] += 1;
      if (status === "lost" || status === "stale") {
        this.#on(moment.at >= OLDEST ? dayOf(moment.at) : "none")[status] += 1;
        await results?.lose(leave(line));
      }
    }
    return wasThere && (before.marks & read) === 0;
  }

  #statusOf(known: Moment & { readonly marks: number }, moment: Moment): RowStatus {
    if (isInTable(known.marks) && isSame(known, moment)) return "same";
    if (this.#comparison.form.cursor !== null && !this.#comparison.isExpected(moment.at)) return "new";
    if (!isInTable(known.marks)) return "lost";
    return Number.isNaN(moment.at) || known.at > moment.at ? "later" : "stale";
  }

  #on(day: Day | "none"): DayDifference {
    this.#days[day] ??= { lost: 0, stale: 0, gone: 0 };
    return this.#days[day];
  }

  #keysWith(fits: (marks: number, at: number) => boolean): number {
    return [...this.#table.byDay(fits).values()].reduce((sum, rows) => sum + rows, 0);
  }

  /**
   * A table that is newer than all that the service showed was filled by another replica. The one that was compared may
   * lack the newest people, and those without a date.
   */
  readonly #isGone = (marks: number, at: number): boolean =>
    isUnshown(marks) && (at <= this.#newestShown || this.#newestInTable <= this.#newestShown);

  async #end(unanswered: readonly string[]): Promise<Report> {
    const { stream, began, requests, results } = this.#comparison;
    const { lost, stale, later, new: isNew } = this.#rows;
    const gone = this.#keysWith(this.#isGone);
    const report: Report = {
      ...{ stream, at: new Date(began).toISOString(), table_rows: this.#keysWith(isInTable) },
      ...{ rows_read: this.#rowsRead, requests: requests(), lost, stale, gone },
      later: later + this.#keysWith(isUnshown) - gone,
      ...{ new: isNew, suppressed: this.#keysWith(isSuppressedKey) },
      days: Object.fromEntries(Object.entries(this.#days).sort(([a], [b]) => (a < b ? -1 : 1))),
      unanswered,
    };
    await results?.publish(report, {
      "suppressed.csv": this.#list(isSuppressedKey),
      ...(unanswered.length === 0 && { "gone.csv": this.#list(this.#isGone) }),
    });
    return report;
  }

  /** The keys of the table that fit, as a column of CSV. */
  async *#list(fits: (marks: number, at: number) => boolean): AsyncGenerator<string> {
    yield `${csvCell(this.#comparison.form.key)}\n`;
    for (const keys of this.#table.keys(fits)) yield keys.map((key) => `${csvCell(key)}\n`).join("");
  }
}

const isInTable = (marks: number): boolean => (marks & IN_TABLE) !== 0;
/** Neither shown nor suppressed. */
const isUnshown = (marks: number): boolean => marks === IN_TABLE;
const isSuppressedKey = (marks: number): boolean => isInTable(marks) && (marks & SUPPRESSED) !== 0;

function momentOf(value: unknown): Moment {
  const text = typeof value === "string" || typeof value === "number" ? `${value}` : "";
  return { at: instant(text), unit: unitOf(text) };
}

/** Equal at the coarser of their units, because loaders round. */
function isSame(a: Moment, b: Moment): boolean {
  if (Number.isNaN(a.at)) return Number.isNaN(b.at);
  return Math.abs(a.at - b.at) < Math.max(a.unit, b.unit);
}
