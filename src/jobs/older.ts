import { type JsonObject, objectOf } from "../base/json.ts";
import { dayOf } from "../base/time.ts";
import { OLD_DIGESTS } from "./identity.ts";
import { isAmount, isDayValue, NONE, toMs, toText } from "./parse.ts";
import { OUT_OF_CREDITS } from "./wanted.ts";

/** The sync and the run of all that older versions remembered. */
const EARLIER = "old";

/** An item was answered before, and older versions no longer knew when. */
const BEFORE_ALL = "1970-01-01";

const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : NONE);
const countOf = (value: unknown): number => (isAmount(value) ? Math.min(value, 5) : 0);

/** A job of version 2 as an item of version 3; what is none of ours stays none. */
function upgradeJob(value: unknown): JsonObject {
  const { job_id: job = null, tries, unknowns, ...fields } = objectOf(value);
  const { item, step, code, ended, sealed = null, cost, is_refresh } = fields;
  const at = toMs(fields["at"]);
  if (at === null) return {};
  const id = `${EARLIER}.${at}`;
  if (step === "answered") {
    const answeredAt = toMs(ended) ?? at;
    // A response says when it came.
    const moment = toText(sealed === null ? at : answeredAt);
    const day = dayOf(answeredAt);
    const handle = { id, at: moment, day, job, sealed, sure: true, cost: isAmount(cost) ? cost : 0 };
    return { item, day, handle: job === null && sealed === null ? null : handle };
  }
  const day = isDayValue(fields["day"]) ? fields["day"] : dayOf(at);
  const sub = { ...fields, id, step: stepOf(step, code), day, sync: EARLIER, job };
  // Of the submissions before this one older versions kept the number alone.
  const earlier = (of: string, count: number): JsonObject[] =>
    Array.from({ length: Math.max(0, Math.floor(count)) }, (_, nth) => ({
      ...{ id: `${id}.${of}.${nth + 1}`, at: toText(at - nth - 1), step: of, day, sync: EARLIER },
      ...(of === "failed" && { ended: ended ?? toText(at) }),
    }));
  const failed = countOf(tries) - (sub.step === "failed" ? 1 : 0);
  const subs = [sub, ...earlier("failed", failed), ...earlier("unknown", countOf(unknowns))];
  return { item, day: is_refresh === true ? BEFORE_ALL : "", subs };
}

function stepOf(step: unknown, code: unknown): unknown {
  if (step === "doubted") return "void";
  return step === "failed" && OUT_OF_CREDITS.has(code as string) ? "unpaid" : step;
}

/** How the steps of version 0.1.0 are understood. A verification that was to be tried again has no job to ask for. */
function upgradeFirst(value: unknown): JsonObject {
  const { item, step, at, job_id, not_before } = objectOf(value);
  if (step === "done") return { item, at, step: "answered" };
  const hasJob = typeof job_id === "string" && job_id !== "";
  const isOpen = step === "submitted" || step === "again" || step === "lost" || step === "denied";
  const isUnknown = step === "submitting" || (isOpen && step !== "submitted" && !hasJob);
  const now = isOpen ? "open" : null;
  return { item, at, step: isUnknown ? "unknown" : now, job_id: hasJob ? job_id : null, not_before };
}

function upgradeLedger(value: unknown, stream: string): JsonObject {
  const fields = objectOf(value);
  const { jobs, done } = fields;
  if (!Array.isArray(jobs) || !Array.isArray(done)) return fields;
  const upgraded = jobs.map(upgradeJob);
  // What was answered is delivered unless it is owed.
  const delivered = upgraded.flatMap(({ day = "", item, subs }, nth) =>
    day === "" || (subs === undefined && listed(jobs[nth].owed).includes(stream)) ? [] : [[day, item]],
  );
  return { ...fields, jobs: upgraded, done: [...done, ...delivered], paid: NONE };
}

/** The state of a stream in the form of version 3. What is none of ours stays none. */
export function upgradeState(state: JsonObject, stream: string): JsonObject {
  const { version, jobs, spent, prices, older } = state;
  if (version === 1) {
    const first = { ...OLD_DIGESTS, jobs: Array.isArray(jobs) ? jobs.map(upgradeFirst) : jobs, done: NONE };
    return upgradeState({ ...state, ...first, version: 2, older: NONE, spent: NONE, prices: NONE }, stream);
  }
  if (version !== 2) return state;
  const toSpending = (value: unknown): unknown => {
    const [day, submitted, credits] = listed(value);
    return [day, EARLIER, EARLIER, submitted, 0, credits];
  };
  const amounts = listed(prices).filter(isAmount);
  return {
    ...{ ...state, ...upgradeLedger(state, stream) },
    older: listed(older).map((one) => upgradeLedger(one, stream)),
    spent: Array.isArray(spent) ? spent.map(toSpending) : spent,
    prices: amounts.map((credits, nth) => [nth, credits]),
    ...{ blind: NONE, service: null, generation: null },
  };
}

/** Reads receipts of format 1 in the form of format 2. Counters hold what all lines so far have charged. */
export class OlderReceipts {
  readonly #spent = new Map<string, readonly [number, number, number]>();

  upgrade(line: JsonObject): JsonObject {
    const { for: setting, item, normalization, step, day, cost } = line;
    if (item === undefined) return line;
    const upgraded = { for: setting, normalization, items: [upgradeJob(line)] };
    const at = toMs(line["at"]);
    if (at === null || (step !== "unknown" && step !== "void" && !isAmount(cost))) return upgraded;
    // Each submission has one line in which it leaves, and one in which its cost is known.
    const charged = isDayValue(day) ? day : dayOf(at);
    const key = JSON.stringify([setting, charged]);
    const [submitted, back, credits] = this.#spent.get(key) ?? [0, 0, 0];
    const price = isAmount(cost) ? cost : 0;
    const spent = [
      submitted + Number(step === "unknown"),
      back + Number(step === "void"),
      credits + price,
    ] as const;
    this.#spent.set(key, spent);
    const prices = isAmount(cost) ? [[toMs(line["ended"]) ?? at, cost]] : NONE;
    return { ...upgraded, spent: [[charged, EARLIER, EARLIER, ...spent]], prices };
  }
}
