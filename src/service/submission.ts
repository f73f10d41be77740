import { DataError, TransientError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Healing, Submission } from "../sync/jobs.ts";
import { TAKEN } from "./assumptions.ts";
import type { Client, Posted } from "./client.ts";
import { envelopeCode, statusError } from "./failures.ts";

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

/**
 * Submits one item, once.
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
    case "limited":
      return { kind: "refused", error: posted.error, heals: "limit" };
    case "unsent":
      return {
        kind: "refused",
        error: posted.error,
        heals: posted.error instanceof TransientError ? "time" : "operator",
      };
    case "unanswered":
      return { kind: "unknown", error: posted.error };
    case "answered":
      return judge(what, posted, read);
  }
}

function judge(
  what: string,
  { status, value, answered }: Extract<Posted, { kind: "answered" }>,
  read: (value: JsonObject, answered: number) => Submission | undefined,
): Submission {
  const code = envelopeCode(value) ?? resultCode(value);
  if (code === undefined && TAKEN.has(status)) {
    const submission = isObject(value) ? read(value, answered) : undefined;
    return submission ?? { kind: "unknown", error: unreadable(what) };
  }
  const error = statusError(what, status, code);
  const heals = REFUSALS.get(code ?? "") ?? REFUSING_STATUSES.get(status) ?? otherwise(status);
  return heals === undefined ? { kind: "unknown", error } : { kind: "refused", error, heals };
}

/** A submission may fail in the words of a result. */
function resultCode(value: unknown): string | undefined {
  if (!isObject(value) || value["status"] !== "error") return undefined;
  const { error_code } = value;
  return typeof error_code === "string" ? error_code : undefined;
}

/** A server that has failed, or waited in vain, may have taken it. */
const otherwise = (status: number): Healing | undefined =>
  status >= 400 && status < 500 && status !== 408 ? "operator" : undefined;

const unreadable = (what: string): DataError =>
  new DataError(`Cannot ${what}: the service has taken it, but its answer names no job`);
