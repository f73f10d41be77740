import { ConnectorError, DataError, TransientError } from "../base/errors.ts";
import { isObject, objectOf } from "../base/json.ts";
import { parseInstant } from "../base/time.ts";
import { isUsableId, toSegment } from "../service/address.ts";
import type { Client } from "../service/client.ts";
import type { CostScan } from "../service/cost-scan.ts";
import { envelopeCode, type RetryWhen, retryWhen } from "../service/error-table.ts";
import type { JobReply, JobType, Submission } from "./job-type.ts";
import { OUT_OF_CREDITS } from "./wanted.ts";

/** Any status in which a job's result may come: an error is a result too. */
export const isResultStatus = (status: number): boolean => status < 300 || status >= 400;

/** Submits one item, once, in a turn that was taken before. */
export async function submitOnce(client: Client, type: JobType, item: string): Promise<Submission> {
  const { what, path } = type.submit;
  const posted = await client.post(what, path, type.bodyOf(item));
  if (posted.kind === "unanswered") return { kind: "unknown", error: posted.error };
  if (posted.kind !== "answered") {
    const unsent = posted.error instanceof TransientError ? "time" : "operator";
    return refused(posted.error, posted.kind === "limited" ? "limit" : unsent, posted.error.code ?? "");
  }
  const { status, value, answered } = posted;
  const code = envelopeCode(value) ?? resultCode(value);
  const why = retryWhen(status, code);
  // The interface does not say by which status a submission is taken, nor what may stand in a response that is paid for.
  const isTaken = code === undefined || (type.polling === null && why === undefined);
  if (status >= 200 && status < 300 && isTaken) {
    const taken = value === undefined ? undefined : type.taken(value, item, answered);
    const said = "the service accepted it, but its answer names no job that can be asked for";
    return taken ?? { kind: "unknown", error: new DataError(`Cannot ${what}: ${said}`) };
  }
  const error = client.refusal(what, status, code);
  return why === undefined ? { kind: "unknown", error } : refused(error, why, code ?? `status ${status}`);
}

const refused = (error: Error, why: RetryWhen, code: string): Submission => ({
  ...{ kind: "refused", error, code },
  why: OUT_OF_CREDITS.has(code) ? "credits" : why,
});

/** A submission may fail in the words of a result. */
function resultCode(value: unknown): string | undefined {
  const { status, error_code } = isObject(value) ? value : {};
  return status === "error" && typeof error_code === "string" ? error_code : undefined;
}

/** Asks for the result of one job, once. Throws only what concerns all jobs: a key that is not valid, and the end of the run. */
export async function askOnce(client: Client, type: JobType, jobId: string): Promise<JobReply> {
  const { what, path } = type.collect;
  try {
    return await client.ask(
      what,
      path.replace("{job}", () => toSegment(jobId)),
      isResultStatus,
      (status, value, scan) => {
        if (scan.bytes > 0) return overlong(type, status, scan);
        const code = envelopeCode(value);
        const refusal = client.refusal(what, status, code);
        if (refusal.scope === "run") throw refusal;
        return type.result(status, value) ?? unusableReply(client, what, status, code);
      },
    );
  } catch (error) {
    if (!(error instanceof ConnectorError) || error.scope === "run") throw error;
    if (error instanceof TransientError) return { kind: "silent", error, code: "no answer" };
    return { kind: "unusable", error, code: error.code ?? "" };
  }
}

/** An answer that is too long to take in. Only the results of look-ups cost anything. */
function overlong({ collect, setting }: JobType, status: number, { bytes, credits }: CostScan): JobReply {
  const code = `an answer of ${Math.ceil(bytes / 1_048_576)} MiB`;
  const error = new DataError(`Cannot ${collect.what}: ${code} is longer than this program takes`);
  const cost = setting === "companyLookup" && status < 300 ? credits : 0;
  return { kind: "known", error, code, cost };
}

function unusableReply(client: Client, what: string, status: number, code: string | undefined): JobReply {
  const isAnswer = status < 300;
  const error = isAnswer
    ? new TransientError(`Cannot ${what}: the answer is not of the interface's form`)
    : client.refusal(what, status, code);
  return {
    kind: status === 403 ? "denied" : code === "JOB_NOT_FOUND" ? "known" : "unusable",
    ...{ error, code: code ?? `status ${status}`, isRetryable: isAnswer || status >= 500 },
  };
}

/**
 * The job by which a submission was taken; undefined if the answer names none that can be asked for. The fields stand
 * beside the envelope, or in its `data`.
 */
export function takenJob(value: unknown, dueField?: string): Submission | undefined {
  const { data, ...beside } = objectOf(value);
  const fields = { ...beside, ...objectOf(data) };
  const { job_id: jobId } = fields;
  if (typeof jobId !== "string" || !isUsableId(jobId)) return undefined;
  return { kind: "taken", jobId, notBefore: dueField === undefined ? null : toMoment(fields[dueField]) };
}

/** A moment that the service names, as epoch ms, in UTC where it names no zone; null for anything else. */
export function toMoment(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const instant = parseInstant(value);
  if (instant === null)
    return [`${value}Z`, value].map((text) => Date.parse(text)).find((ms) => !Number.isNaN(ms)) ?? null;
  return instant.seconds * 1000 + Number(instant.fraction.slice(0, 3).padEnd(3, "0"));
}

/** The newest of the date-times, in UTC to the millisecond; null if there is none. */
export function toCursor(values: readonly unknown[]): string | null {
  const moments = values.map(toMoment).filter((moment) => moment !== null);
  return moments.length === 0 ? null : new Date(Math.max(...moments)).toISOString();
}
