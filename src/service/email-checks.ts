import type { Config } from "../config.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Collected, Submission } from "../sync/jobs.ts";
import { CHECK_RESULT, isResultStatus, submittedFields } from "./assumptions.ts";
import type { Client } from "./client.ts";
import { envelopeCode } from "./failures.ts";
import { readRefusal, type ToLines, toCursor, toMoment } from "./job-answer.ts";
import { submitOnce } from "./submission.ts";

const WHAT = "collect an e-mail check";

export function submitCheck(client: Client, config: Config, email: string): Promise<Submission> {
  return submitOnce(client, "submit an e-mail check", config.endpoints.emailCheck, { email }, (value) => {
    const { job_id, poll_after } = submittedFields(value);
    return typeof job_id === "string" && job_id !== ""
      ? { kind: "submitted", jobId: job_id, notBefore: toMoment(poll_after) }
      : undefined;
  });
}

export function collectCheck(client: Client, jobId: string, toLines: ToLines): Promise<Collected> {
  const path = `${CHECK_RESULT}/${encodeURIComponent(jobId)}`;
  return client.ask(WHAT, path, isResultStatus, (status, value) =>
    status === 200 ? readView(value, jobId, toLines) : readRefusal(WHAT, status, envelopeCode(value)),
  );
}

/** Before the job is completed no answer means anything, not even one that is there. */
function readView(value: unknown, jobId: string, toLines: ToLines): Collected | undefined {
  if (!isObject(value) || envelopeCode(value) !== undefined) return undefined;
  const { email, status, sources, poll_after } = value;
  if (typeof status !== "string") return undefined;
  if (status !== "completed")
    return { kind: "pending", processing: status === "running", notBefore: toMoment(poll_after) };
  if (typeof email !== "string" || !isObject(sources)) return undefined;
  const records = Object.entries(sources).map(([source, answer]) => toRecord(jobId, email, source, answer));
  return {
    kind: "answered",
    answer: {
      lines: toLines(records),
      cursor: toCursor(records.map(({ checked_at }) => checked_at)),
      credits: 0,
      again: records.some(({ status: said }) => said !== "done"),
      spent: false,
    },
  };
}

function toRecord(jobId: string, email: string, source: string, answer: unknown): JsonObject {
  const {
    status = null,
    is_user = null,
    checked_at = null,
    cached = null,
    ...rest
  } = isObject(answer) ? answer : {};
  return { ...rest, job_id: jobId, email, source, status, is_user, checked_at, cached };
}
