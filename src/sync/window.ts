import { addDays, type Day, dayOf, startOf } from "../base/time.ts";

/** The days that one request covers, both ends included. */
export type Window =
  /** Every day is before yesterday, so its rows only leave (for today). `source`, `isUser`: the rows that match these filters alone. */
  | {
      readonly kind: "closed";
      readonly from: Day;
      readonly to: Day;
      readonly source?: string;
      readonly isUser?: boolean;
    }
  /** No upper filter, so that neither midnight nor a wrong clock can cut it. `undated`: no lower one either, which brings the people without a date. */
  | { readonly kind: "open"; readonly from: Day; readonly undated: boolean }
  /** The people that match no date filter. */
  | { readonly kind: "undated" }
  /** Everything, of a stream whose rows have no date to filter by. */
  | { readonly kind: "all" };

export type ClosedWindow = Extract<Window, { kind: "closed" }>;
export type DatedWindow = Extract<Window, { from: Day }>;

export const closedWindow = (from: Day, to: Day): ClosedWindow => ({ kind: "closed", from, to });

/** Closed days of a window, under its other filters. */
export const within = (window: DatedWindow, from: Day, to: Day): ClosedWindow =>
  window.kind === "closed" ? { ...window, from, to } : closedWindow(from, to);

/**
 * Halves a window by days, the older half first; undefined if it is a single day or holds no day before yesterday.
 * A window that brings the people without a date leaves them to a window of their own, read before the open one.
 */
export function halves(window: Window, yesterday: Day): readonly Window[] | undefined {
  if (window.kind === "undated" || window.kind === "all") return undefined;
  const to = window.kind === "closed" ? window.to : yesterday;
  if (window.from >= to) return undefined;
  return splitAfter(window, dayOf((startOf(window.from) + startOf(to)) / 2));
}

/** Splits an open window into its closed days and the rest; undefined if all its days are from yesterday on. */
export function splitAtYesterday(window: Window, yesterday: Day): readonly Window[] | undefined {
  return window.kind === "open" && window.from < yesterday
    ? splitAfter(window, addDays(yesterday, -1))
    : undefined;
}

function splitAfter(window: DatedWindow, day: Day): readonly Window[] {
  const older = within(window, window.from, day);
  const from = addDays(day, 1);
  if (window.kind === "closed") return [older, { ...window, from }];
  const newer: Window = { kind: "open", from, undated: false };
  return window.undated ? [older, { kind: "undated" }, newer] : [older, newer];
}

/** A window in words, for logs and errors. */
export function describe(window: Window): string {
  switch (window.kind) {
    case "closed": {
      const { from, to, source, isUser } = window;
      const only = [
        ...(isUser === undefined ? [] : [`is_user ${isUser}`]),
        ...(source === undefined ? [] : [`source ${source}`]),
      ];
      return `${from === to ? from : `${from} to ${to}`}${only.length > 0 ? ` (${only.join(", ")})` : ""}`;
    }
    case "open":
      return window.undated ? "all rows up to now" : `${window.from} up to now`;
    case "undated":
      return "rows without a date";
    case "all":
      return "all rows";
  }
}
