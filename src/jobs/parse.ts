import type { JobSetting } from "../catalog/streams.ts";
import { isObject, type JsonObject } from "../json.ts";
import { type Day, FIRST, isDay, LAST } from "../time.ts";
import type { Digesting } from "./identity.ts";
import { NORMALIZATION } from "./items.ts";
import {
  type Handle,
  type Item,
  newSub,
  type Price,
  partsOfSpending,
  type Spending,
  type Step,
  type Sub,
  spendingKey,
} from "./lattice.ts";
import { remembered } from "./packed.ts";

/** Whether a text can stand for an item. */
export const isDigest = (text: unknown): text is string =>
  typeof text === "string" && /^[\w-]{16}$/.test(text);

/** Whether a text is digests behind one another. */
export const isPacked = (text: unknown): text is string =>
  typeof text === "string" && text.length % 16 === 0 && /^[\w-]*$/.test(text);

const isDayText = remembered(isDay);

/** Whether a value is a day. Few days are asked for often. */
export const isDayValue = (value: unknown): value is Day => typeof value === "string" && isDayText(value);

export const isAmount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

export const toCount = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;

export const toTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];

export const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export function toMs(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return ms >= FIRST && ms <= LAST ? ms : null;
}

const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

/** Omits fields that have their default value. */
const short = (fields: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) =>
        !(
          value === null ||
          value === false ||
          value === 0 ||
          value === "" ||
          (Array.isArray(value) && value.length === 0)
        ),
    ),
  );

/** An item as state and receipts write it. */
export function toFields({ day, handle, subs }: Item): JsonObject {
  return short({
    day,
    handle: handle === null ? null : short({ ...handle, at: toText(handle.at) }),
    subs: Object.values(subs).map(({ at, ended, notBefore, asked, ...rest }) =>
      short({
        ...rest,
        at: toText(at),
        ended: toText(ended),
        not_before: toText(notBefore),
        asked: toText(asked),
      }),
    ),
  });
}

/** Reads the digest of an item and what is known of it; undefined for what is none. */
export function parseEntry(value: unknown): readonly [string, Item] | undefined {
  const { item, ...fields } = isObject(value) ? value : {};
  const known = parseItem(fields);
  return isDigest(item) && known !== undefined ? [item, known] : undefined;
}

function parseItem({ day = "", handle = null, subs = [] }: JsonObject): Item | undefined {
  const isAnswered = isDayValue(day);
  const parsed = handle === null ? null : parseHandle(handle);
  if (!(isAnswered || day === "") || parsed === undefined || !Array.isArray(subs)) return undefined;
  const list = subs.map(parseSub);
  if (!list.every((sub) => sub !== undefined)) return undefined;
  return {
    day: isAnswered ? day : "",
    handle: parsed,
    subs: Object.fromEntries(list.map((sub) => [sub.id, sub])),
  };
}

const STEPS: ReadonlySet<unknown> = new Set<Step>(["unknown", "void", "refused", "open", "unpaid", "failed"]);

function parseSub(value: unknown): Sub | undefined {
  const fields = isObject(value) ? value : {};
  const { id, step, day, sync = "" } = fields;
  const at = toMs(fields["at"]);
  const job = textOf(fields["job"]);
  const isOurs = typeof id === "string" && id !== "__proto__" && STEPS.has(step) && typeof sync === "string";
  if (!isOurs || at === null || !isDayValue(day) || (step === "open" && job === null)) return undefined;
  return {
    ...newSub(id, at, day, sync),
    ...{ step: step as Step, job, ended: toMs(fields["ended"]), notBefore: toMs(fields["not_before"]) },
    ...{ asked: toMs(fields["asked"]), misses: toCount(fields["misses"]), code: textOf(fields["code"]) },
    sources: toTexts(fields["sources"]),
  };
}

function parseHandle(value: unknown): Handle | undefined {
  const { id, at, job, sealed, sure, cost = 0 } = isObject(value) ? value : {};
  const atMs = toMs(at);
  const day = isObject(value) ? value["day"] : undefined;
  if (typeof id !== "string" || atMs === null || !isDayValue(day) || !isAmount(cost)) return undefined;
  return { id, at: atMs, day, job: textOf(job), sealed: textOf(sealed), sure: sure === true, cost };
}

/** Counters as state and receipts write them: day, sync, run, and the three numbers. */
export const toSpent = (spent: ReadonlyMap<string, Spending>): unknown[] =>
  [...spent].map(([key, numbers]) => {
    const { sync, by, day } = partsOfSpending(key);
    return [day, sync, by, ...numbers];
  });

/** Reads one counter; undefined for what is none. */
export function parseSpending(value: unknown): readonly [string, Spending] | undefined {
  const [day, sync, by, ...numbers] = Array.isArray(value) ? value : [];
  const isOurs = isDayValue(day) && typeof sync === "string" && typeof by === "string";
  const [submitted, back, credits] = numbers;
  return isOurs && isAmount(submitted) && isAmount(back) && isAmount(credits)
    ? [spendingKey(sync, by, day), [submitted, back, credits]]
    : undefined;
}

export function parsePrice(value: unknown): Price | undefined {
  const [at, credits] = Array.isArray(value) ? value : [];
  return isAmount(at) && isAmount(credits) ? [at, credits] : undefined;
}

/** A stream and its generation. */
export function parseBlind(value: unknown): readonly [string, number] | undefined {
  const [stream, generation] = Array.isArray(value) ? value : [];
  return typeof stream === "string" && Number.isSafeInteger(generation) ? [stream, generation] : undefined;
}

/** A part of what is remembered is not what this connector writes. */
export class NotOurs extends Error {}

/** How keys were made. Throws NotOurs if that is not said, or if only a newer version could say it. */
export function digestsIn({ salt, normalization }: JsonObject): Digesting {
  if (!(salt === null || typeof salt === "string") || typeof normalization !== "number")
    throw new NotOurs('it has no "salt" and "normalization"');
  if (normalization > NORMALIZATION) throw new NotOurs("a newer version of this program wrote it");
  return { salt, normalization };
}

/** A list of which each entry has to be ours. Throws NotOurs with the place of one that is not. */
export function listOf<Part>(
  fields: JsonObject,
  name: string,
  parse: (entry: unknown) => Part | undefined,
): Part[] {
  const list = fields[name];
  if (!Array.isArray(list)) throw new NotOurs(`it has no list "${name}"`);
  return list.map((entry, index) => {
    const part = parse(entry);
    if (part === undefined) throw new NotOurs(`${name}[${index}] is not what this connector writes`);
    return part;
  });
}

/** A day and its packed digests. */
export function toPackedDay(value: unknown): readonly [Day, string] | undefined {
  const [day, packed] = Array.isArray(value) ? value : [];
  const isOurs = isDayValue(day) && isPacked(packed);
  return isOurs ? [day, packed] : undefined;
}

export const isSetting = (value: unknown): value is JobSetting =>
  value === "companyLookup" || value === "emailCheck" || value === "emailVerification";

/** The object in a line of JSON; undefined for anything else. */
export function parseLine(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
