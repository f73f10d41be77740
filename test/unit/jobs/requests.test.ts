import { describe, expect, it } from "vitest";
import type { Client } from "../../../src/api/client.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { ConfigError, type ConnectorError, TransientError } from "../../../src/errors.ts";
import { jobTypeOf } from "../../../src/jobs/kinds.ts";
import { askOnce, submitOnce, toCursor, toMoment } from "../../../src/jobs/requests.ts";

const URL = "https://service.example";
const CONFIG = parseConfig(
  {
    ...{ base_url: URL, api_key: "k", external_api: { api_url: URL, api_key: "k" } },
    company_lookup: { domains: ["a.example"] },
    email_verification: { emails: ["a@x.example"] },
  },
  {},
);

/** What became of a submission that the client tells of so. */
async function submitted(setting: "companyLookup" | "emailVerification", posted: object) {
  const client = {
    post: async () => posted,
    refusal: (what: string, status: number, code?: string): ConnectorError =>
      new ConfigError(`Cannot ${what}: ${status} ${code}`),
  };
  const { kind, ...rest } = await submitOnce(client as unknown as Client, jobTypeOf(setting, CONFIG), "item");
  return { kind, ...("why" in rest && { why: rest.why, code: rest.code }) };
}

const answered = (status: number, value: unknown): object => ({
  ...{ kind: "answered", status, value, answered: Date.UTC(2026, 2, 2) },
});
const refusal = (code: string): object => ({ success: false, error: { code, message: "?" } });

describe("a submission", () => {
  it.each<[number, unknown, object]>([
    [200, { job_id: "1" }, { kind: "taken" }],
    [202, { success: true, data: { job_id: "1" } }, { kind: "taken" }],
    [200, { success: true }, { kind: "unknown" }],
    [200, undefined, { kind: "unknown" }],
    [200, refusal("UNHEARD_OF"), { kind: "unknown" }],
    [200, refusal("RATE_LIMITED"), { kind: "refused", why: "time", code: "RATE_LIMITED" }],
    [
      200,
      { status: "error", error_code: "RATE_LIMITED" },
      { kind: "refused", why: "time", code: "RATE_LIMITED" },
    ],
    [200, { status: "error", error_code: "UNHEARD_OF", job_id: "1" }, { kind: "unknown" }],
    [200, { status: "odd", error_code: "RATE_LIMITED", job_id: "1" }, { kind: "taken" }],
    [402, refusal("INSUFFICIENT_CREDITS"), { kind: "refused", why: "credits", code: "INSUFFICIENT_CREDITS" }],
    [
      200,
      { status: "error", error_code: "QUOTA_EXCEEDED" },
      { kind: "refused", why: "credits", code: "QUOTA_EXCEEDED" },
    ],
    [404, { job_id: "1" }, { kind: "refused", why: "operator", code: "status 404" }],
    [500, { job_id: "1" }, { kind: "unknown" }],
    [422, refusal("UNHEARD_OF"), { kind: "refused", why: "other-item", code: "UNHEARD_OF" }],
    [429, {}, { kind: "refused", why: "time", code: "status 429" }],
  ])("of a look-up that is answered %i with %j is %j", async (status, value, became) => {
    expect(await submitted("companyLookup", answered(status, value))).toEqual(became);
  });

  it.each<[number, unknown, object]>([
    [200, { status: "valid" }, { kind: "answered" }],
    [200, "valid", { kind: "answered" }],
    [200, undefined, { kind: "unknown" }],
    // Nobody knows what the code of an answer that was paid for means.
    [200, refusal("UNHEARD_OF"), { kind: "answered" }],
    [200, { status: "error", error_code: "UNHEARD_OF" }, { kind: "answered" }],
    [200, refusal("RATE_LIMITED"), { kind: "refused", why: "time", code: "RATE_LIMITED" }],
    [500, { status: "valid" }, { kind: "unknown" }],
  ])("of a verification that is answered %i with %j is %j", async (status, value, became) => {
    expect(await submitted("emailVerification", answered(status, value))).toEqual(became);
  });

  it.each<[object, object]>([
    [{ kind: "unanswered", error: new TransientError("Silence") }, { kind: "unknown" }],
    [
      { kind: "limited", error: new TransientError("Later") },
      { kind: "refused", why: "limit", code: "" },
    ],
    [
      { kind: "unsent", error: new TransientError("Nobody there") },
      { kind: "refused", why: "time", code: "" },
    ],
    [
      { kind: "unsent", error: new ConfigError("No") },
      { kind: "refused", why: "operator", code: "" },
    ],
    [
      { kind: "unsent", error: new ConfigError("No", { code: "X" }) },
      { kind: "refused", why: "operator", code: "X" },
    ],
  ])("that became %o is %j", async (posted, became) => {
    expect(await submitted("companyLookup", posted)).toEqual(became);
  });
});

