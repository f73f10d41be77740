import { toSegment } from "../api/address.ts";
import type { Client } from "../api/client.ts";
import type { CompanyLookup } from "../config/config.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { AboutAnswer, Answer, JobReply, JobType } from "./job-type.ts";
import { askOnce, costOf, jobIdIn, LOOKUP, submitOnce, toCursor, toMoment, usable } from "./requests.ts";

/** Look-ups of companies: 1 credit for each contact, known only afterwards. */
export function companyLookups(settings: CompanyLookup, client: Client | undefined): JobType {
  const { webhookUrl } = settings;
  return {
    setting: "companyLookup",
    settingName: "company_lookup",
    kind: "domain",
    caps: {
      submissions: { sync: settings.maxLookupsPerSync, day: Number.POSITIVE_INFINITY },
      credits: {
        sync: settings.maxCreditsPerSync,
        day: settings.maxCreditsPerDay ?? Number.POSITIVE_INFINITY,
        month: settings.maxCreditsPerMonth ?? Number.POSITIVE_INFINITY,
      },
    },
    resubmitRules: settings,
    polling: { first: 5_000, longest: 300_000, total: 300_000 },
    maxWait: settings.maxWaitSeconds * 1000,
    postsAtOnce: 4,
    submit: (domain) => {
      const body = { domain, ...(webhookUrl !== null && { webhook_url: webhookUrl }) };
      return submitOnce(usable(client), "submit a company look-up", LOOKUP, body, (value) => {
        const jobId = jobIdIn(value);
        return jobId === undefined ? undefined : { kind: "taken", jobId, notBefore: null };
      });
    },
    ask: (jobId) =>
      askOnce(
        usable(client),
        "collect a company look-up",
        `${LOOKUP}/${toSegment(jobId)}/result`,
        readResult,
      ),
    records: toRecords,
  };
}

function readResult(status: number, value: unknown): JobReply | undefined {
  const { status: said, scheduled_processing_time: scheduled } = isObject(value) ? value : {};
  if (isObject(value) && value["success"] !== false && (said === "success" || said === "error"))
    return { kind: "answered", answer: toAnswer(value) };
  const isPending = status === 202 || (status === 200 && (said === "processing" || said === "queued"));
  return isPending && isObject(value) && value["success"] !== false
    ? { kind: "pending", notBefore: toMoment(scheduled) }
    : undefined;
}

/** Only a result that says that it failed and cost nothing may be bought again; "not found" is an answer. */
function toAnswer(value: JsonObject): Answer {
  const { status, created_at, error_code } = value;
  const cost = costOf(value);
  const code = status === "error" ? (typeof error_code === "string" ? error_code : "error") : null;
  return {
    value,
    cursor: toCursor([created_at]),
    cost,
    failed: code !== null && code !== "COMPANY_NOT_FOUND" && cost === 0,
    code,
    sources: [],
  };
}

function toRecords(stream: string, { jobId }: AboutAnswer, { value }: Answer): readonly JsonObject[] {
  const record = { ...value, job_id: jobId };
  return stream === "company_lookups" ? [record] : contactsOf(record);
}

/** One row a contact: its place in the result is a part of the key. */
function contactsOf({
  job_id,
  domain = null,
  created_at = null,
  contacts,
}: JsonObject): readonly JsonObject[] {
  if (!Array.isArray(contacts)) return [];
  return contacts.map((contact: unknown, position) => {
    const fields = isObject(contact) ? contact : {};
    const { verifications } = fields;
    return { ...fields, job_id, position, domain, created_at, verified_sources: verifiedIn(verifications) };
  });
}

/** The sources for which a contact is verified. */
function verifiedIn(verifications: unknown): readonly string[] {
  const list = Array.isArray(verifications) ? verifications.filter(isObject) : [];
  const sources = list.filter(({ isVerified }) => isVerified === true).map(({ source }) => source);
  return [...new Set(sources.filter((source) => typeof source === "string"))];
}
