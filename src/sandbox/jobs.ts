import type { Answer } from "./answer.ts";
import type { Clock } from "./clock.ts";
import { CompanyLookups } from "./company-lookups.ts";
import { EmailChecks } from "./email-checks.ts";
import { jsonAnswer, ServiceError } from "./envelope.ts";
import type { Exchange } from "./exchange.ts";
import type { SourceRecord } from "./sources.ts";
import { hashOf, type JobOptions, type Submitted } from "./submissions.ts";
import { wireJson } from "./wire-text.ts";

/** Everything that is submitted and then waited for. */
export type Jobs = {
  readonly lookups: CompanyLookups;
  readonly checks: EmailChecks;
  readonly submitted: Submitted[];
  readonly clock: Clock;
  /** By which a submission is answered. */
  readonly status: number;
};

export function openJobs(clock: Clock, sources: readonly SourceRecord[], options: JobOptions): Jobs {
  const slugs = sources.map(({ slug }) => slug);
  return {
    lookups: new CompanyLookups(clock, slugs[0] ?? "none", options),
    checks: new EmailChecks(clock, slugs, options),
    submitted: [],
    clock,
    status: options.status ?? 202,
  };
}

export function submitLookup({ account: { jobs }, body }: Exchange): Answer {
  const { domain, webhook_url: webhook } = fieldsOf(body, "INVALID_REQUEST");
  const isUrl = webhook === undefined || (typeof webhook === "string" && URL.canParse(webhook));
  if (typeof domain !== "string" || !/^[^\s@/]+\.[^\s@/]+$/.test(domain) || !isUrl)
    throw new ServiceError(400, "INVALID_REQUEST", "domain must be a domain, webhook_url a URL");
  const jobId = jobs.lookups.submit(domain, webhook === undefined ? undefined : String(webhook));
  note(jobs, "company-lookup", domain, jobId);
  const data = { job_id: jobId, domain, sources: ["contacts"], scheduled_for: "immediate" };
  return jsonAnswer(jobs.status, wireJson({ success: true, data }));
}

export function lookupResult({ account: { jobs }, params }: Exchange): Answer {
  const { status, body } = jobs.lookups.answer(idOf(params));
  return jsonAnswer(status, wireJson(body));
}

export function submitCheck({ account: { jobs }, body }: Exchange): Answer {
  const email = emailOf(body, "INVALID_BODY");
  const { jobId, pollAfter } = jobs.checks.submit(email);
  note(jobs, "email-check", email, jobId);
  return jsonAnswer(jobs.status, wireJson({ success: true, job_id: jobId, email, poll_after: pollAfter }));
}

export function checkView({ account: { jobs }, params }: Exchange): Answer {
  return jsonAnswer(200, wireJson(jobs.checks.view(idOf(params))));
}

export function verifyEmail({ account: { jobs }, body }: Exchange): Answer {
  const email = emailOf(body, "INVALID_REQUEST");
  note(jobs, "email-verification", email, null);
  const deliverable = hashOf(email) % 3 !== 0;
  const status = deliverable ? "deliverable" : "undeliverable";
  return jsonAnswer(
    200,
    wireJson({ success: true, email, status, checks: { syntax: true, mailbox: deliverable } }),
  );
}

function note(jobs: Jobs, kind: Submitted["kind"], item: string, jobId: string | null): void {
  jobs.submitted.push({ kind, item, jobId, at: jobs.clock.now() });
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
