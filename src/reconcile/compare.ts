import { DataError } from "../base/errors.ts";
import { type JsonObject, objectOf } from "../base/json.ts";
import { fromLatin1, plural } from "../base/text.ts";
import { BEGINNING, type Day, dayOf, instant, LAST, OLDEST } from "../base/time.ts";
import { csvCell, parseRow } from "../output/files/csv.ts";
import type { RawLine } from "../sync/event.ts";
import type { Count } from "../sync/service.ts";
import type { RowState } from "../sync/state.ts";
import { IN_TABLE, inRead, isShown, KeyTable, type Moment, NO_MOMENT, SUPPRESSED } from "./key-table.ts";
import type { DayDifference, Publish, Report } from "./results.ts";
import { type TableForm, tableRows, unitOf } from "./table-file.ts";

/** A table, a service, and the rules of their comparison. */
export type Comparison = {
  readonly stream: string;
  readonly table: string;
  /** A `cursor` of null: rows have no date. */
  readonly form: TableForm;
  /** Whether the config has filters for these rows. */
  readonly hasFilters: boolean;
  /** The highest number of gone keys; undefined: 100 or 1 % of the table, and at most half of the table. */
  readonly mostGone: number | undefined;
  /** Whether the syncs must have delivered a row of this date (epoch ms). */
  readonly isExpected: (at: number) => boolean;
  /** Counts the rows of the service; undefined: rows cannot move between days, or may share a key. */
  readonly count: ((isFiltered: boolean) => Promise<Pick<Count, "rows" | "asked">>) | undefined;
  /**
   * Reads all rows, also suppressed rows. `isFiltered` (also of `count`): only rows that match the config's filters. Yields rows,
   * and the number of rows that the service counts at the beginning. @throws DataError for a read that is not proven complete
   */
  readonly read: (isFiltered: boolean) => AsyncIterable<readonly RawLine[] | number>;
  /** Return a key and a row as the privacy settings send them. */
  readonly keyOf: (key: string) => string;
  readonly mask: (line: RawLine) => string;
  readonly isSuppressed: (row: JsonObject) => boolean;
  readonly requests: () => number;
  readonly publish: Publish;
  /** Epoch ms. */
  readonly began: number;
};

type RowStatus = "same" | "lost" | "stale" | "later" | "new" | "suppressed";

/** The highest number of reads. A read may lack a row, because people may move between days during a read. */
const MAX_READS = 4;

/** Compares a table with the service by keys. @throws ConfigError for an unusable table, DataError without a common key */
export async function compare(comparison: Comparison): Promise<Report> {
  const { publish } = comparison;
  const differences = new Differences(comparison);
  await publish("lost.jsonl", differences.rows());
  const report = differences.report();
  await publish("suppressed.csv", differences.keys(isSuppressedKey));
  if (report.unanswered.length === 0) await publish("gone.csv", differences.keys(differences.isGone));
  await publish("report.json", `${JSON.stringify(report, null, 2)}\n`);
  return report;
}

/**
 * Returns a function that says whether the syncs must have delivered a row of a date (epoch ms; NaN: no date).
 * @param state the state of the syncs; undefined: all rows from `from` to `to`
 */
