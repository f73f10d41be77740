import { BodyError } from "../errors.ts";
import type { Count, Ports } from "./ports.ts";
import { type Day, describe, type Window } from "./window.ts";

const LOST_IN_A_ROW = 3;

/** A window to read, with its own count if it has one: a derived count only plans. */
export type Planned = { readonly window: Window; readonly count?: Count | undefined };

/** What a run has decided for all its windows. */
export type Run = {
  readonly ports: Ports;
  /** By the run's first count, and the same for the whole run. */
  readonly yesterday: Day;
  /** False: any clean pass closes a window. */
  readonly verify: boolean;
  /** Whether the stream has a list to page through. */
  readonly listed: boolean;
  /** Epoch ms; rows with a later cursor are not emitted. */
  readonly until: number;
  /** Page walks that showed fewer rows than the counts around them, in a row. */
  shortWalks: number;
};

/** How a window ended: what could not be closed and why, and the newest cursor that was emitted. */
export type Reading = {
  readonly missing: readonly Window[];
  readonly cause?: unknown;
  readonly newest?: string | undefined;
  /** Whether any part of it was closed. */
  readonly closed: boolean;
  /** Days that could not be closed: those before its first closed part, those after its last, and the most in a row. */
  readonly lost: Lost;
};

export type Lost = { readonly first: number; readonly last: number; readonly most: number };

export const NONE_LOST: Lost = { first: 0, last: 0, most: 0 };

export const NOTHING_READ: Reading = { missing: [], closed: false, lost: NONE_LOST };

export const lostReading = (day: Window, cause: unknown): Reading => ({
  missing: [day],
  cause,
  closed: false,
  lost: { first: 1, last: 1, most: 1 },
});

export const closedReading = (newest?: string): Reading => ({
  missing: [],
  newest,
  closed: true,
  lost: NONE_LOST,
});

/** Two readings, the older first, as one. */
export function joinReadings(older: Reading, newer: Reading): Reading {
  return {
    missing: [...older.missing, ...newer.missing],
    cause: newer.cause ?? older.cause,
    newest: newer.newest ?? older.newest,
    closed: older.closed || newer.closed,
    lost: {
      first: older.closed ? older.lost.first : older.lost.first + newer.lost.first,
      last: newer.closed ? newer.lost.last : older.lost.last + newer.lost.last,
      most: Math.max(older.lost.most, newer.lost.most, older.lost.last + newer.lost.first),
    },
  };
}

/** So many days in a row are no accident: an outage must not become years of holes. */
export function endsStream(reading: Reading): boolean {
  return reading.lost.most >= LOST_IN_A_ROW;
}

export function lostTooMany({ missing, cause }: Reading): BodyError {
  const days = missing.slice(-LOST_IN_A_ROW).map(describe).join(", ");
  return new BodyError(
    `Cannot read ${days}: ${LOST_IN_A_ROW} days in a row could not be proven complete, so the service is taken to be ` +
      "unwell. The state stays before them; run again later",
    { cause },
  );
}
