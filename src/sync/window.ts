/** A whole UTC day, `YYYY-MM-DD`. Compares as a string. */
export type Day = string & { readonly __brand: "Day" };

/** The first day there can be. A window that begins here is asked for with this day as its lower filter. */
export const BEGINNING = "1970-01-01" as Day;

/** The days that one request covers, both ends included. */
export type Window =
  /** Every day is before yesterday, so its rows only leave (for today). */
  | { readonly kind: "closed"; readonly from: Day; readonly to: Day }
  /** No upper filter, so that neither midnight nor a wrong clock can cut it. `undated`: no lower one either, which brings the people without a date. */
  | { readonly kind: "open"; readonly from: Day; readonly undated: boolean }
  /** The people that match no date filter. */
  | { readonly kind: "undated" };

const DAY_MS = 86_400_000;

export const dayOf = (ms: number): Day => new Date(ms).toISOString().slice(0, 10) as Day;

/** Epoch ms of the first moment of a day. */
export const startOf = (day: Day): number => Date.parse(day);

export const addDays = (day: Day, days: number): Day => dayOf(startOf(day) + days * DAY_MS);

/** The last moment of a day as it stands in state. */
export const endOf = (day: Day): string => `${day}T23:59:59.999Z`;

export const earlier = (a: Day, b: Day): Day => (a < b ? a : b);

export const later = (a: Day, b: Day): Day => (a > b ? a : b);
