import { addDays, type Day, dayOf, startOf } from "../base/time.ts";

/** The days that one request covers, both ends included. */
export type Window =
  /** Days before yesterday. Rows can only leave these days, by moving to today. `source`: only the rows of this source. */
  | { readonly kind: "closed"; readonly from: Day; readonly to: Day; readonly source?: string }
  /**
   * Days without an upper filter, so that midnight or a wrong clock cannot cut the window.
   * `undated`: no lower filter too, so that the window includes the people without a date.
   */
  | { readonly kind: "open"; readonly from: Day; readonly undated: boolean }
  /** The people that match no date filter. */
  | { readonly kind: "undated" }
  /** All rows of a stream without dates. */
  | { readonly kind: "all" };

export type ClosedWindow = Extract<Window, { kind: "closed" }>;
export type DatedWindow = Extract<Window, { from: Day }>;

export const closedWindow = (from: Day, to: Day): ClosedWindow => ({ kind: "closed", from, to });

/** Whether a window includes the people without a date. */
export const hasUndated = (window: Window): boolean =>
  window.kind === "undated" || (window.kind === "open" && window.undated);

/**
 * Halves closed days, older half first. Divides an open window into closed days, people without a date, and the rest.
 * The window must have several days.
 */
export function partsOf(window: DatedWindow, yesterday: Day): readonly Window[] {
  const { from } = window;
  if (window.kind === "closed") {
    const to = dayOf((startOf(from) + startOf(window.to)) / 2);
    return [
      { ...window, to },
      { ...window, from: addDays(to, 1) },
    ];
  }
  const closed = closedWindow(from, addDays(yesterday, -1));
  const open: Window = { kind: "open", from: yesterday, undated: false };
  return window.undated ? [closed, { kind: "undated" }, open] : [closed, open];
}

/** The days of a window for names of files, such as `2026-01-01_2026-01-09`. */
export function spanName(window: Window): string {
  if (window.kind === "closed") return `${window.from}_${window.to}`;
  if (window.kind === "open" && !window.undated) return `${window.from}_now`;
  return window.kind === "undated" ? "undated" : "all";
}

/** A window in words, for logs and errors. */
export function describe(window: Window): string {
  switch (window.kind) {
    case "closed": {
      const { from, to, source } = window;
      const days = from === to ? from : `${from} to ${to}`;
      return source === undefined ? days : `${days} (source ${source})`;
    }
    case "open":
      return window.undated ? "all rows up to now" : `${window.from} up to now`;
    case "undated":
      return "rows without a date";
    case "all":
      return "all rows";
  }
}
