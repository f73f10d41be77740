import { ConfigError } from "../base/errors.ts";
import { isObject, quoted, tryParseJson } from "../base/json.ts";
import { instant } from "../base/time.ts";
import { cellsOf, endsInQuotes, textLines } from "../output/files/csv.ts";
import { reasonOf } from "../output/files/reason.ts";
import { type Moment, NO_MOMENT } from "./key-table.ts";

/** The columns of a table that matter. `cursor` null: rows have no date. `zone`: what dates without an offset mean. */
export type TableForm = {
  readonly key: string;
  readonly cursor: string | null;
  readonly zone: string | undefined;
};

const NAIVE = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;
/** How loaders spell null. */
const NULLS: ReadonlySet<string> = new Set(["", "null", "none", "\\n", "nat"]);

/** One row of a table in a warehouse. */
export type TableRow = { readonly key: string; readonly moment: Moment };

/**
 * Key and cursor of each row: CSV with a header, or JSON lines; the columns named like the stream's, whatever a loader did to
 * case and underscores, or else the first two. Throws ConfigError for a file that cannot be read, a row without a key, and
 * a date that no rule can read or that does not say its offset.
 */
export async function* tableRows(path: string, form: TableForm): AsyncGenerator<readonly TableRow[]> {
  const momentIn = momentsIn(form.zone);
  let places: readonly number[] | undefined;
  /** Whether a line had both names. JSON lines behind it may leave out a date that is null. */
  let isNamed = false;
  let line = 0;
  let open = "";
  /** As the first line says. */
  let isCsv: boolean | undefined;
  const rowOf = (text: string): TableRow[] => {
    line += 1;
    const bare = line === 1 ? text.replace(/^\uFEFF/, "") : text;
    if (open === "" && bare.trim() === "") return [];
    const all = `${open}${bare}`;
    isCsv ??= !all.startsWith("{");
    open = isCsv && endsInQuotes(open, bare) ? `${all}\n` : "";
    if (open !== "") return [];
    const row = isCsv ? undefined : tryParseJson(all);
    if (!isCsv && !isObject(row)) throw unusable(path, line, "is no JSON object");
    const names = isObject(row) ? Object.keys(row) : cellsOf(all);
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
    const spelt = form.cursor === null ? "" : cursor.trim();
    const moment = momentIn(spelt);
    if (typeof moment !== "string") return [{ key, moment }];
    const date = /^[\w :.,+-]{0,40}$/.test(spelt) ? `the date ${quoted(spelt)}` : "a date";
    throw unusable(path, line, `has ${date}, which ${moment}`);
  };
  try {
    for await (const lines of textLines(path)) yield lines.flatMap(rowOf);
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

/** Parses dates; a text says why one cannot be used. Throws ConfigError for a zone that nobody knows. */
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

/** How many ms the spelling of a date tells apart. Epoch numbers from 1e11 on are ms or finer, those below are seconds. */
export function unitOf(text: string): number {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return 86_400_000;
  if (/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?!:)/.test(text)) return 60_000;
  if (Math.abs(Number(text)) >= 1e11) return 1;
  const [, fraction = ""] = /[.,](\d+)/.exec(text) ?? [];
  return 10 ** Math.max(0, 3 - fraction.length);
}

const unusable = (path: string, line: number, why: string): ConfigError =>
  new ConfigError(`Cannot use the table "${path}": line ${line} ${why}`);
