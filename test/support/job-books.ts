import type { Book } from "../../src/jobs/book.ts";
import { bookOfState, parseJobState } from "../../src/jobs/state.ts";

/** A stream of jobs, as its states name it. */
export const LOOKUPS = { name: "company_lookups", cursorField: "created_at" };

/** A book that knows what a state of the look-ups says. */
export function bookFrom(state: unknown): Book {
  const saved = parseJobState(LOOKUPS, state);
  if (saved === null) throw new Error("no state");
  return bookOfState(LOOKUPS.name, saved);
}
