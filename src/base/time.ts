/** A whole UTC day, `YYYY-MM-DD`. Compares as a string. */
export type Day = string & { readonly __brand: "Day" };

/** The first day of a filter, because services refuse earlier days. Earlier rows count as rows without a date. */
export const BEGINNING = "1970-01-02" as Day;
/** Epoch ms of the start of BEGINNING. */
export const OLDEST = Date.parse(BEGINNING);

export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** The years 1 to 9999, in UTC. */
const FIRST = Date.parse("0001-01-01");
export const LAST = Date.parse("9999-12-31T23:59:59.999Z");

export const dayOf = (ms: number): Day => new Date(ms).toISOString().slice(0, 10) as Day;

/** Epoch ms of the first moment of a day. */
export const startOf = (day: Day): number => Date.parse(day);

/** The day `days` days later, but never before the year 1. */
export const addDays = (day: Day, days: number): Day => dayOf(Math.max(FIRST, startOf(day) + days * DAY_MS));

/** The number of days from `from` to `to`, both included; at most 0 if `to` is earlier. */
export const daysBetween = (from: Day, to: Day): number => (startOf(to) - startOf(from)) / DAY_MS + 1;

export const earlier = (a: Day, b: Day): Day => (a < b ? a : b);

/** The later of two days; "" is earlier than every day. */
export const later = <One extends Day | "">(a: One, b: One): One => (a > b ? a : b);

const INSTANT = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
/** Warehouses and Java add the name of UTC after a space or in brackets. */
const LOOSE =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(?:(?:Z|([+-]\d\d):?(\d\d)?)?( ?(?:Etc\/)?(?:UTC|GMT)|\[(?:Etc\/)?(?:UTC|GMT)\])?)?)?$/i;
/** Excludes eight digits, because they may be a date. */
const EPOCH = /^-?(?!\d{8}(?:\.|$))\d{1,19}(?:\.\d+)?$/;

/** Whether a text is `YYYY-MM-DD` and a day of the calendar, from the year 1. */
export function isDay(text: string): text is Day {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith("0000")) return false;
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** The UTC day of a date or date-time in the forms of `instant`, except epoch numbers. Null for other texts. */
export function parseDay(text: string): Day | null {
  const ms = parseLoose(text);
  return Number.isNaN(ms) ? null : dayOf(ms);
}

/** Whether a text is strict RFC 3339: T and Z in upper case, seconds, a day of the calendar, no leap second. */
export function isInstant(text: string): boolean {
  const [, day = "", time = "", zone = ""] = INSTANT.exec(text) ?? [];
  const ms = isDay(day) && !time.startsWith("24") ? Date.parse(`${day}T${time}${zone}`) : Number.NaN;
  return ms >= FIRST && ms <= LAST;
}

/** Epoch ms of a date (RFC 3339, a day, no zone, epoch numbers), or NaN. A leap second is the last ms of its day. */
export function instant(text: string): number {
  const fast = parseUsual(text);
  if (!Number.isNaN(fast)) return fast;
  const loose = parseLoose(text);
  return Number.isNaN(loose) ? parseEpoch(text) : loose;
}

/** Converts a cursor that `instant` can read to UTC. A cursor in UTC is unchanged. */
export function cursorToUtc(cursor: string): string {
  return isInstant(cursor) && cursor.endsWith("Z") ? cursor : new Date(instant(cursor)).toISOString();
}

/** The day of the last cursor and its start (epoch ms), because the next row is often of the same day. */
let cachedDay = "1970-01-01";
let cachedStart = 0;

/** Parses `YYYY-MM-DDTHH:MM:SS[.fff…]Z` without a regular expression, because it runs once a row. */
function parseUsual(text: string): number {
  const { length } = text;
  if (
    text.charCodeAt(10) !== 84 ||
    text.charCodeAt(13) !== 58 ||
    text.charCodeAt(16) !== 58 ||
    text.charCodeAt(length - 1) !== 90
  )
    return Number.NaN;
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  if ((hour | minute | second) < 0 || hour > 23 || minute > 59 || second > 60) return Number.NaN;
  const whole = startOfDay(text) + ((hour * 60 + minute) * 60 + second) * 1000;
  if (length === 20) return second === 60 ? whole - 1 : whole;
  if (length < 24 || text.charCodeAt(19) !== 46) return Number.NaN;
  const tens = two(text, 20);
  const last = two(text, 21);
  if ((tens | last) < 0 || !areDigits(text, 23, length - 1)) return Number.NaN;
  return whole + (second === 60 ? -1 : tens * 10 + (last % 10));
}

function areDigits(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}

/** Epoch ms of the day with which a text begins, or NaN. */
function startOfDay(text: string): number {
  if (!text.startsWith(cachedDay)) {
    const day = text.slice(0, 10);
    if (!isDay(day)) return Number.NaN;
    cachedDay = day;
    cachedStart = startOf(day);
  }
  return cachedStart;
}

/** Two digits as a number, or a negative number. Computing with integers only halves the time. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return (tens | ones | (9 - tens) | (9 - ones)) < 0 ? -1 : tens * 10 + ones;
}

function parseLoose(text: string): number {
  const match = LOOSE.exec(text);
  if (match === null) return Number.NaN;
  const [, day = "", hours = "0", minutes = "0", seconds = "0", fraction = ""] = match;
  const [zoneHours = "+0", zoneMinutes = "0", name] = match.slice(6);
  const [hour, minute, second] = [Number(hours), Number(minutes), Number(seconds)];
  if (!isDay(day) || hour > 23 || minute > 59 || second > 60) return Number.NaN;
  if (Math.abs(Number(zoneHours)) > 23 || Number(zoneMinutes) > 59) return Number.NaN;
  const offset = Math.abs(Number(zoneHours)) * 60 + Number(zoneMinutes);
  if (name !== undefined && offset !== 0) return Number.NaN;
  const local = startOf(day) + ((hour * 60 + minute) * 60 + second) * 1000;
  const ms = second === 60 ? -1 : Number(fraction.slice(0, 3).padEnd(3, "0"));
  return inRange(local + ms - (zoneHours.startsWith("-") ? -offset : offset) * 60_000);
}

/** Reads seconds, ms, µs or ns since 1970. The size tells the unit, because dates are after the year 1973. */
function parseEpoch(text: string): number {
  if (!EPOCH.test(text)) return Number.NaN;
  const value = Number(text);
  const size = Math.abs(value);
  // Rounds to µs first, because a product with 1,000 may be slightly too small.
  if (size < 1e11) return inRange(Math.floor(Math.round(value * 1e6) / 1e3));
  if (size < 1e14) return inRange(Math.floor(value));
  return inRange(Math.floor(value / (size < 1e17 ? 1e3 : 1e6)));
}

const inRange = (ms: number): number => (ms >= FIRST && ms <= LAST ? ms : Number.NaN);
