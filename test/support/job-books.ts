import { entriesOf } from "../../src/config/items.ts";
import { Book } from "../../src/jobs/book.ts";
import { newDigests } from "../../src/jobs/identity.ts";
import { bookOfState, parseJobState, toJobState } from "../../src/jobs/state.ts";

/** A stream of jobs, as its states name it. */
export const LOOKUPS = { name: "company_lookups", cursorField: "created_at" };

/** A book of one run under the salt "salt". */
export const newBook = (by = "me", ...streams: readonly string[]): Book =>
  new Book({
    ...{ author: { sync: "s", by }, digests: newDigests("salt") },
    streams: streams.map((name) => ({ name, truncates: false, generation: null })),
  });

/** A book that knows what a state of the look-ups says. */
export function bookFrom(state: unknown, spec = LOOKUPS): Book {
  const saved = parseJobState(spec, state);
  if (saved === null) throw new Error("no state");
  return bookOfState(spec.name, saved);
}

/** The state of the look-ups, or of another stream, as it is saved. */
export const stateOf = (book: Book, now: number, head: object = {}, spec = LOOKUPS): object =>
  JSON.parse(
    JSON.stringify(toJobState(spec, book, { cursor: null, service: "here", generation: null, ...head }, now)),
  );

/** The key of a domain that a run names. */
export const keyIn = (book: Book, domain: string): string =>
  entriesOf("domain", domain).map((entry) => book.keyOf(entry))[0] ?? "";