/** What asking for a job brings that the service answers so. */
async function asked(status: number, value: unknown, scan = { bytes: 0, credits: null as number | null }) {
  const client = {
    ask: async (_what: string, path: string, _isResult: unknown, read: (...answer: unknown[]) => unknown) => {
      expect(path).toBe("/api/v1/external/company-lookup/a%2F1/result");
      return read(status, value, scan);
    },
    refusal: (what: string, code: number, name?: string): ConnectorError =>
      new ConfigError(`Cannot ${what}: ${code} ${name}`, name === undefined ? {} : { code: name }),
  };
  return await askOnce(client as unknown as Client, jobTypeOf("companyLookup", CONFIG), "a/1");
}

describe("a question for a result", () => {
  it.each<[number, unknown, object]>([
    [200, { status: "success" }, { kind: "answered" }],
    [202, {}, { kind: "pending", notBefore: null }],
    [200, {}, { kind: "unusable", code: "status 200", isRetryable: true }],
    [299, "odd", { kind: "unusable", code: "status 299", isRetryable: true }],
    [400, {}, { kind: "unusable", code: "status 400", isRetryable: false }],
    [404, refusal("JOB_NOT_FOUND"), { kind: "known", code: "JOB_NOT_FOUND", isRetryable: false }],
    [404, refusal("OTHER"), { kind: "unusable", code: "OTHER", isRetryable: false }],
    [403, refusal("JOB_NOT_FOUND"), { kind: "denied", code: "JOB_NOT_FOUND", isRetryable: false }],
    [401, refusal("OTHER"), { kind: "unusable", code: "OTHER", isRetryable: false }],
    [500, {}, { kind: "unusable", code: "status 500", isRetryable: true }],
  ])("that is answered %i with %j brings %j", async (status, value, reply) => {
    expect(await asked(status, value)).toMatchObject(reply);
  });

  it.each<[number, unknown]>([
    [401, {}],
    [403, refusal("INVALID_API_KEY")],
  ])("that is answered %i with %j ends the run: the key is not valid", async (status, value) => {
    await expect(asked(status, value)).rejects.toMatchObject({ code: "INVALID_API_KEY" });
  });

  it.each<[number, number, number | null, object]>([
    [200, 33 * 1_048_576, 7, { code: "an answer of 33 MiB", cost: 7 }],
    [299, 33 * 1_048_576 + 1, null, { code: "an answer of 34 MiB", cost: null }],
    [300, 1, 7, { code: "an answer of 1 MiB", cost: 0 }],
  ])(
    "that is answered %i with %i bytes that say %j credits brings %j",
    async (status, bytes, credits, reply) => {
      expect(await asked(status, undefined, { bytes, credits })).toMatchObject({ kind: "known", ...reply });
    },
  );
});

it.each([
  "2026-03-02T10:00:00",
  "2026-03-02 10:00",
  "2026-03-02T10:00:00Z",
  "2026-03-02T11:00:00+01:00",
  "Mon, 02 Mar 2026 10:00:00 GMT",
  "Mon, 02 Mar 2026 05:00:00 EST",
])("toMoment() reads %j in UTC, whatever the zone of the machine", (text) => {
  expect(toMoment(text)).toBe(Date.UTC(2026, 2, 2, 10));
});

it.each([
  ["2026-03-02T09:00:00Z", 0],
  ["2026-03-02T09:00:00", 0],
  ["2026-03-02T10:00:00+01:00", 0],
  ["2026-03-02T09:00:00.5Z", 500],
  ["2026-03-02T09:00:00.05Z", 50],
  ["2026-03-02T09:00:00.123456Z", 123],
  ["2 Mar 2026 09:00:00", 0],
  ["Mon, 02 Mar 2026 09:00:00 GMT", 0],
  ["soon", null],
  ["", null],
  [null, null],
  [undefined, null],
  [7, null],
  [{ at: "2026-03-02T09:00:00Z" }, null],
])("takes %j for a moment, in UTC where it names no zone: %j", (value, ms) => {
  expect(toMoment(value)).toBe(ms === null ? null : Date.UTC(2026, 2, 2, 9) + ms);
});

it.each([
  [[], null],
  [[null, "soon"], null],
  [
    ["2026-03-02T09:00:00Z", null, "2026-03-02T09:00:00.25Z", "2026-03-01T23:59:59Z"],
    "2026-03-02T09:00:00.250Z",
  ],
])("of %j the newest is %j", (values, newest) => {
  expect(toCursor(values)).toBe(newest);
});
