import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { type Day, FIRST, isDay, LAST } from "../base/time.ts";
import { JOB_SETTINGS, type JobSetting } from "../catalog/streams.ts";
import { NORMALIZATION } from "../config/items.ts";
import type { Digesting } from "./identity.ts";
import {
  type Blind,
  type Handle,
  type KeyedItem,
  type Money,
  newSub,
  type Price,
  type Spending,
  STEPS,
  type Step,
  type Sub,
  UNBOUGHT,
} from "./lattice.ts";
import { type PackedDay, remembered } from "./packed.ts";

/** A part of what is remembered is not what this connector writes. */
export class NotOurs extends Error {}

const isText = (value: unknown): value is string => typeof value === "string";

const isDigest = (value: unknown): value is string => isText(value) && /^[\w-]{16}$/.test(value);

/** Digests behind one another. */
const isPacked = (value: unknown): boolean =>
  isText(value) && value.length % 16 === 0 && /^[\w-]*$/.test(value);

const isDayText = remembered(isDay);

/** Whether a value is a day. Few days are asked for often. */
export const isDayValue = (value: unknown): value is Day => isText(value) && isDayText(value);

export const isAmount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

export const toCount = (value: unknown): number => (isAmount(value) && Number.isInteger(value) ? value : 0);

export const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export function toMs(value: unknown): number | null {
  const ms = isText(value) ? Date.parse(value) : Number.NaN;
  return ms >= FIRST && ms <= LAST ? ms : null;
}

const textOf = (value: unknown): string | null => (isText(value) && value !== "" ? value : null);

export const isSetting = (value: unknown): value is JobSetting =>
  JOB_SETTINGS.some((setting) => setting === value);

/** Omits fields that have their default value. */
export const short = (fields: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : ![null, undefined, false, 0, ""].includes(value as null),
    ),
  );

/** An item as state and receipts write it. */
export const toEntry = ([key, { day, handle, subs }]: KeyedItem): JsonObject =>
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

/** Reads the digest of an item and what is known of it; undefined for what is none. */
export function parseEntry(value: unknown): KeyedItem | undefined {
  if (!isObject(value)) return undefined;
  const { item, day = "", handle = null, subs = [] } = value;
  const parsed = handle === null ? null : parseHandle(handle);
  if (!isDigest(item) || !(isDayValue(day) || day === "") || parsed === undefined || !Array.isArray(subs))
    return undefined;
  if (subs.length === 0) return [item, { day, handle: parsed, subs: UNBOUGHT.subs }];
  const list = subs.map(parseSub);
  if (!list.every((sub) => sub !== undefined)) return undefined;
  return [item, { day, handle: parsed, subs: Object.fromEntries(list.map((sub) => [sub.id, sub])) }];
}

function parseSub(value: unknown): Sub | undefined {
  const fields = objectOf(value);
  const { id, step, day, sync = "", sources } = fields;
  const at = toMs(fields["at"]);
  const job = textOf(fields["job"]);
  const isOurs = isText(id) && id !== "__proto__" && STEPS.includes(step as Step) && isText(sync);
  if (!isOurs || at === null || !isDayValue(day) || (step === "open" && job === null)) return undefined;
  return {
    ...newSub(id, at, day, sync),
    ...{ step: step as Step, job, ended: toMs(fields["ended"]), notBefore: toMs(fields["not_before"]) },
    ...{ asked: toMs(fields["asked"]), misses: toCount(fields["misses"]), code: textOf(fields["code"]) },
    charged: isAmount(fields["charged"]) ? fields["charged"] : 0,
    sources: Array.isArray(sources) ? sources.filter(isText) : [],
  };
}

function parseHandle(value: unknown): Handle | undefined {
  if (!isObject(value)) return undefined;
  const { id, day, job, sealed, sure, cost = 0 } = value;
  const at = toMs(value["at"]);
  if (!isText(id) || at === null || !isDayValue(day) || !isAmount(cost)) return undefined;
  return { id, at, day, job: textOf(job), sealed: textOf(sealed), sure: sure === true, cost };
}

/** Reads a list of parts, each of its kind; undefined for anything else. */
const tupleOf =
  <Parts extends readonly unknown[]>(...kinds: readonly ((part: unknown) => boolean)[]) =>
  (value: unknown): Parts | undefined =>
    Array.isArray(value) && kinds.every((isIt, nth) => isIt(value[nth]))
      ? (value.slice(0, kinds.length) as readonly unknown[] as Parts)
      : undefined;

export const parsePacked = tupleOf<PackedDay>(isDayValue, isPacked);
const parseSpending = tupleOf<Spending>(isDayValue, isText, isText, isAmount, isAmount, isAmount);
const parsePrice = tupleOf<Price>(isAmount, isAmount);
const parseBlind = tupleOf<Blind>(isText, Number.isSafeInteger);

/** How keys were made. Throws NotOurs if that is not said, or if only a newer version could say it. */
export function digestsIn({ salt, normalization }: JsonObject): Digesting {
  if (!(salt === null || isText(salt)) || typeof normalization !== "number")
    throw new NotOurs('it has no "salt" and "normalization"');
  if (normalization > NORMALIZATION) throw new NotOurs("a newer version of this program wrote it");
  return { salt, normalization };
}

/** A list with nothing in it. */
export const NONE: readonly never[] = [];

/** A list of which each entry has to be ours. Throws NotOurs with the place of one that is not. */
export function listOf<Part>(
  list: unknown,
  name: string,
  parse: (entry: unknown) => Part | undefined,
): readonly Part[] {
  if (!Array.isArray(list)) throw new NotOurs(`it has no list "${name}"`);
  return list.map((entry, index) => {
    const part = parse(entry);
    if (part === undefined) throw new NotOurs(`${name}[${index}] is not what this connector writes`);
    return part;
  });
}

/** The counters among the fields of a state, or of a line of receipts. `none`: stands for a list that is not there. */
export const moneyIn = ({ spent, prices, blind }: JsonObject, none?: readonly never[]): Required<Money> => ({
  spent: listOf(spent === undefined ? none : spent, "spent", parseSpending),
  prices: listOf(prices === undefined ? none : prices, "prices", parsePrice),
  blind: listOf(blind === undefined ? none : blind, "blind", parseBlind),
});
