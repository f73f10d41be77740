import { ConnectorError, DataError, TransientError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import { instant } from "../base/time.ts";
import type { Client } from "../service/client.ts";
import { envelopeCode, knownCode, retryWhen } from "../service/error-table.ts";
import type { JobReply, JobType, SubmitReply } from "./job-type.ts";

/** Submits one item with one request. The caller has already waited for the request's slot. */
export async function submitOnce(client: Client, type: JobType, item: string): Promise<SubmitReply> {
  const { what, path } = type.submit;
  const posted = await client.post(what, path, type.bodyOf(item));
  if (posted.kind === "unanswered") return { kind: "unknown", error: posted.error, cost: 0 };
  if (posted.kind !== "answered") {
    const unsent = posted.error instanceof TransientError ? "time" : "operator";
    const why = posted.kind === "limited" ? "limit" : unsent;
    return { kind: "refused", error: posted.error, why, code: posted.error.code ?? "" };
  }
  const { status, value, answered } = posted;
  const code = envelopeCode(value) ?? resultCode(value);
  const why = retryWhen(status, code);
  const isAnswer = status >= 200 && status < 300;
  // Any 2xx status counts: the interface names no status of a taken submission, and no form of a paid response.
  const isAccepted = isAnswer && (code === undefined || (type.polling === null && why === undefined));
  const taken = isAccepted && value !== undefined ? type.taken(value, item, answered) : undefined;
  if (taken !== undefined) return taken;
  const cost = isAnswer ? costIn(type, value) : 0;
  if (isAccepted) {
    const error = new DataError(
      `Cannot ${what}: the service accepted it, but its answer is cut or names no job`,
    );
    return { kind: "unknown", error, cost };
  }
  const error = client.refusal(what, status, code);
  return why === undefined || cost > 0
    ? { kind: "unknown", error, cost }
    : { kind: "refused", error, why, code: code ?? `status ${status}` };
}

/** The error code, if the reply to a submission has the form of a failed result. */
function resultCode(value: unknown): string | undefined {
  const { status, error_code } = isObject(value) ? value : {};
  return status === "error" && typeof error_code === "string" ? knownCode(error_code) : undefined;
}

/** Polls one job. @throws ConnectorError only for a problem of all jobs: an invalid key, or the end of the run */
export async function askOnce(client: Client, type: JobType, jobId: string): Promise<JobReply> {
  const { what, path } = type.collect;
  const place = path.replace("{job}", () => toSegment(jobId));
  try {
    return await client.ask(what, place, (...answer) => replyOf(client, type, ...answer));
  } catch (error) {
    if (!(error instanceof ConnectorError) || error.scope === "run") throw error;
    if (error instanceof TransientError) return { kind: "silent", error, code: "no answer" };
    return { kind: "unusable", error, code: error.code ?? "no usable answer" };
  }
}

function replyOf(client: Client, type: JobType, status: number, value: unknown): JobReply {
  const { what } = type.collect;
  const code = envelopeCode(value);
  const refusal = client.refusal(what, status, code);
  if (refusal.scope === "run") throw refusal;
  const isAnswer = status < 300;
  const odd = new TransientError(`Cannot ${what}: the answer is not of the interface's form`);
  return (
    type.result(status, value) ?? {
      kind: status === 403 ? "denied" : code === "JOB_NOT_FOUND" ? "known" : "unusable",
      ...{ error: isAnswer ? odd : refusal, code: code ?? `status ${status}` },
      ...{ isRetryable: isAnswer || status >= 500, cost: isAnswer ? costIn(type, value) : 0 },
    }
  );
}

/** The program searches at most this many levels and parts of an answer for a cost. */
const COST_LEVELS = 6;
const COST_PARTS = 1_000;

/** The highest cost that an answer of unknown form names anywhere, in JSON or in text. */
function costIn(type: JobType, value: unknown, levels = COST_LEVELS): number {
  const [, credits_used] =
    typeof value === "string" ? (/"credits_used"\s*:\s*"?([\d.]+)/.exec(value) ?? []) : [];
  const parts = typeof value === "object" && value !== null && levels > 0 ? Object.values(value) : [];
  const inner = parts.slice(0, COST_PARTS).map((part) => costIn(type, part, levels - 1));
  return Math.max(type.costOf(credits_used === undefined ? value : { credits_used }), ...inner);
}

/** The fields of an answer: fields of the envelope, and fields in its `data`. */
export function fieldsOf(value: unknown): JsonObject {
  const { data, ...envelope } = objectOf(value);
  return { ...envelope, ...objectOf(data) };
}

/** The job of a taken submission; undefined if the answer names no job, or an unusable id. */
export function takenJob(value: unknown): SubmitReply | undefined {
  const { job_id: jobId, poll_after } = fieldsOf(value);
  if (typeof jobId !== "string" || !isUsableId(jobId)) return undefined;
  return { kind: "taken", jobId, due: toMoment(poll_after) };
}

/** An id of the service, as one segment of a path. @throws DataError for an id that would change the path or is too long */
export function toSegment(id: string): string {
  if (isUsableId(id)) return encodeURIComponent(id);
  const why = `it has ${id.length} characters or contains what no path may contain`;
  throw new DataError(`Cannot use an id of the service: ${why}. Tell the service's owner`);
}

/** Whether an id can be in a path: 1 to 200 characters of well-formed Unicode, not only dots. */
const isUsableId = (id: string): boolean =>
  id !== "" && id.length <= 200 && !/^\.{1,2}$/.test(id) && !/\p{Surrogate}/u.test(id);

/** A moment that the service names, as epoch ms; null for anything else. Without a zone the moment is UTC. */
export function toMoment(value: unknown): number | null {
  const ms = typeof value === "string" ? instant(value) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** The newest of the date-times, in UTC to the millisecond; null if there is none. */
export function toCursor(values: readonly unknown[]): string | null {
  let newest = Number.NEGATIVE_INFINITY;
  for (const value of values) newest = Math.max(newest, toMoment(value) ?? newest);
  return Number.isFinite(newest) ? new Date(newest).toISOString() : null;
}
