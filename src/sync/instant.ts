import { type Day, startOf } from "./window.ts";

const RFC3339 = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|z|[+-]\d\d:?\d\d)?)?$/;

/** Epoch ms of a date or an RFC 3339 date-time, fractions cut to ms; without a zone it is UTC. NaN for anything else. */
export function instant(text: string): number {
  const fast = parseUtc(text);
  return Number.isNaN(fast) ? parseAny(text) : fast;
}

let cachedDay = -1;
let cachedStart = 0;

/** `YYYY-MM-DDTHH:MM:SS[.fff…]Z` without a regular expression: this runs once a row, and neighbours share their day. */
function parseUtc(text: string): number {
  const { length } = text;
  if (length < 20 || text.charCodeAt(10) !== 84 || text.charCodeAt(length - 1) !== 90) return Number.NaN;
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return Number.NaN;
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return Number.NaN;
  const start = startOfDay(text);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  if ((hour | minute | second) < 0 || hour > 23 || minute > 59 || second > 60) return Number.NaN;
  const whole = start + ((hour * 60 + minute) * 60 + second) * 1000;
  if (length === 20) return whole;
  if (length < 24 || text.charCodeAt(19) !== 46) return Number.NaN;
  const tens = two(text, 20);
  const last = two(text, 21);
  return (tens | last) < 0 ? Number.NaN : whole + tens * 10 + (last % 10);
}

/** NaN if the text does not begin with a day of the calendar. */
function startOfDay(text: string): number {
  const century = two(text, 0);
  const year = two(text, 2);
  const month = two(text, 5);
  const date = two(text, 8);
  if ((century | year | month | date) < 0) return Number.NaN;
  const day = ((century * 100 + year) * 100 + month) * 100 + date;
  if (day !== cachedDay) {
    const start = startOf(text.slice(0, 10) as Day);
    if (Number.isNaN(start) || new Date(start).getUTCDate() !== date) return Number.NaN;
    cachedDay = day;
    cachedStart = start;
  }
  return cachedStart;
}

/** Two digits as a number; negative for anything else. Integers throughout: that halves the cost of a row's instant. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return (tens | ones | (9 - tens) | (9 - ones)) < 0 ? -1 : tens * 10 + ones;
}

function parseAny(text: string): number {
  const match = RFC3339.exec(text);
  if (match === null) return Number.NaN;
  const [, day = "", hours = "00", minutes = "00", seconds = "00", fraction = "", zone = "Z"] = match;
  const start = startOf(day as Day);
  if (Number.isNaN(start) || new Date(start).toISOString().slice(0, 10) !== day) return Number.NaN;
  const ms = fraction.slice(0, 3).padEnd(3, "0");
  const colon = zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone.toUpperCase();
  return Date.parse(`${day}T${hours}:${minutes}:${seconds}.${ms}${colon}`);
}
