import type { Day } from "./sync/window.ts";

/** A moment in whole seconds since the epoch and the digits after them: finer than a Date, which ends at milliseconds. */
export type Instant = { readonly seconds: number; readonly fraction: string };

const INSTANT = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d+))?(Z|[+-]\d{2}:\d{2})$/;
const LOOSE =
  /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?(?:[.,]\d+)?\s*(?:([Zz])|([+-]\d{2}):?(\d{2})?)?$/;

/** The years 1 to 9999, in UTC. */
const FIRST = Date.parse("0001-01-01");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/** Whether a text is `YYYY-MM-DD` and a day of the calendar, from the year 1 on. */
export function isDay(text: string): text is Day {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text.startsWith("0000")) return false;
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text);
}

/** The UTC day of a date or a date-time; one without a zone is UTC. Null for anything else. */
export function parseDay(text: string): Day | null {
  if (isDay(text)) return text;
  const [, day = "", time = "", seconds = ":00", , hours = "+00", minutes = "00"] = LOOSE.exec(text) ?? [];
  const instant = parseInstant(`${day}T${time}${seconds}${hours}:${minutes}`);
  const utcDay = instant === null ? "" : new Date(instant.seconds * 1000).toISOString().slice(0, 10);
  return isDay(utcDay) ? utcDay : null;
}

/** Strict RFC 3339: with T, seconds and zone in upper case, a day of the calendar, no leap second. Null for anything else. */
export function parseInstant(text: string): Instant | null {
  const [, day = "", time = "", fraction = "", zone = ""] = INSTANT.exec(text) ?? [];
  if (!isDay(day) || time.startsWith("24")) return null;
  const ms = Date.parse(`${day}T${time}${zone}`);
  return ms >= FIRST && ms <= LAST ? { seconds: ms / 1000, fraction: fraction.replace(/0+$/, "") } : null;
}

/** Negative, zero or positive, to the last digit. */
export function compareInstants(a: Instant, b: Instant): number {
  if (a.seconds !== b.seconds) return a.seconds - b.seconds;
  if (a.fraction === b.fraction) return 0;
  return a.fraction < b.fraction ? -1 : 1;
}

/** The same moment as RFC 3339 in UTC, with every digit that it has. */
export function toUtc({ seconds, fraction }: Instant): string {
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  return fraction === "" ? `${text}Z` : `${text}.${fraction}Z`;
}
