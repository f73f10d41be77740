import type { JobStreamSpec } from "../catalog/streams.ts";
import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { StreamState } from "../streams/event.ts";
import { type Day, dayOf } from "../time.ts";
import { Book, type InputCursor, type Ledger } from "./book.ts";
import { newDigests, OLD_DIGESTS } from "./identity.ts";
import { NORMALIZATION } from "./items.ts";
import { type Delta, type Item, newsOf, type Price, type Spending } from "./lattice.ts";
import { OLD, type OlderItem, parseFirst, parseOlder } from "./older.ts";
import {
  isAmount,
  isDayValue,
  isDigest,
  lenient,
  parseBlind,
  parseItem,
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
  const fields = isObject(state) ? state : {};
  const {
    version,
    [cursorField]: cursor = null,
    service = null,
    generation = null,
    older = [],
    inputs,
  } = fields;
  if (cursor !== null && typeof cursor !== "string") throw unusable(name, `its "${cursorField}" is no text`);
  const format = typeof version === "number" ? FORMATS[version] : undefined;
  if (format === undefined) {
    const isNewer = typeof version === "number" && version > VERSION;
    const newer = `a newer version of this program wrote it (version ${String(version)})`;
    throw unusable(name, isNewer ? newer : `its version is not ${VERSION}`);
  }
  if (!(service === null || typeof service === "string")) throw unusable(name, 'its "service" is no text');
  const all = [{ ...fields, ...format.fixed }, ...(Array.isArray(older) ? older : [])];
  return {
    ledgers: all.map((ledger) => parseLedger(name, ledger, format)),
    money: parseMoney(name, { ...fields, ...format.fixed }, format),
    inputs: Array.isArray(inputs) ? inputs.flatMap(parseInput) : [],
    ...{ cursor, service: typeof service === "string" ? service : null },
    generation: Number.isSafeInteger(generation) ? (generation as number) : null,
  };
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

/** What an entry says, and the day of the answer that its own stream has delivered; undefined for none of ours. */
type Said = { readonly item: Item; readonly delivered: Day | null };

/** How a version wrote its items and counters. `fixed`: keys that it did not have. */
type Format = {
  readonly fixed: JsonObject;
  item(fields: JsonObject, stream: string): Said | undefined;
  spending(value: unknown): readonly [string, Spending] | undefined;
  price(value: unknown, nth: number): Price | undefined;
};

const said = (older: OlderItem | undefined, stream: string): Said | undefined =>
  older && { item: older.item, delivered: older.delivered(stream) };

const SECOND: Format = {
  fixed: { paid: [] },
  item: (fields, stream) => said(parseOlder(fields), stream),
  spending: (value) => {
    const [day, submitted, credits] = Array.isArray(value) ? value : [];
    return parseSpending([day, OLD, OLD, submitted, 0, credits]);
  },
  price: (value, nth) => (isAmount(value) ? [nth, value] : undefined),
};

const FORMATS: Readonly<Record<number, Format>> = {
  1: {
    ...SECOND,
    fixed: { ...OLD_DIGESTS, done: [], paid: [], spent: [], prices: [], older: [] },
    item: (fields, stream) => said(parseFirst(fields), stream),
  },
  2: SECOND,
  3: {
    fixed: {},
    item: (fields) => {
      const item = parseItem(fields);
      return item && { item, delivered: null };
    },
    spending: parseSpending,
    price: parsePrice,
  },
};

function parseLedger(stream: string, value: unknown, format: Format): Ledger {
  const fields: JsonObject = isObject(value) ? { ...value, ...(format === SECOND && SECOND.fixed) } : {};
  const { salt, normalization, jobs, done, paid } = fields;
  if (!(salt === null || typeof salt === "string") || typeof normalization !== "number")
    throw unusable(stream, 'it has no "salt" and "normalization"');
  if (normalization > NORMALIZATION) throw unusable(stream, "a newer version of this program wrote it");
  if (!Array.isArray(jobs)) throw unusable(stream, 'it has no list "jobs"');
  const entries = jobs.map((entry, index) => {
    const { item: key, ...rest } = isObject(entry) ? entry : {};
    const known = format.item(rest, stream);
    if (!isDigest(key) || known === undefined)
      throw unusable(stream, `jobs[${index}] is not what this connector writes`);
    return { key, ...known };
  });
  const delivered = entries.flatMap(({ key, delivered: day }) => (day === null ? [] : [[day, key] as const]));
  return {
    digests: { salt, normalization },
    jobs: entries.map(({ key, item }) => [key, item]),
    done: [...listOf(stream, "done", done, toPackedDay), ...delivered],
    paid: listOf(stream, "paid", paid, toPackedDay),
  };
}

const parseMoney = (
  stream: string,
  { spent, prices, blind }: JsonObject,
  format: Format,
): SavedJobs["money"] => ({
  spent: new Map(listOf(stream, "spent", spent, format.spending)),
  // What an answer may cost and which generation knew nothing only cost a second look.
  prices: lenient(prices, format.price),
  blind: new Map(lenient(blind, parseBlind)),
});

/** A list of which each entry has to be ours. */
function listOf<Part>(
  stream: string,
  name: string,
  list: unknown,
  parse: (entry: unknown) => Part | undefined,
): Part[] {
  if (!Array.isArray(list)) throw unusable(stream, `it has no list "${name}"`);
  return list.map((entry, index) => {
    const part = parse(entry);
    if (part === undefined) throw unusable(stream, `${name}[${index}] is not what this connector writes`);
    return part;
  });
}

/** A cursor that cannot be read only costs a second look. */
function parseInput(value: unknown): InputCursor[] {
  const { from, filters, through, full } = isObject(value) ? value : {};
  const areDays = isDayValue(through) && isDayValue(full);
  return areDays && typeof from === "string" && typeof filters === "string"
    ? [{ from, filters, through, full }]
    : [];
}

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. It knows what was paid for, so it is never ignored. Restore it, or ` +
      "remove it to buy again what the receipts do not know",
  );
