import { isUsableId } from "../api/address.ts";
import type { Client, Posted } from "../api/client.ts";
import { envelopeCode, retryWhen } from "../api/error-table.ts";
import { ConfigError, ConnectorError, DataError, TransientError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import { parseInstant } from "../time.ts";
import type { Answer, JobReply, Refusal, Submission } from "./job-type.ts";
import { OUT_OF_CREDITS } from "./wanted.ts";

/** Paths of the jobs. The interface fixes all but the submission of an e-mail check, which `endpoints.email_check` overrides. */
export const CHECK_RESULT = "/api/v1/public/verify";
export const LOOKUP = "/api/v1/external/company-lookup";
export const VERIFICATION = "/api/v1/external/verify-email";

/** A job id that no service has handed out, to see what a key may do without buying anything. */
export const MADE_UP_JOB = "job_0_check";

/** Statuses by which the service may say that it has taken a submission: the interface does not say which. */
const TAKEN: ReadonlySet<number> = new Set([200, 201, 202]);

/** Objects and lists deeper than this are no answer of the interface. */
const DEEPEST = 1_000;
/** More than any answer costs: a number of the service's that is larger is a slip. */
const DEAREST = 1_000_000_000;

/** Any status in which a job's result may come: an error is a result too. */
export const isResultStatus = (status: number): boolean => status < 300 || status >= 400;

/** Fields of a submission's answer: beside the envelope, or in its `data`. */
export function submittedFields(value: JsonObject): JsonObject {
  const { data } = value;
  return isObject(data) ? { ...value, ...data } : value;
}

/** An id by which a job can be asked for; undefined for anything else. */
export function jobIdIn(value: JsonObject): string | undefined {
  const { job_id } = submittedFields(value);
  return typeof job_id === "string" && isUsableId(job_id) ? job_id : undefined;
}

/** What helps after a refusal; undefined for a submission that may have been taken. */
function refusalOf(status: number, code: string | undefined): Refusal | undefined {
  return OUT_OF_CREDITS.has(code ?? "") ? "credits" : retryWhen(status, code);
}

/**
 * Submits one item, once, in a turn that was taken before.
 * @param read what an answer by which the service has taken the item says; undefined if it says nothing of use
 */
export async function submitOnce(
  client: Client,
  what: string,
  path: string,
  body: JsonObject,
  read: (value: JsonObject, answered: number) => Submission | undefined,
): Promise<Submission> {
  const posted = await client.post(what, path, body);
  switch (posted.kind) {
    case "limited": {
      const code = posted.error.code ?? "";
      return {
        kind: "refused",
        error: posted.error,
        why: OUT_OF_CREDITS.has(code) ? "credits" : "limit",
        code,
      };
    }
    case "unsent": {
      const why = posted.error instanceof TransientError ? "time" : "operator";
      return { kind: "refused", error: posted.error, why, code: posted.error.code ?? "" };
    }
    case "unanswered":
      return { kind: "unknown", error: posted.error };
    case "answered":
      return judge(client, what, posted, read);
  }
}

function judge(
  client: Client,
  what: string,
  { status, value, answered }: Extract<Posted, { kind: "answered" }>,
  read: (value: JsonObject, answered: number) => Submission | undefined,
): Submission {
  const code = envelopeCode(value) ?? resultCode(value);
  if (code === undefined && TAKEN.has(status)) {
    const taken = isObject(value) && !isTooDeep(value) ? read(value, answered) : undefined;
    return taken ?? { kind: "unknown", error: unreadable(what) };
  }
  const error = client.refusal(what, status, code);
  const why = refusalOf(status, code);
  if (why === undefined) return { kind: "unknown", error };
  return { kind: "refused", error, why, code: code ?? `status ${status}` };
}

/** A submission may fail in the words of a result. */
function resultCode(value: unknown): string | undefined {
  if (!isObject(value) || value["status"] !== "error") return undefined;
  const { error_code } = value;
  return typeof error_code === "string" ? error_code : undefined;
}

const unreadable = (what: string): DataError =>
  new DataError(`Cannot ${what}: the service accepted it, but its answer names no job that can be asked for`);

/**
 * Asks for the result of one job, once. Throws only what concerns all jobs: a key that is not valid, and the end of the run.
 * @param read what the answer says; undefined for what is no answer about the job
 */
export async function askOnce(
  client: Client,
  what: string,
  path: string,
  read: (status: number, value: unknown) => JobReply | undefined,
): Promise<JobReply> {
  try {
    return await client.ask(what, path, isResultStatus, (status, value) => {
      const code = envelopeCode(value);
      if (code === "INVALID_API_KEY" || (code === undefined && status === 401))
        throw client.refusal(what, status, "INVALID_API_KEY");
      return (isTooDeep(value) ? undefined : read(status, value)) ?? unusableOf(client, what, status, value);
    });
  } catch (error) {
    if (error instanceof ConfigError && error.code === "INVALID_API_KEY") throw error;
    if (error instanceof TransientError) return { kind: "silent", error };
    if (error instanceof ConnectorError)
      return { kind: "unusable", error, code: error.code ?? "", isRetryable: false, isKnownJob: false };
    throw error;
  }
}

function unusableOf(client: Client, what: string, status: number, value: unknown): JobReply {
  const code = envelopeCode(value);
  const label = code ?? `status ${status}`;
  const error =
    status < 300
      ? new TransientError(`Cannot ${what}: the answer is not of the interface's form`)
      : client.refusal(what, status, code);
  if (status === 403) return { kind: "denied", error, code: label };
  return {
    kind: "unusable",
    error,
    code: label,
    isRetryable: status < 300 || status >= 500,
    isKnownJob: code === "JOB_NOT_FOUND",
  };
}

/** A moment that the service names, as epoch ms; null for anything else. */
export function toMoment(value: unknown): number | null {
  if (typeof value !== "string") return null;
  const instant = parseInstant(value);
  const ms = instant === null ? Date.parse(value) : instant.seconds * 1000 + milliseconds(instant.fraction);
  return Number.isNaN(ms) ? null : ms;
}

const milliseconds = (fraction: string): number => Number(fraction.slice(0, 3).padEnd(3, "0"));

/** The newest of the date-times, in UTC to the millisecond; null if there is none. */
export function toCursor(values: readonly unknown[]): string | null {
  const moments = values.map(toMoment).filter((moment) => moment !== null);
  return moments.length === 0 ? null : new Date(Math.max(...moments)).toISOString();
}

/** What an answer cost: the larger of what the service says and the number of contacts. */
export function costOf({ credits_used, contacts }: JsonObject): number {
  const said =
    typeof credits_used === "number" || typeof credits_used === "string" ? Number(credits_used) : 0;
  const found = Array.isArray(contacts) ? contacts.length : 0;
  return Math.min(DEAREST, Math.max(found, Number.isNaN(said) ? 0 : said));
}

/** Whether a value is nested so deeply that no usual reader of ours takes it. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEPEST) return true;
    level = level.flatMap((inner) =>
      typeof inner === "object" && inner !== null ? Object.values(inner) : [],
    );
  }
  return false;
}

/** An answer that failed in no part. */
export const plainAnswer = (value: JsonObject, cursor: string | null): Answer => ({
  value,
  cursor,
  cost: 0,
  failed: false,
  code: null,
  sources: [],
});

/** The client of a kind of job that is opened to work. */
export function usable(client: Client | undefined): Client {
  if (client === undefined) throw new Error("Cannot work on jobs: they were opened only to be looked at");
  return client;
}
