import type { Healing } from "../sync/job-family.ts";

/** Paths of the jobs. The interface fixes all but the submission of an e-mail check, which `endpoints.email_check` overrides. */
export const CHECK_RESULT = "/api/v1/public/verify";
export const LOOKUP = "/api/v1/external/company-lookup";
export const VERIFICATION = "/api/v1/external/verify-email";

/** Statuses by which the service may say that it has taken a submission: the interface does not say which. */
export const TAKEN: ReadonlySet<number> = new Set([200, 201, 202]);

/** Any status in which a job's result may come: an error is a result too. */
export const isResultStatus = (status: number): boolean => status < 300 || status >= 400;

/** A job id that no service has handed out, to see what a key may do without buying anything. */
export const MADE_UP_JOB = "job_0_check";

/** Fields of a submission's answer: beside the envelope, or in its `data`. */
export function submittedFields(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { data } = value;
  return typeof data === "object" && data !== null ? { ...value, ...data } : value;
}

/** Codes by which the service says that it has not taken a submission, and who can heal that. */
const REFUSALS: ReadonlyMap<string, Healing> = new Map([
  ["INVALID_API_KEY", "operator"],
  ["ENDPOINT_NOT_ON_PLAN", "operator"],
  ["SUBSCRIPTION_INACTIVE", "operator"],
  ["SOURCE_NOT_ALLOWED", "operator"],
  ["ACCESS_DENIED", "operator"],
  ["QUOTA_EXCEEDED", "operator"],
  ["INSUFFICIENT_CREDITS", "operator"],
  ["INVALID_BODY", "other-item"],
  ["INVALID_PARAMETER", "other-item"],
  ["INVALID_REQUEST", "other-item"],
  ["SOURCE_UNAVAILABLE", "time"],
  ["ORG_KIND_UNAVAILABLE", "time"],
  ["RATE_LIMIT_EXCEEDED", "time"],
  ["RATE_LIMITED", "time"],
  ["COMPANY_NOT_FOUND", "is-answer"],
  ["SOURCE_NOT_VERIFIABLE", "is-answer"],
]);

/** The same by status, where no such code came with it. What is in neither table may have been taken. */
const REFUSING_STATUSES: ReadonlyMap<number, Healing> = new Map([
  [400, "other-item"],
  [413, "other-item"],
  [422, "other-item"],
  [423, "time"],
]);

/** Who heals a submission that was refused; undefined for one that may have been taken: a server failed, or waited in vain. */
export function healingOf(status: number, code: string | undefined): Healing | undefined {
  const isRefusal = status >= 400 && status < 500 && status !== 408;
  return REFUSALS.get(code ?? "") ?? REFUSING_STATUSES.get(status) ?? (isRefusal ? "operator" : undefined);
}
