import { DataError, TransientError } from "../errors.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Submission } from "../sync/job-family.ts";
import { healingOf, TAKEN } from "./assumptions.ts";
import type { Client, Posted } from "./client.ts";
import { envelopeCode, statusError } from "./failures.ts";

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
  const heals = healingOf(status, code);
  return heals === undefined ? { kind: "unknown", error } : { kind: "refused", error, heals };
}

/** A submission may fail in the words of a result. */
function resultCode(value: unknown): string | undefined {
  if (!isObject(value) || value["status"] !== "error") return undefined;
  const { error_code } = value;
  return typeof error_code === "string" ? error_code : undefined;
}

const unreadable = (what: string): DataError =>
  new DataError(`Cannot ${what}: the service has taken it, but its answer names no job`);
