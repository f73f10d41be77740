import type { Config } from "../config.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { Answer, Collected, Submission } from "../sync/jobs.ts";
import { isResultStatus, LOOKUP, submittedFields } from "./assumptions.ts";
import type { Client } from "./client.ts";
import { envelopeCode, inExternalWords } from "./failures.ts";
import { readRefusal, type ToLines, toCursor, toMoment } from "./job-answer.ts";
import { submitOnce } from "./submission.ts";

const WHAT = "collect a company look-up";

export async function submitLookup(client: Client, config: Config, domain: string): Promise<Submission> {
  const { webhookUrl = null } = config.companyLookup ?? {};
  const body = { domain, ...(webhookUrl !== null && { webhook_url: webhookUrl }) };
  const submission = await submitOnce(client, "submit a company look-up", LOOKUP, body, (value) => {
    const { job_id } = submittedFields(value);
    return typeof job_id === "string" && job_id !== ""
      ? { kind: "submitted", jobId: job_id, notBefore: null }
      : undefined;
  });
  if ("error" in submission) inExternalWords(submission.error);
  return submission;
}

export async function collectLookup(client: Client, jobId: string, toLines: ToLines): Promise<Collected> {
  try {
    return await client.ask(
      WHAT,
      `${LOOKUP}/${encodeURIComponent(jobId)}/result`,
      isResultStatus,
      (status, value) => readLookup(status, value, jobId, toLines),
    );
  } catch (error) {
    throw error instanceof Error ? inExternalWords(error) : error;
  }
}

/** Undefined for what is no answer about the job. */
function readLookup(status: number, value: unknown, jobId: string, toLines: ToLines): Collected | undefined {
  const { status: said, scheduled_processing_time: scheduled } = isObject(value) ? value : {};
  if (status === 202 || (status === 200 && (said === "processing" || said === "queued"))) {
    return { kind: "pending", processing: said !== "queued", notBefore: toMoment(scheduled) };
  }
  if (isObject(value) && (said === "success" || said === "error"))
    return { kind: "answered", answer: toAnswer(value, jobId, toLines) };
  return readRefusal(WHAT, status, envelopeCode(value));
}

/** An error costs nothing, so that all but one that says there is nothing to find is worth another try. */
function toAnswer(value: JsonObject, jobId: string, toLines: ToLines): Answer {
  const { job_id, status, contacts, credits_used: credits, created_at, error_code } = value;
  const found = Array.isArray(contacts) ? contacts.length : 0;
  return {
    lines: toLines([{ ...value, job_id: job_id ?? jobId }]),
    cursor: toCursor([created_at]),
    credits: typeof credits === "number" ? credits : found,
    again: status === "error" && error_code !== "COMPANY_NOT_FOUND",
    spent: status === "error" && error_code === "INSUFFICIENT_CREDITS",
  };
}
