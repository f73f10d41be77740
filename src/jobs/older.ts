import { isObject, type JsonObject } from "../json.ts";
import { dayOf } from "../time.ts";
import { OLD_DIGESTS } from "./identity.ts";
import { isAmount, isDayValue, toMs, toText } from "./parse.ts";
import { OUT_OF_CREDITS } from "./wanted.ts";

/** The sync and the run of all that older versions remembered. */
const OLD = "old";

/** An item was answered before, and older versions no longer knew when. */
const LONG_AGO = "1970-01-01";

const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const countOf = (value: unknown): number => (isAmount(value) ? Math.min(value, 5) : 0);

/** A submission under the names of this version; what is none of ours stays none. */
function upgradeSub(
  { job_id, day, tries, unknowns, ...fields }: JsonObject,
  at: number,
): readonly JsonObject[] {
  const { code, ended } = fields;
  const step = fields["step"] === "doubted" ? "void" : fields["step"];
  const isUnpaid = step === "failed" && typeof code === "string" && OUT_OF_CREDITS.has(code);
  const charged = isDayValue(day) ? day : dayOf(at);
  const sub = {
    ...fields,
    id: `${OLD}.${at}`,
    step: isUnpaid ? "unpaid" : step,
    day: charged,
    sync: OLD,
    job: job_id,
  };
  // Of the submissions before this one older versions kept the number alone.
  const earlier = (of: string, count: number): JsonObject[] =>
    Array.from({ length: Math.max(0, Math.floor(count)) }, (_, nth) => ({
      ...{ id: `${sub.id}.${of}.${nth + 1}`, at: toText(at - nth - 1), step: of, day: charged, sync: OLD },
      ...(of === "failed" && { ended: ended ?? toText(at) }),
    }));
  const failed = countOf(tries) - (sub.step === "failed" ? 1 : 0);
  return [sub, ...earlier("failed", failed), ...earlier("unknown", countOf(unknowns))];
}

/** A job of version 2 as an item of version 3, and the day of the answer that is delivered to a stream. */
function upgradeJob(
  value: unknown,
  stream: string,
): { readonly entry: JsonObject; readonly delivered: string | null } {
  const fields = isObject(value) ? value : {};
  const { item, job_id: job = null, sealed = null, cost, owed, is_refresh } = fields;
  const at = toMs(fields["at"]);
  if (at === null) return { entry: {}, delivered: null };
  if (fields["step"] !== "answered") {
    const day = is_refresh === true ? LONG_AGO : "";
    return { entry: { item, day, subs: upgradeSub(fields, at) }, delivered: day === "" ? null : day };
  }
  const ended = toMs(fields["ended"]) ?? at;
  const day = dayOf(ended);
  // A response says when it came.
  const moment = toText(sealed === null ? at : ended);
  const handle = {
    id: `${OLD}.${at}`,
    at: moment,
    day,
    job,
    sealed,
    sure: true,
    cost: isAmount(cost) ? cost : 0,
  };
  const entry = { item, day, handle: job === null && sealed === null ? null : handle };
  return { entry, delivered: listed(owed).includes(stream) ? null : day };
}

/** How the steps of version 0.1.0 are understood. A verification that was to be tried again has no job to ask for. */
function upgradeFirst(value: unknown): JsonObject {
  const { item, step, at, job_id, not_before } = isObject(value) ? value : {};
  if (step === "done") return { item, at, step: "answered" };
  const hasJob = typeof job_id === "string" && job_id !== "";
  const isOpen = step === "submitted" || step === "again" || step === "lost" || step === "denied";
  const isUnknown = step === "submitting" || (isOpen && step !== "submitted" && !hasJob);
  return {
    item,
    at,
    step: isUnknown ? "unknown" : isOpen ? "open" : null,
    job_id: hasJob ? job_id : null,
    not_before,
  };
}

function upgradeLedger(value: unknown, stream: string): JsonObject {
  const fields = isObject(value) ? value : {};
  if (!Array.isArray(fields["jobs"]) || !Array.isArray(fields["done"])) return fields;
  const jobs = fields["jobs"].map((job) => upgradeJob(job, stream));
  const delivered = jobs.flatMap(({ entry, delivered: day }) => (day === null ? [] : [[day, entry["item"]]]));
  return {
    ...fields,
    jobs: jobs.map(({ entry }) => entry),
    done: [...fields["done"], ...delivered],
    paid: [],
  };
}

const toSpending = (value: unknown): unknown => {
  const [day, submitted, credits] = listed(value);
  return [day, OLD, OLD, submitted, 0, credits];
};

/** The state of a stream in the form of version 3. What is none of ours stays none. */
export function upgradeState(state: JsonObject, stream: string): JsonObject {
  if (state["version"] === 1) {
    const { jobs, ...rest } = state;
    const first = { ...OLD_DIGESTS, jobs: Array.isArray(jobs) ? jobs.map(upgradeFirst) : jobs, done: [] };
    return upgradeState({ ...rest, ...first, version: 2, older: [], spent: [], prices: [] }, stream);
  }
  if (state["version"] !== 2) return state;
  const { spent, prices, older } = state;
  return {
    ...{
      ...state,
      ...upgradeLedger(state, stream),
      older: listed(older).map((one) => upgradeLedger(one, stream)),
    },
    spent: Array.isArray(spent) ? spent.map(toSpending) : spent,
    prices: listed(prices)
      .filter(isAmount)
      .map((credits, nth) => [nth, credits]),
    ...{ blind: [], service: null, generation: null },
  };
}

/** Reads receipts of format 1 in the form of format 2. Counters hold what all lines so far have charged. */
export class OlderReceipts {
  readonly #spent = new Map<string, readonly [number, number, number]>();

  upgrade(line: JsonObject): JsonObject {
    const { for: setting, item, normalization, step, day, cost } = line;
    if (item === undefined) return line;
    const { entry } = upgradeJob(line, "");
    const upgraded = { for: setting, normalization, items: [entry] };
    const at = toMs(line["at"]);
    if (at === null || (step !== "unknown" && step !== "void" && !isAmount(cost))) return upgraded;
    // Each submission has one line in which it leaves, and one in which its cost is known.
    const charged = isDayValue(day) ? day : dayOf(at);
    const [submitted, back, credits] = this.#spent.get(`${String(setting)} ${charged}`) ?? [0, 0, 0];
    const price = isAmount(cost) ? cost : 0;
    const spent = [
      submitted + Number(step === "unknown"),
      back + Number(step === "void"),
      credits + price,
    ] as const;
    this.#spent.set(`${String(setting)} ${charged}`, spent);
    const prices = isAmount(cost) ? [[toMs(line["ended"]) ?? at, cost]] : [];
    return { ...upgraded, spent: [[charged, OLD, OLD, ...spent]], prices };
  }
}
