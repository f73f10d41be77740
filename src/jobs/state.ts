import { ConfigError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { StreamState } from "../streams/event.ts";
import { type Day, dayOf, FIRST, isDay, LAST } from "../time.ts";
import { type Digesting, isDigest, OLD_DIGESTS } from "./digest.ts";
import { FinishedItems } from "./finished-items.ts";
import { NORMALIZATION } from "./items.ts";
import { type Job, newJob, type Step } from "./job.ts";
import type { InputCursor, Knowledge, Ledger, Spent } from "./store.ts";

const VERSION = 2;
const STEPS: ReadonlySet<unknown> = new Set<Step>([
  "unknown",
  "open",
  "answered",
  "failed",
  "refused",
  "doubted",
]);

/** What a stream begins with. `knowledge` null: there is no state at all. */
export type Saved = { readonly knowledge: Knowledge | null; readonly cursor: string | null };

/** Lists, because Meltano merges objects: an item that left an object would come back. Every key is always written. */
export function toJobState(cursorField: string, cursor: string | null, knowledge: Knowledge): StreamState {
  const [current, ...older] = knowledge.ledgers.map(toLedger);
  return {
    version: VERSION,
    [cursorField]: cursor,
    ...current,
    older,
    spent: [...knowledge.spent].map(([day, { submitted, credits }]) => [day, submitted, credits]),
    prices: knowledge.prices,
    inputs: knowledge.inputs,
  };
}

const toLedger = ({ digests, jobs, finished }: Ledger): object => ({
  ...digests,
  jobs: [...jobs].map(([item, job]) => ({ item, ...toFields(job) })),
  done: finished.toPacked(),
});

/** A job as state and receipts write it. */
export function toFields(job: Job): JsonObject {
  const { at, jobId, notBefore, asked, ended, isRefresh, ...rest } = job;
  return {
    ...rest,
    at: toText(at),
    job_id: jobId,
    not_before: toText(notBefore),
    asked: toText(asked),
    ended: toText(ended),
    is_refresh: isRefresh,
  };
}

/** The job that fields describe; undefined if they describe none. */
export function parseFields(fields: JsonObject): Job | undefined {
  const { step, at, day, job_id, sources, owed, code, cost } = fields;
  const atMs = toMs(at);
  const jobId = typeof job_id === "string" && job_id !== "" ? job_id : null;
  if (!STEPS.has(step) || atMs === null || (step === "open" && jobId === null)) return undefined;
  return {
    step: step as Step,
    at: atMs,
    day: typeof day === "string" && isDay(day) ? day : dayOf(atMs),
    jobId,
    notBefore: toMs(fields["not_before"]),
    asked: toMs(fields["asked"]),
    misses: toCount(fields["misses"]),
    tries: toCount(fields["tries"]),
    unknowns: toCount(fields["unknowns"]),
    cost: isAmount(cost) ? cost : null,
    ended: toMs(fields["ended"]),
    code: typeof code === "string" ? code : null,
    sources: texts(sources),
    isRefresh: fields["is_refresh"] === true,
    owed: texts(owed),
  };
}

/** Reads the state of a job stream. Throws ConfigError for an unknown shape: without its state a stream buys again. */
export function parseJobState(stream: string, state: unknown, cursorField: string): Saved {
  if (state === undefined || state === null || (isObject(state) && Object.keys(state).length === 0))
    return { knowledge: null, cursor: null };
  const fields = isObject(state) ? state : {};
  const { version, [cursorField]: cursor = null } = fields;
  if (cursor !== null && typeof cursor !== "string")
    throw unusable(stream, `its "${cursorField}" is no text`);
  if (version === 1) return { knowledge: parseOld(stream, fields), cursor };
  if (version !== VERSION)
    throw unusable(
      stream,
      typeof version === "number" && version > VERSION
        ? `a newer version of this program wrote it (version ${version})`
        : `its version is not ${VERSION}`,
    );
  const { older, spent, prices, inputs } = fields;
  const ledgers = [fields, ...(Array.isArray(older) ? older : [])].map((ledger) =>
    parseLedger(stream, ledger),
  );
  return {
    cursor,
    knowledge: {
      ledgers,
      spent: parseSpent(stream, spent),
      prices: Array.isArray(prices) ? prices.filter(isAmount) : [],
      inputs: Array.isArray(inputs) ? inputs.flatMap(parseInput) : [],
    },
  };
}

function parseLedger(stream: string, value: unknown): Ledger {
  const { salt, normalization, jobs, done } = isObject(value) ? value : {};
  if (!(salt === null || typeof salt === "string") || typeof normalization !== "number")
    throw unusable(stream, 'it has no "salt" and "normalization"');
  if (normalization > NORMALIZATION) throw unusable(stream, "a newer version of this program wrote it");
  if (!Array.isArray(jobs) || !Array.isArray(done))
    throw unusable(stream, 'it has no lists "jobs" and "done"');
  const digests: Digesting = { salt, normalization };
  const finished = new FinishedItems();
  for (const [index, entry] of done.entries()) {
    const [day, packed] = Array.isArray(entry) ? entry : [];
    if (
      !(
        typeof day === "string" &&
        isDay(day) &&
        typeof packed === "string" &&
        finished.addPacked(day, packed)
      )
    )
      throw unusable(stream, `done[${index}] is not what this connector writes`);
  }
  return { digests, jobs: new Map(jobs.map((job, index) => parseEntry(stream, job, index))), finished };
}

function parseEntry(stream: string, entry: unknown, index: number): [string, Job] {
  const { item, ...fields } = isObject(entry) ? entry : {};
  const job = parseFields(fields);
  if (!isDigest(item) || job === undefined)
    throw unusable(stream, `jobs[${index}] is not what this connector writes`);
  return [item, job];
}

function parseSpent(stream: string, spent: unknown): ReadonlyMap<Day, Spent> {
  if (!Array.isArray(spent)) throw unusable(stream, 'it has no list "spent"');
  return new Map(
    spent.map((entry, index) => {
      const [day, submitted, credits] = Array.isArray(entry) ? entry : [];
      const isWhole = typeof day === "string" && isDay(day) && isAmount(submitted) && isAmount(credits);
      if (!isWhole) throw unusable(stream, `spent[${index}] is not what this connector writes`);
      return [day as Day, { submitted, credits }];
    }),
  );
}

/** A cursor that cannot be read only costs a second look. */
function parseInput(value: unknown): InputCursor[] {
  const { from, filters, through, full } = isObject(value) ? value : {};
  const isWhole =
    typeof from === "string" &&
    typeof filters === "string" &&
    typeof through === "string" &&
    typeof full === "string" &&
    isDay(through) &&
    isDay(full);
  return isWhole ? [{ from, filters, through, full }] : [];
}

/** How the steps of version 0.1.0 are understood. */
const OLD_STEPS: Readonly<Record<string, Step | "done">> = {
  submitting: "unknown",
  submitted: "open",
  again: "open",
  lost: "open",
  denied: "open",
  done: "done",
};

/** The state of version 0.1.0: nothing of it is bought again. */
function parseOld(stream: string, { jobs: entries }: JsonObject): Knowledge {
  if (!Array.isArray(entries)) throw unusable(stream, 'it has no list "jobs"');
  const jobs = new Map<string, Job>();
  const finished = new FinishedItems();
  for (const [index, entry] of entries.entries()) {
    const { item, step, at, job_id, not_before } = isObject(entry) ? entry : {};
    const known = typeof step === "string" && Object.hasOwn(OLD_STEPS, step) ? OLD_STEPS[step] : undefined;
    const atMs = toMs(at);
    const jobId = typeof job_id === "string" && job_id !== "" ? job_id : null;
    if (!isDigest(item) || known === undefined || atMs === null || (step === "submitted" && jobId === null))
      throw unusable(stream, `jobs[${index}] is not what this connector writes`);
    if (known === "done") {
      finished.add(item, dayOf(atMs));
      continue;
    }
    const job = { ...newJob(atMs, dayOf(atMs), [stream]), jobId, notBefore: toMs(not_before) };
    // A verification that was to be tried again has no job to ask for.
    jobs.set(item, { ...job, step: jobId === null ? "unknown" : known });
  }
  return { ledgers: [{ digests: OLD_DIGESTS, jobs, finished }], spent: new Map(), prices: [], inputs: [] };
}

export const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

export function toMs(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return ms >= FIRST && ms <= LAST ? ms : null;
}

const isAmount = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value >= 0;

const toCount = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;

const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. It knows what was paid for, so it is never ignored. Restore it, or ` +
      "remove it to buy again what the receipts do not know",
  );
