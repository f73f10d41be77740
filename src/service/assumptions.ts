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
