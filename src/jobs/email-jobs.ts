import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { isObject, type JsonObject } from "../base/json.ts";
import type { EmailCheck, EmailVerification } from "../config/config.ts";
import { normalizeItem } from "../config/items.ts";
import { envelopeCode } from "../service/error-table.ts";
import type { Answer, JobReply, JobType } from "./job-type.ts";
import { takenJob, toMoment } from "./requests.ts";

/** The common part of checks and verifications. Neither of the two uses credits. */
const jobsOfEmails = (settings: EmailVerification) => ({
  ...({ kind: "email", list: settings.emails, file: settings.emailsFile } as const),
  sources: settings.fromPeople ? (["people"] as const) : [],
  caps: {
    submissions: { sync: settings.maxPerSync, day: settings.maxPerDay ?? UNLIMITED },
    credits: { sync: UNLIMITED, day: UNLIMITED, month: UNLIMITED },
  },
  resubmitRules: settings,
  maxOpen: UNLIMITED,
  bodyOf: (email: string) => ({ email }),
  costOf: () => 0,
});

const UNLIMITED = Number.POSITIVE_INFINITY;

/** Checks of e-mails. A check may take days, because checks run in office hours. */
export const emailChecks = (settings: EmailCheck, path: string): JobType => ({
  ...jobsOfEmails(settings),
  ...{ setting: "emailCheck", settingName: "email_check", noun: "e-mail check" },
  polling: { first: 5_000, longest: 60_000, total: UNLIMITED },
  maxWait: settings.maxWaitSeconds * 1000,
  submit: { what: "submit an e-mail check", path },
  collect: { what: "collect an e-mail check", path: CHECK_RESULT },
  taken: takenJob,
  result: readView,
  records: toRecords,
});

/** The path of a check's result. `endpoints.email_check` is the path of its submission. */
export const CHECK_RESULT = "/api/v1/public/verify/{job}";

/** Reads the answer to a poll. Results count only after the job is completed. */
function readView(status: number, value: unknown): JobReply | undefined {
  if (status !== 200 || !isObject(value) || envelopeCode(value) !== undefined) return undefined;
  const { email, status: said, sources, poll_after } = value;
  if (typeof said !== "string") return undefined;
  if (said !== "completed") return { kind: "pending", due: toMoment(poll_after) };
  if (typeof email !== "string" || !isObject(sources)) return undefined;
  const failed = !Object.values(sources).every(isAnswered);
  return { kind: "answered", answer: { value, failed, code: failed ? "a source failed" : null } };
}

const isAnswered = (source: unknown): boolean => isObject(source) && typeof source["is_user"] === "boolean";

/** One record per source. A source without an answer does not replace an earlier answer. */
const toRecords: JobType["records"] = (_stream, { value }, jobId, hasEarlier) =>
  Object.entries(isObject(value["sources"]) ? value["sources"] : {})
    .filter(([, source]) => isAnswered(source) || !hasEarlier)
    .map(([name, source]) => toRecord(jobId, value["email"], name, source));

function toRecord(jobId: string | null, email: unknown, source: string, answer: unknown): JsonObject {
  const fields = isObject(answer) ? answer : {};
  // The e-mail is a part of the key, so all spellings must give one key.
  const key = typeof email === "string" ? (normalizeItem("email", email) ?? email) : email;
  const { status = null, is_user = null, checked_at = null, cached = null, ...rest } = fields;
  return { ...rest, job_id: jobId, email: key, source, status, is_user, checked_at, cached };
}

/** Verifications of e-mails. The service answers at once, may charge money, and never sends an answer again. */
export const emailVerifications = (settings: EmailVerification): JobType => ({
  ...jobsOfEmails(settings),
  ...{ setting: "emailVerification", settingName: "email_verification", noun: "e-mail verification" },
  polling: null,
  maxWait: 0,
  submit: { what: "verify an e-mail", path: "/api/v1/external/verify-email" },
  collect: { what: "collect an e-mail verification", path: "" },
  taken: (response, email, answered) => {
    const value = { email, verified_at: new Date(answered).toISOString(), response };
    return { kind: "answered", answer: toAnswer(value) };
  },
  result: () => undefined,
  records: (_stream, { value }) => [value],
});

/** The form of the response is not documented, so the answer is the whole response. */
const toAnswer = (value: JsonObject): Answer => ({ value, failed: false, code: null });

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Encrypts an answer with AES-256-GCM, as base64url. Readers need the e-mail and the salt. */
export function seal(salt: string, email: string, { value }: Answer): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", sealKey(salt, email), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
}

/** Decrypts an answer; undefined for another e-mail, or damaged text. */
export function unseal(salt: string, email: string, sealed: string): Answer | undefined {
  const bytes = Buffer.from(sealed, "base64url");
  try {
    const decipher = createDecipheriv("aes-256-gcm", sealKey(salt, email), bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
    return toAnswer(JSON.parse(text.toString()));
  } catch {
    return undefined;
  }
}

const sealKey = (salt: string, email: string): Buffer =>
  createHmac("sha256", salt).update(`seal\0${email}`, "utf8").digest();
