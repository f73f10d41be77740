import { ConfigError } from "../base/errors.ts";
import { quoted } from "../base/json.ts";
import { instant } from "../base/time.ts";
import { type Cells, type Cut, readCells } from "../output/files/csv.ts";
import { unusable } from "../output/files/open-text.ts";
import { type Moment, NO_MOMENT, type TableRow } from "./key-table.ts";

/** The columns of a table. `cursor` null: rows have no date. `zone`: the time zone of dates without an offset. */
export type TableForm = {
  readonly key: string;
  readonly cursor: string | null;
  readonly zone: string | undefined;
};

/** A date without an offset. */
const NAIVE = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?$/;
/** The texts that loaders write for null, in lower case. */
const NULLS: ReadonlySet<string> = new Set(["", "null", "none", "\\n", "nat"]);

/** Yields the key and the date of each row. @throws ConfigError for an unusable table */
export async function* tableRows(path: string, form: TableForm): AsyncGenerator<readonly TableRow[]> {
  const momentIn = momentsIn(form.zone);
  const name = `table "${path}"`;
  const columns = [form.key, ...(form.cursor === null ? [] : [form.cursor])].map((column) => {
    const bare = column.toLowerCase().replace(/[^a-z\d]/g, "");
    return [bare, new RegExp(`^${bare}$`)] as const;
  });
  const rowOf = ({ cells: [key, cursor], line }: Cells): TableRow => {
    if ((typeof key !== "string" && typeof key !== "number") || key === "")
      throw unusable(name, `line ${line} has no key`);
    const date = form.cursor === null ? "" : `${cursor ?? ""}`.trim();
    const moment = momentIn(date);
    if (typeof moment !== "string") return { key: `${key}`, moment };
    const which = /^[\w :.,+/[\]-]{0,40}$/.test(date) ? `the date ${quoted(date)}` : "a date";
    throw unusable(name, `line ${line} has ${which}, which ${moment}`);
  };
  const guess = (cuts: readonly Cut[]) => firstTwo(cuts, form);
  for await (const found of readCells({ name, path, columns, isList: false, guess })) yield found.map(rowOf);
}

/** The name of a column. */
const NAME = /^[\s"']*[\p{L}_][\p{L}\p{N}_ .-]*[\s"']*$/u;
const DATE = /^[\s"']*\d{4}-\d\d-\d\d/;
/** Shorter texts are not dates. */
const SHORTEST_DATE = 9;

/** Guesses that the first two columns are key and date. A date in the first line shows that the table has no header. */
function firstTwo(cuts: readonly Cut[], { key, cursor }: TableForm) {
  const places = [0, 1];
  const dated = cuts.find(({ names: [, second] }) => second !== undefined && isDate(second));
  if (dated !== undefined && cursor !== null) return { ...dated, places, isHeader: false };
  const [best] = cuts as [Cut];
  const isPlaced = best.places.every((place, nth) => place === -1 || place === nth);
  const isNamed =
    places.every((place) => NAME.test(best.names[place] ?? "")) &&
    !best.names.some((name) => DATE.test(name));
  if (cursor !== null && isPlaced && (isNamed || best.places[0] === 0))
    return { ...best, places, isHeader: true };
  const columns = cursor === null ? `"${key}"` : `"${key}" and "${cursor}"`;
  return `does not name ${columns}. Add a header: a line with the names of the columns`;
}

function isDate(cell: string): boolean {
  const bare = cell.replace(/^[\s"]+|[\s"]+$/g, "");
  return (
    (bare !== "" && NULLS.has(bare.toLowerCase())) ||
    (bare.length >= SHORTEST_DATE && !Number.isNaN(instant(bare)))
  );
}

/** Parses dates; returns a text for a date that cannot be used. @throws ConfigError for an unknown zone */
function momentsIn(zone: string | undefined): (text: string) => Moment | string {
  const offsetAt = zone === undefined ? undefined : offsetsOf(zone);
  return (text) => {
    if (NULLS.has(text.toLowerCase())) return NO_MOMENT;
    const at = instant(text);
    if (Number.isNaN(at)) return "is not a date such as 2026-01-31T10:00:00Z";
    if (!NAIVE.test(text)) return { at, unit: unitOf(text) };
    if (offsetAt === undefined) return "has no offset. Add --timezone, such as UTC, +02:00 or Europe/Berlin";
    // The first offset is wrong if daylight saving time changes near the moment, so the offset is computed twice.
    return { at: at - offsetAt(at - offsetAt(at)), unit: unitOf(text) };
  };
}

/** Returns the offset of a zone from UTC (ms) at a moment (epoch ms). @throws ConfigError for an unknown zone */
function offsetsOf(zone: string): (at: number) => number {
  const fixed = msOf(zone.replace(/^(?:z|utc|gmt)$/i, "+00:00"));
  if (fixed !== undefined) return () => fixed;
  try {
    const format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    return (at) => msOf(format.format(at).split("GMT")[1] ?? "") ?? 0;
  } catch (cause) {
    throw new ConfigError(
      `Cannot use --timezone ${quoted(zone)}: there is no such zone. Use UTC, +02:00 or Europe/Berlin`,
      { cause },
    );
  }
}

function msOf(offset: string): number | undefined {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d\d?)(?::?(\d\d))?$/.exec(offset) ?? [];
  if (sign === undefined) return undefined;
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/** The precision of a date's text in ms. Epoch numbers below 1e11 are seconds, larger numbers are ms or finer. */
export function unitOf(text: string): number {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return 86_400_000;
  if (/^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?!:)/.test(text)) return 60_000;
  if (Math.abs(Number(text)) >= 1e11) return 1;
  const [, fraction = ""] = /[.,](\d+)/.exec(text) ?? [];
  return 10 ** Math.max(0, 3 - fraction.length);
}
