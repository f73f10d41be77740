import { isObject, type JsonObject, objectOf } from "../base/json.ts";
import type { CompanyLookup } from "../config/config.ts";
import { knownCode } from "../service/error-table.ts";
import type { Answer, JobReply, JobType } from "./job-type.ts";
import { fieldsOf, takenJob, toMoment } from "./requests.ts";

const LOOKUP = "/api/v1/external/company-lookup";
export const LOOKUP_RESULT = `${LOOKUP}/{job}/result`;

/** The highest number of credits that counts as a cost. */
const MAX_COST = 1_000_000_000;

/** Look-ups of companies. Each contact of the result costs 1 credit. */
export function companyLookups(settings: CompanyLookup): JobType {
  const { webhookUrl, fromCompanies: companies, fromPeople: people } = settings;
  const sources = { companies, people };
  return {
    ...{ setting: "companyLookup", settingName: "company_lookup", noun: "company look-up" },
    ...{ kind: "domain", list: settings.domains, file: settings.domainsFile },
    sources: (["companies", "people"] as const).filter((name) => sources[name]),
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
    maxOpen: 20,
    submit: { what: "submit a company look-up", path: LOOKUP },
    collect: { what: "collect a company look-up", path: LOOKUP_RESULT },
    bodyOf: (domain) => ({ domain, ...(webhookUrl !== null && { webhook_url: webhookUrl }) }),
    taken: takenJob,
    result: readResult,
    costOf,
    records: toRecords,
  };
}

function readResult(status: number, value: unknown): JobReply | undefined {
  if (!isObject(value) || value["success"] === false) return undefined;
  const { status: said, scheduled_processing_time: scheduled } = value;
  if (said === "success" || said === "error") return { kind: "answered", answer: toAnswer(value) };
  const isInProgress = said === "processing" || said === "queued";
  const isPending = status === 202 ? isInProgress || costOf(value) === 0 : status === 200 && isInProgress;
  return isPending ? { kind: "pending", due: toMoment(scheduled) } : undefined;
}

/** Only a result that failed and cost nothing may be bought again. "Not found" is an answer. */
function toAnswer(value: JsonObject): Answer {
  const { status, error_code } = value;
  const code = status === "error" ? (error_code === undefined ? "error" : knownCode(error_code)) : null;
  const isFree = costOf(value) === 0 && creditsOf(value).every((credits) => credits === 0);
  const failed = code !== null && code !== "COMPANY_NOT_FOUND" && isFree;
  return { value, failed, code };
}

/** The credits of a reply: the number of its contacts, or the credits that the reply names if they are more. */
function costOf(value: unknown): number {
  const { contacts } = fieldsOf(value);
  return Math.max(Array.isArray(contacts) ? contacts.length : 0, ...creditsOf(value).map((one) => one ?? 0));
}

/** The credits that a reply names in its envelope and in its data; undefined for an invalid value. */
const creditsOf = (value: unknown): readonly (number | undefined)[] =>
  [value, objectOf(value)["data"]].map((one) => toCredits(objectOf(one)["credits_used"]));

function toCredits(named: unknown): number | undefined {
  if (named === undefined || named === null) return 0;
  const isDecimal = typeof named !== "object" && /^\d+(?:\.\d+)?$/.test(String(named));
  return isDecimal && Number(named) <= MAX_COST ? Number(named) : undefined;
}

function toRecords(stream: string, { value }: Answer, jobId: string | null): readonly JsonObject[] {
  const record: JsonObject = { ...value, job_id: jobId };
  if (stream === "company_lookups") return [record];
  const { job_id, domain = null, created_at = null, contacts } = record;
  if (!Array.isArray(contacts)) return [];
  // The position of a contact in the result is a part of its key.
  return contacts.map((contact: unknown, position) => {
    const fields = isObject(contact) ? contact : {};
    const verified_sources = verifiedIn(fields["verifications"]);
    return { ...fields, job_id, position, domain, created_at, verified_sources };
  });
}

/** The sources that verified a contact. */
function verifiedIn(verifications: unknown): readonly string[] {
  const list = Array.isArray(verifications) ? verifications.filter(isObject) : [];
  const sources = list.filter(({ isVerified }) => isVerified === true).map(({ source }) => source);
  return [...new Set(sources.filter((source) => typeof source === "string"))];
}
