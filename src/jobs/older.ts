import type { JsonObject } from "../json.ts";
import { type Day, dayOf } from "../time.ts";
import type { Digesting } from "./identity.ts";
import {
  type Handle,
  type Item,
  newSub,
  newsOf,
  type Price,
  type Spending,
  type Step,
  type Sub,
  spendingKey,
  UNBOUGHT,
} from "./lattice.ts";
import {
  type Change,
  isAmount,
  isDayValue,
  isDigest,
  isSetting,
  NO_CHANGE,
  parseLine,
  toCount,
  toMs,
  toTexts,
} from "./parse.ts";
import { OUT_OF_CREDITS } from "./wanted.ts";

/** The sync and the run of all that older versions remembered. */
export const OLD = "old";

/** An item was answered before, and older versions no longer knew when. */
const LONG_AGO = "1970-01-01" as Day;

/** What an older version knew of an item. `delivered`: the day of the answer that the named stream has delivered. */
export type OlderItem = {
  readonly item: Item;
  readonly at: number;
  /** The day to which the submission was charged. */
  readonly charged: Day;
  readonly cost: number | null;
  delivered(stream: string): Day | null;
};

/** How the steps of state version 2 and of receipts of format 1 are understood. */
const STEPS: Readonly<Record<string, Step>> = {
  unknown: "unknown",
  open: "open",
  failed: "failed",
  refused: "refused",
  doubted: "void",
  void: "void",
};

/** Reads a job as state version 2 and receipts of format 1 wrote it; undefined for what is none. */
export function parseOlder(fields: JsonObject): OlderItem | undefined {
  const { step, at, day, job_id, code, cost, owed, sealed } = fields;
  const atMs = toMs(at);
  const job = typeof job_id === "string" && job_id !== "" ? job_id : null;
  const known = typeof step === "string" && Object.hasOwn(STEPS, step) ? STEPS[step] : undefined;
  if (atMs === null || (step === "open" && job === null) || (known === undefined && step !== "answered"))
    return undefined;
  const charged = isDayValue(day) ? day : dayOf(atMs);
  const said = typeof code === "string" ? code : null;
  const ended = toMs(fields["ended"]);
  const costs = isAmount(cost) ? cost : null;
  const common = { at: atMs, charged, cost: costs };
  if (known === undefined) {
    const answered = dayOf(ended ?? atMs);
    const text = typeof sealed === "string" ? sealed : null;
    const id = idOf(atMs);
    // A response says when it came.
    const moment = text === null ? atMs : (ended ?? atMs);
    const handle: Handle = { id, at: moment, day: answered, job, sealed: text, sure: true, cost: costs ?? 0 };
    const item = { day: answered, handle: job === null && text === null ? null : handle, subs: {} };
    return { ...common, item, delivered: (stream) => (toTexts(owed).includes(stream) ? null : answered) };
  }
  const sub: Sub = {
    ...{ ...newSub(idOf(atMs), atMs, charged, OLD), job, ended, code: said },
    step: known === "failed" && OUT_OF_CREDITS.has(said ?? "") ? "unpaid" : known,
    ...{ notBefore: toMs(fields["not_before"]), asked: toMs(fields["asked"]) },
    ...{ misses: toCount(fields["misses"]), sources: toTexts(fields["sources"]) },
  };
  const failed = toCount(fields["tries"]) - (sub.step === "failed" ? 1 : 0);
  const before = [...earlier(sub, "failed", failed), ...earlier(sub, "unknown", toCount(fields["unknowns"]))];
  const isRefresh = fields["is_refresh"] === true;
  const subs = Object.fromEntries([sub, ...before].map((one) => [one.id, one]));
  return {
    ...{ ...common, item: { ...UNBOUGHT, day: isRefresh ? LONG_AGO : "", subs } },
    delivered: () => (isRefresh ? LONG_AGO : null),
  };
}

/** The submissions before one, of which older versions kept the number alone. More than a few make no difference. */
function earlier({ id, at, day }: Sub, step: Step, count: number): Sub[] {
  return Array.from({ length: Math.max(0, Math.min(count, 5)) }, (_, nth) => ({
    ...newSub(`${id}.${step}.${nth + 1}`, at - nth - 1, day, OLD),
    ...{ step, ended: step === "failed" ? at : null },
  }));
}

const idOf = (at: number): string => `${OLD}.${at}`;

/** How the steps of version 0.1.0 are understood. A verification that was to be tried again has no job to ask for. */
const FIRST_STEPS: Readonly<Record<string, "unknown" | "open" | "answered">> = {
  submitting: "unknown",
  submitted: "open",
  again: "open",
  lost: "open",
  denied: "open",
  done: "answered",
};

/** Reads a job of the state of version 0.1.0; undefined for what is none. */
export function parseFirst(fields: JsonObject): OlderItem | undefined {
  const { step, at, job_id, not_before } = fields;
  const known = typeof step === "string" && Object.hasOwn(FIRST_STEPS, step) ? FIRST_STEPS[step] : undefined;
  if (known === undefined) return undefined;
  const isLost = known === "open" && step !== "submitted" && !(typeof job_id === "string" && job_id !== "");
  const older = parseOlder({ at, step: isLost ? "unknown" : known, job_id, not_before });
  // What was done was delivered, and is never asked for again.
  return older !== undefined && known === "answered"
    ? { ...older, item: { ...older.item, handle: null } }
    : older;
}

/** Reads receipts of format 1, line after line: what each says, and what all up to it have charged. */
export class OlderReceipts {
  readonly #digests: Digesting;
  readonly #spent = new Map<string, Spending>();

  constructor(digests: Digesting) {
    this.#digests = digests;
  }

  /** A line that is none of ours is one that a crash tore: its request never left. */
  change(text: string): Change {
    const fields = parseLine(text) ?? {};
    const { for: setting, item: key, normalization = 1, step, compacted } = fields;
    if (typeof compacted === "number") return { ...NO_CHANGE, compacted };
    const older = parseOlder(fields);
    if (!isSetting(setting) || !isDigest(key) || older === undefined || typeof normalization !== "number")
      return NO_CHANGE;
    const { item, at, charged, cost } = older;
    const news = newsOf({ ...this.#digests, normalization }, { items: new Map([[key, item]]) });
    if (step !== "unknown" && step !== "void" && cost === null)
      return { ...NO_CHANGE, setting, deltas: [news] };
    // Each submission has one line in which it leaves, and one in which its cost is known.
    const name = `${setting} ${charged}`;
    const [submitted, back, credits] = this.#spent.get(name) ?? [0, 0, 0];
    const [left, voided] = [Number(step === "unknown"), Number(step === "void")];
    const spending: Spending = [submitted + left, back + voided, credits + (cost ?? 0)];
    this.#spent.set(name, spending);
    const spent = new Map([[spendingKey(OLD, OLD, charged), spending]]);
    const prices: Price[] = cost === null ? [] : [[item.handle?.at ?? at, cost]];
    return { ...NO_CHANGE, setting, deltas: [{ ...news, spent, prices }] };
  }
}
