import { createHash } from "node:crypto";
import { ConfigError } from "../errors.ts";
import { isObject } from "../json.ts";
import type { StreamState } from "../sync/event.ts";
import type { Job, Jobs, Step } from "../sync/job-moves.ts";
import type { Saved } from "../sync/jobs.ts";

const VERSION = 1;
const STEPS: ReadonlySet<unknown> = new Set<Step>([
  "submitting",
  "submitted",
  "again",
  "done",
  "lost",
  "denied",
]);

/** What stands for an item in state: 96 bits of its SHA-256, so that no state holds a domain or an e-mail. */
export const digestOf = (item: string): string =>
  createHash("sha256").update(item, "utf8").digest().subarray(0, 12).toString("base64url");

/** The jobs are a list, because Meltano merges objects: an item that left an object would come back. */
export function toJobState(cursorField: string): (jobs: Jobs, cursor: string | null) => StreamState {
  return (jobs, cursor) => ({
    version: VERSION,
    [cursorField]: cursor,
    jobs: [...jobs].map(([item, job]) => toEntry(item, job)),
  });
}

/** Reads the blob of a job stream. Throws ConfigError for an unknown shape: without its state a stream buys again. */
export function parseJobState(stream: string, blob: unknown, cursorField: string): Saved {
  if (blob === undefined || blob === null || (isObject(blob) && Object.keys(blob).length === 0))
    return { jobs: null, cursor: null };
  const { version, jobs, [cursorField]: cursor = null } = isObject(blob) ? blob : {};
  if (version !== VERSION) throw unusable(stream, `its version is not ${VERSION}`);
  if (!Array.isArray(jobs)) throw unusable(stream, 'it has no list "jobs"');
  if (cursor !== null && typeof cursor !== "string")
    throw unusable(stream, `its "${cursorField}" is no text`);
  return { jobs: new Map(jobs.map((entry, index) => parseEntry(stream, entry, index))), cursor };
}

function toEntry(item: string, { step, at, jobId, notBefore, tries, resent }: Job): object {
  return { item, step, at: toText(at), job_id: jobId, not_before: toText(notBefore), tries, resent };
}

function parseEntry(stream: string, entry: unknown, index: number): [string, Job] {
  const { item, step, at, job_id, not_before, tries, resent } = isObject(entry) ? entry : {};
  const atMs = toMs(at);
  const jobId = typeof job_id === "string" && job_id !== "" ? job_id : null;
  const isWhole =
    typeof item === "string" && isStep(step) && atMs !== null && (jobId !== null || step !== "submitted");
  if (!isWhole) throw unusable(stream, `jobs[${index}] is not what this connector writes`);
  const notBefore = toMs(not_before);
  return [item, { step, at: atMs, jobId, notBefore, tries: toCount(tries), resent: toCount(resent) }];
}

const isStep = (value: unknown): value is Step => STEPS.has(value);

const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

function toMs(value: unknown): number | null {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

const toCount = (value: unknown): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 ? value : 0;

const unusable = (stream: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the state of "${stream}": ${why}. It knows what has been paid for, so it is never ignored: restore it, or ` +
      "remove it to buy anew",
  );
