import type { JobStreamSpec } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { StreamState } from "../streams/event.ts";
import { dayOf } from "../time.ts";
import { Book, type InputCursor, type Ledger } from "./book.ts";
import { newDigests } from "./identity.ts";
import { type Delta, newsOf } from "./lattice.ts";
import { upgradeState } from "./older.ts";
import {
  digestsIn,
  isDayValue,
  listOf,
  NotOurs,
  parseBlind,
  parseEntry,
  parsePrice,
  parseSpending,
  toFields,
  toPackedDay,
  toSpent,
} from "./parse.ts";

const VERSION = 3;

/** What a stream begins with. */
export type SavedJobs = {
  readonly ledgers: readonly Ledger[];
  readonly money: Pick<Delta, "spent" | "prices" | "blind">;
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
  const [current, ...older] = book.ledgersFor(name).map(toLedger);
  const { spent, prices, blind } = book.money(dayOf(now));
  return {
    version: VERSION,
    [cursorField]: head.cursor,
    ...{ service: head.service, generation: head.generation },
    ...current,
    ...{ older, spent: toSpent(spent), prices, blind: [...blind], inputs: [...book.inputs.values()] },
  };
}

const toLedger = ({ digests, jobs, done, paid }: Ledger): object => ({
  ...digests,
  ...{ jobs: jobs.map(([item, known]) => ({ item, ...toFields(known) })), done, paid },
});

/**
 * Reads the state of a job stream; null: there is none. Throws ConfigError for an unknown shape: without its state a stream
 * buys again.
 */
export function parseJobState({ name, cursorField }: Named, state: unknown): SavedJobs | null {
  if (state === undefined || state === null || (isObject(state) && Object.keys(state).length === 0))
    return null;
  try {
    return parseFields(upgradeState(isObject(state) ? state : {}, name), cursorField);
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
    money: {
      spent: new Map(listOf(fields, "spent", parseSpending)),
      prices: listOf(fields, "prices", parsePrice),
      blind: new Map(listOf(fields, "blind", parseBlind)),
    },
    // A cursor that cannot be read only costs a second look.
    inputs: (Array.isArray(inputs) ? inputs : []).map(parseInput).filter((input) => input !== undefined),
    ...{ cursor, service, generation: Number.isSafeInteger(generation) ? (generation as number) : null },
  };
}

function parseLedger(value: unknown): Ledger {
  const fields = isObject(value) ? value : {};
  return {
    ...{ digests: digestsIn(fields), jobs: listOf(fields, "jobs", parseEntry) },
    ...{ done: listOf(fields, "done", toPackedDay), paid: listOf(fields, "paid", toPackedDay) },
  };
}

function parseInput(value: unknown): InputCursor | undefined {
  const { from, filters, through, full } = isObject(value) ? value : {};
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
  for (const { digests, jobs, done, paid } of ledgers) {
    book.addState(newsOf(digests, { items: new Map(jobs), days: [...done, ...paid] }));
    if (isDelivered) book.addDelivered(stream, digests, done);
  }
  book.addState(newsOf(book.digests, money));
}

/** A book that knows what one state says. */
export function bookOfState(stream: string, saved: SavedJobs): Book {
  const salted = saved.ledgers.find(({ digests }) => digests.salt !== null);
  const digests = salted?.digests ?? newDigests();
  const book = new Book({ author: { sync: "", by: "" }, digests });
  tellBook(book, stream, saved, true);
  return book;
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. It knows what was paid for, so it is never ignored. Restore it, or ` +
      "remove it to buy again what the receipts do not know",
  );
