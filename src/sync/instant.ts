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
  const year = two(text, 0) * 100 + two(text, 2);
  const day = year * 10_000 + two(text, 5) * 100 + two(text, 8);
  if (day !== cachedDay) {
    const start = startOf(text.slice(0, 10) as Day);
    if (Number.isNaN(start) || new Date(start).getUTCDate() !== two(text, 8)) return Number.NaN;
    cachedDay = day;
    cachedStart = start;
  }
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  if (hour > 23 || minute > 59 || second > 60) return Number.NaN;
  const seconds = (hour * 60 + minute) * 60 + second;
  if (length === 20) return cachedStart + seconds * 1000;
  if (length < 24 || text.charCodeAt(19) !== 46) return Number.NaN;
  return cachedStart + seconds * 1000 + two(text, 20) * 10 + digit(text, 22);
}

function two(text: string, at: number): number {
  return digit(text, at) * 10 + digit(text, at + 1);
}

function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48;
  return value >= 0 && value <= 9 ? value : Number.NaN;
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
