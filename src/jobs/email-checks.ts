import { toSegment } from "../api/address.ts";
import type { Client } from "../api/client.ts";
import { envelopeCode } from "../api/error-table.ts";
import type { EmailCheck } from "../config/config.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { AboutAnswer, Answer, JobReply, JobType } from "./job-type.ts";
import {
  askOnce,
  CHECK_RESULT,
  jobIdIn,
  submitOnce,
  submittedFields,
  toCursor,
  toMoment,
  usable,
} from "./requests.ts";

/** Checks of e-mails: no credits, but hours or days, because they run in office hours. */
export function emailChecks(settings: EmailCheck, path: string, client: Client | undefined): JobType {
  return {
    setting: "emailCheck",
    settingName: "email_check",
    kind: "email",
    caps: {
      submissions: { sync: settings.maxPerSync, day: settings.maxPerDay ?? Number.POSITIVE_INFINITY },
      credits: FREE,
    },
    resubmitRules: settings,
    polling: { first: 5_000, longest: 60_000, total: Number.POSITIVE_INFINITY },
    maxWait: settings.maxWaitSeconds * 1000,
    postsAtOnce: 4,
    submit: (email) =>
      submitOnce(usable(client), "submit an e-mail check", path, { email }, (value) => {
        const jobId = jobIdIn(value);
        const notBefore = toMoment(submittedFields(value)["poll_after"]);
        return jobId === undefined ? undefined : { kind: "taken", jobId, notBefore };
      }),
    ask: (jobId) =>
      askOnce(usable(client), "collect an e-mail check", `${CHECK_RESULT}/${toSegment(jobId)}`, readView),
    records: toRecords,
  };
}

const NONE = Number.POSITIVE_INFINITY;
/** What costs no credits has no caps on them. */
export const FREE = { sync: NONE, day: NONE, month: NONE };

/** Before the job is completed no answer means anything, not even one that is there. */
function readView(status: number, value: unknown): JobReply | undefined {
  if (status !== 200 || !isObject(value) || envelopeCode(value) !== undefined) return undefined;
  const { email, status: said, sources, poll_after } = value;
  if (typeof said !== "string") return undefined;
  if (said !== "completed") return { kind: "pending", notBefore: toMoment(poll_after) };
  if (typeof email !== "string" || !isObject(sources)) return undefined;
  const answers = Object.entries(sources);
  const answered = answers.filter(([, source]) => isAnswered(source));
  const failed = answered.length < answers.length;
  return {
    kind: "answered",
    answer: {
      value,
      cursor: toCursor(answers.map(([, source]) => (isObject(source) ? source["checked_at"] : null))),
      cost: 0,
      failed,
      code: failed ? "a source failed" : null,
      sources: answered.map(([name]) => name),
    },
  };
}

const isAnswered = (source: unknown): boolean => isObject(source) && typeof source["is_user"] === "boolean";

/** One record a source. Nothing that was answered before is replaced by a null. */
function toRecords(_stream: string, about: AboutAnswer, { value }: Answer): readonly JsonObject[] {
  const { email, sources } = value;
  return Object.entries(isObject(sources) ? sources : {})
    .filter(([name, source]) => isAnswered(source) || !(about.isRefresh || about.sources.includes(name)))
    .map(([name, source]) => toRecord(about.jobId, email, name, source));
}

function toRecord(jobId: string | null, email: unknown, source: string, answer: unknown): JsonObject {
  const {
    status = null,
    is_user = null,
    checked_at = null,
    cached = null,
    ...rest
  } = isObject(answer) ? answer : {};
  return { ...rest, job_id: jobId, email, source, status, is_user, checked_at, cached };
}