export function expectedBy(state: RowState | undefined, from: Day | null, to: Day | null) {
  const days = state?.days ?? [];
  const until = state === undefined ? LAST : instant(state.discoveredAt ?? "");
  const lastDay = days.at(-1)?.to ?? BEGINNING;
  return (at: number): boolean => {
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
  /** Whether a key of the table begins or ends with a space, because some loaders pad keys. */
  #hasSpaces = false;
  /** The number of rows by status. */
  readonly #rows: Record<RowStatus, number> = { same: 0, lost: 0, stale: 0, later: 0, new: 0, suppressed: 0 };
  readonly #days: Record<string, DayDifference> = {};
  #reads = 0;
  #rowsRead = 0;
  /** The rows that were counted before the last read: how many the read showed, and how many the read lacks. */
  #shown = 0;
  #missing = 0;
  /** The newest dates (epoch ms) in the table and in the service's rows. */
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
        this.#hasSpaces ||= /^ | $/.test(key);
        if (isSuppressed({ [form.key]: key })) this.#table.mark(key, SUPPRESSED);
        // The earliest moment that the date can mean, because a loader may round the date up.
        const least = moment.at - moment.unit / 2;
        if (least > this.#newestInTable) this.#newestInTable = least;
      }
    }
  }

  /** Reads the table and the service. Yields the lost and stale rows, under the privacy settings. */
  async *rows(): AsyncGenerator<Buffer> {
    const { hasFilters } = this.#comparison;
    await this.#readTable();
    yield* this.#readUntilWhole(hasFilters);
    // Reads also without filters: a person who no longer matches the config's filters is not gone.
    if (this.#missing === 0 && hasFilters && this.#keysWith(this.isGone) > 0)
      yield* this.#readUntilWhole(false);
  }

  /** Reads until a read lacks no row. Without filters the program reads twice if keys of the table are not shown. */
  async *#readUntilWhole(isFiltered: boolean): AsyncGenerator<Buffer> {
    let most = 0;
    for (let reads = 1; reads <= MAX_READS; reads++) {
      const counted = yield* this.#read(isFiltered);
      // With filters the last count is used, because people may stop matching. Else the highest, because few people disappear.
      most = isFiltered ? counted : Math.max(most, counted);
      this.#missing = Math.max(0, most - this.#shown);
      const isEnough = isFiltered || reads > 1 || this.#keysWith(this.isGone) === 0;
      if (this.#missing === 0 && isEnough) break;
    }
  }

  /** @returns the number of rows that were counted before the read; 0: rows are not counted */
  async *#read(isFiltered: boolean): AsyncGenerator<Buffer, number> {
    const { count, read, mask } = this.#comparison;
    const countsStatus = isFiltered === this.#comparison.hasFilters;
    const counted = await count?.(isFiltered);
    let rows = counted?.rows ?? 0;
    this.#reads += 1;
    this.#shown = 0;
    for await (const lines of read(isFiltered)) {
      if (typeof lines === "number") {
        // A replica of the service may be late or empty, so the larger number counts.
        if (counted !== undefined) rows = Math.max(rows, lines);
        continue;
      }
      const differing = lines.filter((line) => this.#take(line, countsStatus, counted?.asked));
      yield Buffer.from(differing.map((line) => `${mask(line)}\n`).join(""), "latin1");
    }
    this.#requireCommonKey();
    return rows;
  }

  /** @throws DataError if the service and the table have no common key, or common keys only without spaces */
  #requireCommonKey(): void {
    const cannot = `Cannot compare the table with "${this.#comparison.stream}"`;
    const padded = this.#hasSpaces ? this.#table.keys((marks) => isInTable(marks) && !isShown(marks)) : [];
    for (const keys of padded)
      if (keys.some((key) => key !== key.trim() && isShown(this.#table.mark(key.trim()).marks)))
        throw new DataError(`${cannot}: keys of the table have spaces around them. Write them without`);
    if (this.#keysWith((marks) => isInTable(marks) && isShown(marks)) > 0) return;
    const isEmpty = this.#keysWith(isInTable) === 0;
    if (this.#rowsRead === 0 && isEmpty) return;
    if (this.#rowsRead === 0) throw new DataError(`${cannot}: the service shows no row now. Run again later`);
    if (isEmpty) throw new DataError(`${cannot}: the table has no row`);
    const why = "It is another table, or its keys were hashed with another salt";
    throw new DataError(`${cannot}: they have no key in common. ${why}`);
  }

  /** Marks a key and counts its status. @param asked the moment of the count (epoch ms) @returns whether it is lost or stale */
  #take(line: RawLine, countsStatus: boolean, asked = 0): boolean {
    const { form, keyOf, isSuppressed } = this.#comparison;
    const row = objectOf(parseRow(fromLatin1(line)));
    const value = row[form.key];
    this.#rowsRead += 1;
    if (typeof value !== "string" && typeof value !== "number") {
      // A row without a key counts each time, because rows without a key cannot be compared.
      this.#shown += 1;
      return false;
    }
    const key = `${value}`;
    const moment = form.cursor === null ? NO_MOMENT : momentOf(row[form.cursor]);
    if (moment.at > this.#newestShown) this.#newestShown = moment.at;
    const isHidden = isSuppressed({ ...row, [form.key]: key });
    const read = inRead(this.#reads);
    const before = this.#table.mark(keyOf(key), read | (isHidden ? SUPPRESSED : 0));
    const wasThere = isInTable(before.marks) || isShown(before.marks) || moment.at < asked;
    if (wasThere && (before.marks & read) === 0) this.#shown += 1;
    if (!countsStatus || isShown(before.marks)) return false;
    const status = isHidden ? "suppressed" : this.#statusOf(before, moment);
    this.#rows[status] += 1;
    if (status !== "lost" && status !== "stale") return false;
    this.#on(moment.at >= OLDEST ? dayOf(moment.at) : "none")[status] += 1;
    return true;
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
   * If the table has a later date than all rows of the service, another replica filled the table. Then this replica may lack
   * the newest people and people without a date, so these people do not count as gone.
   */
  readonly isGone = (marks: number, at: number): boolean =>
    isUnshown(marks) && (at <= this.#newestShown || this.#newestInTable <= this.#newestShown);

  /** The report. Complete only after the last row of `rows`. */
  report(): Report {
    const { stream, began, requests, mostGone } = this.#comparison;
    const { lost, stale, later, new: isNew } = this.#rows;
    const [size, gone] = [this.#keysWith(isInTable), this.#keysWith(this.isGone)];
    const unshown = this.#keysWith(isUnshown);
    const most = mostGone ?? Math.min(Math.floor(size / 2), Math.max(100, Math.floor(size / 100)));
    const moving =
      `The service counts ${plural(this.#missing, "row")} more than it showed in each of ${MAX_READS} complete reads. ` +
      "No gone.csv was written. Run again when fewer people are checked";
    const tooMany =
      `The service does not show ${unshown} of ${plural(size, "key")} of the table, more than ${most}. ` +
      `No gone.csv was written. If these rows may be deleted, run again with --yes-gone ${unshown}`;
    for (const [day, rows] of this.#table.byDay(this.isGone)) this.#on(day).gone += rows;
    return {
      ...{ stream, at: new Date(began).toISOString(), table_rows: size },
      ...{ rows_read: this.#rowsRead, requests: requests(), lost, stale, gone },
      ...{ later: later + unshown - gone, new: isNew, suppressed: this.#keysWith(isSuppressedKey) },
      days: Object.fromEntries(Object.entries(this.#days).sort(([a], [b]) => (a < b ? -1 : 1))),
      unanswered: this.#missing > 0 ? [moving] : unshown > most ? [tooMany] : [],
    };
  }

  /** The matching keys of the table, as a column of CSV. */
  async *keys(fits: (marks: number, at: number) => boolean): AsyncGenerator<string> {
    yield `${csvCell(this.#comparison.form.key)}\n`;
    for (const keys of this.#table.keys(fits)) yield keys.map((key) => `${csvCell(key)}\n`).join("");
  }
}

const isInTable = (marks: number): boolean => (marks & IN_TABLE) !== 0;
/** In the table, not shown and not suppressed. */
const isUnshown = (marks: number): boolean => marks === IN_TABLE;
const isSuppressedKey = (marks: number): boolean => isInTable(marks) && (marks & SUPPRESSED) !== 0;

function momentOf(value: unknown): Moment {
  const text = typeof value === "string" || typeof value === "number" ? `${value}` : "";
  return { at: instant(text), unit: unitOf(text) };
}

/** Whether two moments are equal at the coarser unit, because loaders round. */
function isSame(a: Moment, b: Moment): boolean {
  if (Number.isNaN(a.at)) return Number.isNaN(b.at);
  return Math.abs(a.at - b.at) < Math.max(a.unit, b.unit);
}
