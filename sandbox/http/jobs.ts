import type { Account } from "../data/account.ts";
import type { Submitted } from "../data/job-options.ts";
import { hashOf } from "../data/random.ts";
import { ServiceError } from "../data/service-error.ts";
import { wireJson } from "../data/wire-text.ts";
import { type Answer, jsonAnswer } from "../faults/answer.ts";
import type { Exchange } from "./query.ts";

export function submitLookup({ account, body }: Exchange): Answer {
  const { domain, webhook_url: webhook } = fieldsOf(body, "INVALID_REQUEST");
  const isUrl = webhook === undefined || (typeof webhook === "string" && URL.canParse(webhook));
  if (typeof domain !== "string" || !/^[^\s@/]+\.[^\s@/]+$/.test(domain) || !isUrl)
    throw new ServiceError(400, "INVALID_REQUEST", "domain must be a domain, webhook_url a URL");
  const jobId = account.jobs.lookups.submit(domain, webhook === undefined ? undefined : String(webhook));
  accept(account, "company-lookup", domain, jobId);
  const data = { job_id: jobId, domain, sources: ["contacts"], scheduled_for: "immediate" };
  return jsonAnswer(account.jobs.status, wireJson({ success: true, data }));
}

export function lookupResult({ account, params }: Exchange): Answer {
  const { status, body } = account.jobs.lookups.answer(idOf(params));
  return jsonAnswer(status, wireJson(body));
}

export function submitCheck({ account, body }: Exchange): Answer {
  const email = emailOf(body, "INVALID_BODY");
  const { jobId, pollAfter } = account.jobs.checks.submit(email);
  accept(account, "email-check", email, jobId);
  return jsonAnswer(
    account.jobs.status,
    wireJson({ success: true, job_id: jobId, email, poll_after: pollAfter }),
  );
}

export function checkView({ account, params }: Exchange): Answer {
  return jsonAnswer(200, wireJson(account.jobs.checks.view(idOf(params))));
}

export function verifyEmail({ account, body }: Exchange): Answer {
  const email = emailOf(body, "INVALID_REQUEST");
  accept(account, "email-verification", email, null);
  const deliverable = hashOf(email) % 3 !== 0;
  const status = deliverable ? "deliverable" : "undeliverable";
  return jsonAnswer(
    200,
    wireJson({ success: true, email, status, checks: { syntax: true, mailbox: deliverable } }),
  );
}

function accept(account: Account, kind: Submitted["kind"], item: string, jobId: string | null): void {
  account.jobs.submitted.push({ kind, item, jobId, at: account.clock.now() });
}

function emailOf(body: string, code: string): string {
  const { email } = fieldsOf(body, code);
  if (typeof email !== "string" || !/^[^\s@]+@[^\s@]+$/.test(email))
    throw new ServiceError(400, code, "email must be an e-mail address");
  return email;
}

function fieldsOf(body: string, code: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {}
  throw new ServiceError(400, code, "The body must be a JSON object");
}

const idOf = (params: Exchange["params"]): string => decodeURIComponent(params["jobId"] ?? "");
