import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { type Day, FIRST, isDay, LAST } from "../base/time.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { StreamState } from "../sync/event.ts";
import type { InputCursor, StreamText } from "./book.ts";
import {
  type Changes,
  type Handle,
  type KeyedItem,
  newSubmission,
  type PackedDay,
  type Price,
  type Spending,
  STEPS,
  type Step,
  type Submission,
} from "./join.ts";

const VERSION = 4;

/** What a stream begins with. */
export type SavedJobs = {
  readonly text: StreamText;
  readonly inputs: readonly InputCursor[];
  /** The newest moment of the records delivered so far. */
  readonly cursor: string | null;
  /** The id of the salt of its digests. */
  readonly salt: string;
  readonly generation: number | null;
};

type Named = Pick<JobStreamSpec, "name" | "cursorField">;

/** A part of state or receipts is not what this connector writes. */
export class NotOurs extends Error {}

/** Lists, because Meltano merges objects: an item that left an object would come back. Every key is always written. */
export function toJobState(
  { cursorField }: Named,
  { text, inputs, cursor, ...head }: SavedJobs,
): StreamState {
  const { items = [], answered = [], spent = [], prices = [], delivered } = text;
  return {
    ...{ version: VERSION, [cursorField]: cursor, ...head, jobs: items.map(toEntry) },
    ...{ answered, delivered, spent, prices, inputs },
  };
}

/** Reads the state of a job stream; null: there is none. @throws ConfigError for any other shape: it knows what was paid */
export function parseJobState({ name, cursorField }: Named, state: unknown): SavedJobs | null {
  if (state === undefined || state === null || (isObject(state) && Object.keys(state).length === 0))
    return null;
  try {
    return parseFields(objectOf(state), cursorField);
  } catch (error) {
    if (!(error instanceof NotOurs)) throw error;
    throw new ConfigError(
      `Cannot use the state of "${name}": ${error.message}. It knows what was paid for, so it is never ignored. ` +
        "Restore it, or remove it to buy again what the receipts do not know",
    );
  }
}

function parseFields(fields: JsonObject, cursorField: string): SavedJobs {
  const { version, [cursorField]: cursor = null, salt, generation = null, inputs } = fields;
  checkFormat(version, VERSION, "version");
  if (cursor !== null && !isText(cursor)) throw new NotOurs(`its "${cursorField}" is no text`);
  if (!isText(salt)) throw new NotOurs('it has no "salt"');
  for (const name of ["jobs", "answered", "delivered", "spent", "prices"])
    if (!Array.isArray(fields[name])) throw new NotOurs(`it has no list "${name}"`);
  const { jobs, delivered, ...text } = fields;
  return {
    text: {
      ...parseChanges({ ...text, items: jobs }),
      delivered: listOf(delivered, "delivered", parsePacked),
    },
    // A cursor that cannot be read only costs a second look.
    inputs: (Array.isArray(inputs) ? inputs : []).map(parseInput).filter((input) => input !== undefined),
    ...{ cursor, salt, generation: Number.isSafeInteger(generation) ? (generation as number) : null },
  };
}

/** @throws NotOurs for a number that is not the one of now, with the way out */
export function checkFormat(number: unknown, current: number, word: string): void {
  if (number === current) return;
  if (typeof number !== "number") throw new NotOurs(`it has no ${word} ${current}`);
  throw new NotOurs(
    number > current
      ? `a newer version of this program wrote it (${word} ${number})`
      : `a version before 1.0 wrote it (${word} ${number}), and the last one that reads it is 0.1`,
  );
}

// The changes of the book, as state and receipts write them.

/** Fields that have their default value are left out. */
export const toFields = ({ items = [], ...lists }: Changes): JsonObject =>
  short({ items: items.map(toEntry), ...lists });

/** Reads changes; a list that is not there is empty. @throws NotOurs */
export const parseChanges = ({ items, answered, spent, prices }: JsonObject): Changes => ({
  items: listOf(items, "items", parseEntry),
  answered: listOf(answered, "answered", parsePacked),
  spent: listOf(spent, "spent", parseSpending),
  prices: listOf(prices, "prices", parsePrice),
});

const short = (fields: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : ![null, undefined, false, 0, ""].includes(value as null),
    ),
  );

