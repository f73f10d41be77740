import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { dayOf } from "../base/time.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { StreamState } from "../sync/event.ts";
import { Book, type InputCursor, type Ledger } from "./book.ts";
import { newDigests } from "./identity.ts";
import type { Money } from "./lattice.ts";
import { upgradeState } from "./older.ts";
import {
  digestsIn,
  isDayValue,
  listOf,
  moneyIn,
  NONE,
  NotOurs,
  parseEntry,
  parsePacked,
  toEntry,
} from "./parse.ts";

const VERSION = 3;

/** What a stream begins with. */
export type SavedJobs = {
  readonly ledgers: readonly Ledger[];
  readonly money: Money;
  readonly inputs: readonly InputCursor[];
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** The address of the API that it was made with; null: older versions did not say. */
  readonly service: string | null;
  readonly generation: number | null;
};

export type StateHead = Pick<SavedJobs, "cursor" | "service" | "generation">;

type Named = Pick<JobStreamSpec, "name" | "cursorField">;

/** Lists, because Meltano merges objects: an item that left an object would come back. Every key is always written. */
export function toJobState(
  { name, cursorField }: Named,
  book: Book,
  head: StateHead,
  now: number,
): StreamState {
  const ledgers = book.ledgersFor(name);
  const [current, ...older] = ledgers.map(({ digests, jobs, others, ...packed }) => {
    return { ...digests, jobs: jobs.map(toEntry), others: others.map(toEntry), ...packed };
  });
  return {
    version: VERSION,
    [cursorField]: head.cursor,
    ...{ service: head.service, generation: head.generation, ...current, older },
    ...{ ...book.money(dayOf(now)), inputs: [...book.inputs.values()] },
  };
}

/**
 * Reads the state of a job stream; null: there is none. Throws ConfigError for an unknown shape: without its state a stream
 * buys again.
 */
export function parseJobState({ name, cursorField }: Named, state: unknown): SavedJobs | null {
  if (state === undefined || state === null || (isObject(state) && Object.keys(state).length === 0))
    return null;
  try {
    return parseFields(upgradeState(objectOf(state), name), cursorField);
  } catch (error) {
    if (error instanceof NotOurs) throw unusable(name, error.message);
    throw error;
  }
}

function parseFields(fields: JsonObject, cursorField: string): SavedJobs {
  const { version, [cursorField]: cursor = null, service = null, generation = null, older, inputs } = fields;
  if (cursor !== null && typeof cursor !== "string") throw new NotOurs(`its "${cursorField}" is no text`);
  if (typeof version === "number" && version > VERSION)
    throw new NotOurs(`a newer version of this program wrote it (version ${version})`);
  if (version !== VERSION && version !== 2) throw new NotOurs(`its version is not ${VERSION}`);
  if (service !== null && typeof service !== "string") throw new NotOurs('its "service" is no text');
  return {
    ledgers: [fields, ...(Array.isArray(older) ? older : [])].map(parseLedger),
    money: moneyIn(fields),
    // A cursor that cannot be read only costs a second look.
    inputs: (Array.isArray(inputs) ? inputs : []).map(parseInput).filter((input) => input !== undefined),
    ...{ cursor, service, generation: Number.isSafeInteger(generation) ? (generation as number) : null },
  };
}

function parseLedger(value: unknown): Ledger {
  const fields = objectOf(value);
  return {
    ...{ digests: digestsIn(fields), jobs: listOf(fields["jobs"], "jobs", parseEntry) },
    others: listOf(fields["others"] ?? NONE, "others", parseEntry),
    done: listOf(fields["done"], "done", parsePacked),
    paid: listOf(fields["paid"], "paid", parsePacked),
  };
}

function parseInput(value: unknown): InputCursor | undefined {
  const { from, filters, through, full } = objectOf(value);
  const isOurs =
    isDayValue(through) && isDayValue(full) && typeof from === "string" && typeof filters === "string";
  return isOurs ? { from, filters, through, full } : undefined;
}

/** Tells a book what a state says. `isDelivered`: whether what it calls delivered still is. */
export function tellBook(
  book: Book,
  stream: string,
  { ledgers, money }: SavedJobs,
  isDelivered: boolean,
): void {
  for (const { digests, jobs, others, done, paid } of ledgers) {
    book.addOthers({ digests, items: others });
    book.add({ digests, items: jobs, days: paid });
    book.add({ digests, days: done }, undefined, isDelivered ? stream : undefined);
  }
  book.add({ digests: book.digests, ...money });
}

/** A book that knows what one state says. */
export function bookOfState(stream: string, saved: SavedJobs): Book {
  const salted = saved.ledgers.find(({ digests }) => digests.salt !== null);
  const book = new Book({ author: { sync: "", by: "" }, digests: salted?.digests ?? newDigests() });
  tellBook(book, stream, saved, true);
  return book;
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. It knows what was paid for, so it is never ignored. Restore it, or ` +
      "remove it to buy again what the receipts do not know",
  );
