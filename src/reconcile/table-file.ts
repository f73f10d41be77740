import { ConfigError } from "../base/errors.ts";
import { isObject, quoted, tryParseJson } from "../base/json.ts";
import { instant } from "../base/time.ts";
import { cellsOf, endsInQuotes, textLines } from "../output/files/csv.ts";
import { reasonOf } from "../output/files/reason.ts";
import { type Moment, NO_MOMENT, type TableRow } from "./key-table.ts";

/** The columns of a table. `cursor` null: rows have no date. `zone`: of dates without an offset. */
export type TableForm = {
  readonly key: string;
  readonly cursor: string | null;
  readonly zone: string | undefined;
};

const NAIVE = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;
/** How loaders write null. */
const NULLS: ReadonlySet<string> = new Set(["", "null", "none", "\\n", "nat"]);

/** Texts, and whole numbers that JavaScript rounds. */
const LONG_NUMBERS = /"(?:[^"\\]|\\.)*"|(?<=[:,[\s])-?\d{16,}(?=[,\]}\s])/g;

/** Parses a row. Long whole numbers become texts, so that they keep their digits. Undefined for what is not JSON. */
export function parseRow(text: string): unknown {
  const isLong = /\d{16}/.test(text);
  return tryParseJson(
    isLong ? text.replace(LONG_NUMBERS, (found) => (found.startsWith('"') ? found : `"${found}"`)) : text,
  );
}

/**
 * Key and date of each row: CSV with a header, or JSON lines. The columns are named like the stream's, in any case and with
 * any underscores, or are the first two.
 * @throws ConfigError for a file that cannot be read, a row without a key, and a date without a known form or offset
 */
export async function* tableRows(path: string, form: TableForm): AsyncGenerator<readonly TableRow[]> {
  const momentIn = momentsIn(form.zone);
  let places: readonly number[] | undefined;
  /** Whether a line had both names. Later JSON lines may leave out a date that is null. */
  let isNamed = false;
  let line = 0;
  let open = "";
  /** Known from the first line. */
  let isCsv: boolean | undefined;
  const rowOf = (text: string): TableRow[] => {
    line += 1;
    const bare = line === 1 ? text.replace(/^\uFEFF/, "") : text;
    if (open === "" && bare.trim() === "") return [];
    const all = `${open}${bare}`;
    isCsv ??= !all.startsWith("{");
    open = isCsv && endsInQuotes(open, bare) ? `${all}\n` : "";
    if (open !== "") return [];
    const row = isCsv ? undefined : parseRow(all);
    if (!isCsv && !isObject(row)) throw unusable(path, line, "is no JSON object");
    const names = isObject(row) ? Object.keys(row) : cellsOf(all.replace(/\r$/, ""));
    const isHeader = isCsv && places === undefined;
    if (!isCsv || isHeader) {
      const named = placesOf(names, form);
      isNamed ||= !named.includes(-1);
      places = isNamed ? named : [0, 1];
    }
    if (isHeader) return [];
    const cells = isObject(row) ? Object.values(row) : names;
    const [key = "", cursor = ""] = (places ?? []).map((place) => `${cells[place] ?? ""}`);
    if (key === "") throw unusable(path, line, "has no key");
    const date = form.cursor === null ? "" : cursor.trim();
    const moment = momentIn(date);
    if (typeof moment !== "string") return [{ key, moment }];
    const which = /^[\w :.,+-]{0,40}$/.test(date) ? `the date ${quoted(date)}` : "a date";
    throw unusable(path, line, `has ${which}, which ${moment}`);
  };
  try {
    // A carriage return before a line break can be a part of a key in quotes.
    for await (const lines of textLines(path, "utf8", "\n")) yield lines.flatMap(rowOf);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`Cannot read the table "${path}": ${reasonOf(cause)}`, { cause });
  }
  if (open !== "") throw unusable(path, line, "ends within quotes");
}

const SAY_THE_ZONE = "Say what it means with --timezone, such as UTC, +02:00 or Europe/Berlin";

function placesOf(names: readonly string[], { key, cursor }: TableForm): readonly number[] {
  const bare = (name: string): string => name.toLowerCase().replace(/[^a-z\d]/g, "");
  return [key, cursor ?? key].map((name) => names.findIndex((one) => bare(one) === bare(name)));
}

/** Parses dates; returns a text for a date that cannot be used. @throws ConfigError for an unknown zone */
function momentsIn(zone: string | undefined): (text: string) => Moment | string {
  const offsetAt = zone === undefined ? undefined : offsetsOf(zone);
  return (text) => {
    if (NULLS.has(text.toLowerCase())) return NO_MOMENT;
    const at = instant(text);
    if (Number.isNaN(at)) return "no rule can read";
    if (!NAIVE.test(text)) return { at, unit: unitOf(text) };
    if (offsetAt === undefined) return `has no offset. ${SAY_THE_ZONE}`;
    // The offset before a change of the clocks may not be the one after it.
    return { at: at - offsetAt(at - offsetAt(at)), unit: unitOf(text) };
  };
}

/** How many ms a zone is ahead of UTC at a moment. */
function offsetsOf(zone: string): (at: number) => number {
  const fixed = msOf(zone.replace(/^(?:z|utc|gmt)$/i, "+00:00"));
  if (fixed !== undefined) return () => fixed;
  try {
    const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    return (at) => msOf(format.format(at).split("GMT")[1] ?? "") ?? 0;
  } catch (cause) {
    throw new ConfigError(`Cannot use --timezone ${quoted(zone)}: no such zone. ${SAY_THE_ZONE}`, { cause });
  }
}

function msOf(offset: string): number | undefined {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d?)(?::?(\d\d))?$/.exec(offset) ?? [];
  if (sign === undefined) return undefined;
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** How many ms the text of a date tells apart. Epoch numbers from 1e11 on are ms or finer, smaller ones are seconds. */
export function unitOf(text: string): number {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return 86_400_000;
  if (/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?!:)/.test(text)) return 60_000;
  if (Math.abs(Number(text)) >= 1e11) return 1;
  const [, fraction = ""] = /[.,](\d+)/.exec(text) ?? [];
  return 10 ** Math.max(0, 3 - fraction.length);
}

const unusable = (path: string, line: number, why: string): ConfigError =>
  new ConfigError(`Cannot use the table "${path}": line ${line} ${why}`);