const toEntry = ([key, { day, handle, subs }]: KeyedItem): JsonObject =>
  short({
    item: key,
    day,
    handle: handle === null ? null : short({ ...handle, at: toText(handle.at) }),
    subs: Object.values(subs).map(({ at, ended, notBefore, asked, ...rest }) =>
      short({
        ...{ ...rest, at: toText(at), ended: toText(ended) },
        ...{ not_before: toText(notBefore), asked: toText(asked) },
      }),
    ),
  });

function parseEntry(value: unknown): KeyedItem | undefined {
  const { item, day = "", handle = null, subs = [] } = objectOf(value);
  const parsed = handle === null ? null : parseHandle(handle);
  const list = Array.isArray(subs) ? subs.map(parseSubmission) : [undefined];
  if (!isDigest(item) || !(isDayText(day) || day === "") || parsed === undefined) return undefined;
  if (!list.every((sub) => sub !== undefined)) return undefined;
  return [item, { day, handle: parsed, subs: Object.fromEntries(list.map((sub) => [sub.id, sub])) }];
}

function parseSubmission(value: unknown): Submission | undefined {
  const { id, step, day, sync = "", at: moment, job: name, code, charged, misses, ...rest } = objectOf(value);
  const [at, job] = [toMs(moment), isText(name) ? name : null];
  const isOurs = isText(id) && id !== "__proto__" && STEPS.includes(step as Step) && isText(sync);
  if (!isOurs || at === null || !isDayText(day) || (step === "open" && job === null)) return undefined;
  return {
    ...newSubmission(id, at, day, sync),
    ...{ step: step as Step, job, code: isText(code) ? code : null },
    ...{ ended: toMs(rest["ended"]), notBefore: toMs(rest["not_before"]), asked: toMs(rest["asked"]) },
    ...{ charged: isAmount(charged) ? charged : 0, misses: isAmount(misses) ? misses : 0 },
  };
}

function parseHandle(value: unknown): Handle | undefined {
  const { id, day, job = null, sealed = null, sure, cost = 0, at: moment } = objectOf(value);
  const at = toMs(moment);
  const isOurs = [job, sealed].every((way) => way === null || isText(way));
  if (!isText(id) || at === null || !isDayText(day) || !isAmount(cost) || !isOurs) return undefined;
  return {
    id,
    at,
    day,
    job: job as string | null,
    sealed: sealed as string | null,
    sure: sure === true,
    cost,
  };
}

function parseInput(value: unknown): InputCursor | undefined {
  const { from, filters, through, full } = objectOf(value);
  const isOurs = isDayText(through) && isDayText(full) && isText(from) && isText(filters);
  return isOurs ? { from, filters, through, full } : undefined;
}

/** Reads a list of parts, each of its kind; undefined for anything else. */
const tupleOf =
  <Parts extends readonly unknown[]>(...kinds: readonly ((part: unknown) => boolean)[]) =>
  (value: unknown): Parts | undefined =>
    Array.isArray(value) && kinds.every((isIt, nth) => isIt(value[nth]))
      ? (value.slice(0, kinds.length) as readonly unknown[] as Parts)
      : undefined;

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isDayText = (value: unknown): value is Day => isText(value) && isDay(value);
const isDigest = (value: unknown): value is string => isText(value) && /^[\w-]{16}$/.test(value);
const isAmount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

/** Digests without a separator. */
const isPacked = (value: unknown): boolean =>
  isText(value) && value.length % 16 === 0 && /^[\w-]*$/.test(value);

const parsePacked = tupleOf<PackedDay>(isDayText, isPacked);
const parseSpending = tupleOf<Spending>(isDayText, isText, isText, isAmount, isAmount, isAmount);
const parsePrice = tupleOf<Price>(isAmount, isAmount);

/** A list of which each entry has to be ours. @throws NotOurs with the place of one that is not */
function listOf<Part>(
  list: unknown,
  name: string,
  parse: (entry: unknown) => Part | undefined,
): readonly Part[] {
  if (list !== undefined && !Array.isArray(list)) throw new NotOurs(`its "${name}" is no list`);
  return (list ?? []).map((entry: unknown, index: number) => {
    const part = parse(entry);
    if (part === undefined) throw new NotOurs(`${name}[${index}] is not what this connector writes`);
    return part;
  });
}

const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

function toMs(value: unknown): number | null {
  const ms = isText(value) ? Date.parse(value) : Number.NaN;
  return ms >= FIRST && ms <= LAST ? ms : null;
}
