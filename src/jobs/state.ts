import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { schemaCompiler } from "../base/json-schema.ts";
import { type Day, isDay } from "../base/time.ts";
import type { JobStreamSpec } from "../catalog/streams.ts";
import type { StreamState } from "../sync/event.ts";
import type { Changes, SavedJobs } from "./book.ts";
import { type KeyedItem, STEPS } from "./join.ts";

const VERSION = 4;

/** A part of a state or of receipts was not written by this program. */
export class NotOurs extends Error {}

const TEXT = { type: "string", minLength: 1 };
/** Epoch ms of a possible date. */
const MOMENT = { type: "number", minimum: -8.64e15, maximum: 8.64e15 };
const AMOUNT = { type: "number", minimum: 0 };
const DAY = { type: "string", format: "day" };
const DIGEST = { type: "string", pattern: "^[\\w-]{16}$" };
const listOf = (items: object) => ({ type: "array", items });
const tuple = (...items: readonly object[]) => ({ type: "array", items, minItems: items.length });
const orNull = ({ type, ...rules }: { type: string }) => ({ ...rules, type: [type, "null"], default: null });
const object = (required: object, optional: object = {}) => ({
  ...{ type: "object", required: Object.keys(required), properties: { ...required, ...optional } },
});

const SUBMISSION = object(
  { id: TEXT, at: MOMENT, sync: TEXT, step: { enum: STEPS } },
  {
    ...{ job: orNull(TEXT), sealed: orNull(TEXT), code: orNull(TEXT) },
    ...{ asked: orNull(MOMENT), due: orNull(MOMENT), charged: { ...AMOUNT, default: 0 } },
  },
);
const SUBMISSIONS = { ...listOf(SUBMISSION), default: [] };
const ITEM = object({}, { day: { ...DAY, format: "day or none", default: "" }, subs: SUBMISSIONS });
const CHANGES = {
  items: listOf(tuple(DIGEST, ITEM)),
  spent: listOf(tuple(DAY, TEXT, TEXT, AMOUNT, AMOUNT, AMOUNT)),
  prices: listOf(tuple(MOMENT, AMOUNT)),
};
const LINE = object({}, CHANGES);
const STATE = object({
  ...{ cursor: orNull(TEXT), salt: TEXT, generation: { type: ["integer", "null"] }, ...CHANGES },
  delivered: listOf(tuple(DAY, { type: "string", format: "digests" })),
  inputs: listOf(object({ from: TEXT, filters: TEXT, state: { type: "object" } })),
});

const FORMATS = {
  day: isDay,
  "day or none": (text: string) => text === "" || isDay(text),
  digests: (text: string) => text.length % 16 === 0 && /^[\w-]*$/.test(text),
};

/** The compiler of schemas. It is made at the first use, because most runs have no jobs. */
let compile: ReturnType<typeof schemaCompiler> | undefined;

/** Checks a value and fills in defaults. @throws NotOurs */
function checked<Value>(schema: object, value: unknown): Value {
  compile ??= schemaCompiler({ fill: true, formats: FORMATS });
  const check = compile(schema);
  const [error] = check(value) ? [] : (check.errors ?? []);
  if (error !== undefined) throw new NotOurs(`its "${error.instancePath}" ${error.message}`);
  return value as Value;
}

/** The state to write. It always has all keys, and lists for objects: Meltano merges objects and would restore members. */
export const toJobState = (
  { cursorField }: JobStreamSpec,
  { cursor, items, delivered, ...lists }: SavedJobs,
): StreamState => ({
  ...{ version: VERSION, [cursorField]: cursor, ...lists },
  ...{ items: items.map(toEntry), delivered: packed(delivered) },
});

/** Reads the state of a job stream; null: no state. @throws ConfigError for an invalid state, because it may contain purchases */
export function parseJobState({ name, cursorField }: JobStreamSpec, state: unknown): SavedJobs | null {
  const { version, [cursorField]: cursor = null, ...fields } = objectOf(state);
  if (state === undefined || state === null || (isObject(state) && Object.keys(state).length === 0))
    return null;
  try {
    checkFormat(version, VERSION, "version");
    const { delivered, ...saved } = checked<PackedJobs>(STATE, structuredClone({ cursor, ...fields }));
    return { ...saved, delivered: unpacked(delivered) };
  } catch (error) {
    if (!(error instanceof NotOurs)) throw error;
    throw new ConfigError(
      `Cannot use the state of "${name}": ${error.message}. It knows what was paid for. Restore it, or remove it: ` +
        "then everything that is not in the receipts is bought again",
    );
  }
}

/** @throws NotOurs for another format than the current format */
export function checkFormat(number: unknown, current: number, word: string): void {
  if (number === current) return;
  if (typeof number !== "number") throw new NotOurs(`it has no ${word} ${current}`);
  throw new NotOurs(
    number > current
      ? `a newer version of this program wrote it (${word} ${number})`
      : `a version before 1.0 wrote it (${word} ${number}), and the last one that reads it is 0.1`,
  );
}

/** The changes in the form of a line of receipts, without empty lists. */
export const toFields = ({ items = [], ...lists }: Partial<Changes>): JsonObject =>
  short({ items: items.map(toEntry), ...lists });

/** Reads the changes of a line. @throws NotOurs */
export const parseChanges = (fields: JsonObject): Partial<Changes> => checked(LINE, fields);

const toEntry = ([key, { day, subs = [] }]: KeyedItem): unknown => [
  key,
  short({ day, subs: subs.map(short) }),
];

/** A day, and one text of the digests of delivered items whose newest answer is of this day. */
type PackedDay = readonly [day: Day, digests: string];

type PackedJobs = Omit<SavedJobs, "delivered"> & { readonly delivered: readonly PackedDay[] };

function packed(all: SavedJobs["delivered"]): readonly PackedDay[] {
  const days = new Map<Day, string>();
  for (const [key, day] of all) days.set(day, (days.get(day) ?? "") + key);
  return [...days].sort();
}

const unpacked = (days: readonly PackedDay[]): SavedJobs["delivered"] =>
  days.flatMap(([day, digests]) => (digests.match(/.{16}/g) ?? []).map((key) => [key, day] as const));

/** Removes fields that have their default value. */
const short = (fields: object): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isDefault(value)));

const isDefault = (value: unknown): boolean =>
  (value ?? 0) === 0 || value === "" || (Array.isArray(value) && value.length === 0);
