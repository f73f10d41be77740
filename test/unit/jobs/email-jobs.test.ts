import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { emailChecks, emailVerifications, sealedText, unsealedAnswer } from "../../../src/jobs/email-jobs.ts";
import type { JobType } from "../../../src/jobs/job-type.ts";

const URL = "https://service.example";
const EXTERNAL = { external_api: { api_url: URL, api_key: "k" } };
const UNLIMITED = Number.POSITIVE_INFINITY;
const PATH = "/api/v1/public/verify";

function checksWith(settings: object): JobType {
  const { emailCheck } = parseConfig({ base_url: URL, api_key: "k", email_check: settings }, {});
  if (emailCheck === null) throw new Error("There are no checks");
  return emailChecks(emailCheck, PATH);
}

function verificationsWith(settings: object): JobType {
  const config = { base_url: URL, api_key: "k", ...EXTERNAL, email_verification: settings };
  const { emailVerification } = parseConfig(config, {});
  if (emailVerification === null) throw new Error("There are no verifications");
  return emailVerifications(emailVerification);
}

const CHECKS = checksWith({ emails: ["a@x.example"], max_wait_seconds: 60 });
const VERIFICATIONS = verificationsWith({ emails: ["a@x.example"] });

const view = (fields: object): unknown => ({
  ...{ success: true, job_id: "1", email: "a@x.example", status: "completed", sources: {} },
  ...fields,
});

function answerOf(sources: object) {
  const reply = CHECKS.result(200, view({ sources }));
  if (reply?.kind !== "answered") throw new Error("It is no answer");
  return reply.answer;
}

const DONE = { status: "done", is_user: true, checked_at: "2026-03-02T10:00:00Z", cached: false };
const NO_USER = { ...DONE, is_user: false, checked_at: "2026-03-03T10:00:00Z" };
const BROKEN = { status: "failed", is_user: null, checked_at: null, cached: false };

describe("an e-mail check", () => {
  it("is asked for by the interface's rules: after 5 seconds, at last each minute, without an end", () => {
    expect(CHECKS.polling).toEqual({ first: 5_000, longest: 60_000, total: UNLIMITED });
    expect([CHECKS.submit.path, CHECKS.collect.path]).toEqual([PATH, `${PATH}/{job}`]);
    expect([CHECKS.maxWait, CHECKS.postsAtOnce]).toEqual([60_000, 4]);
    expect(CHECKS.bodyOf("a@x.example")).toEqual({ email: "a@x.example" });
  });

  it("has the caps of its settings, and costs no credits", () => {
    const credits = { sync: UNLIMITED, day: UNLIMITED, month: UNLIMITED };
    const settings = { from_people: true, max_per_sync: 7 };
    expect(checksWith(settings)).toMatchObject({
      froms: ["people"],
      caps: { submissions: { sync: 7, day: UNLIMITED }, credits },
    });
    expect(checksWith({ ...settings, max_per_day: 9 }).caps.submissions).toEqual({ sync: 7, day: 9 });
    expect(CHECKS.froms).toEqual([]);
  });

  it("may say when to ask for it first", () => {
    const taken = (fields: object) =>
      CHECKS.taken({ success: true, job_id: "1", ...fields }, "a@x.example", 0);
    expect(taken({ poll_after: "2026-03-02T10:00:00Z" })).toMatchObject({
      ...{ kind: "taken", jobId: "1", notBefore: Date.UTC(2026, 2, 2, 10) },
    });
    expect(taken({ poll_after: null })).toMatchObject({ kind: "taken", notBefore: null });
    expect(taken({ job_id: 1 })).toBe(undefined);
  });

  it.each<[status: number, fields: object, kind: string | undefined]>([
    [200, {}, "answered"],
    [200, { status: "pending" }, "pending"],
    [200, { status: "pending", sources: { crm: DONE } }, "pending"],
    [200, { status: 5 }, undefined],
    [200, { email: null }, undefined],
    [200, { sources: [] }, undefined],
    [200, { sources: null }, undefined],
    [200, { success: false, error: { code: "X", message: "?" } }, undefined],
    [202, {}, undefined],
    [404, {}, undefined],
  ])("whose view comes with %i and %j is %s", (status, fields, kind) => {
    expect(CHECKS.result(status, view(fields))?.kind).toBe(kind);
  });

  it("that is no view says nothing", () => {
    expect(CHECKS.result(200, [])).toBe(undefined);
    expect(CHECKS.result(200, "completed")).toBe(undefined);
  });

  it("that is not completed may name when to ask again", () => {
    const waiting = view({ status: "pending", poll_after: "2026-03-02T10:00:00Z" });
    expect(CHECKS.result(200, waiting)).toEqual({ kind: "pending", notBefore: Date.UTC(2026, 2, 2, 10) });
  });

  it("has failed while a source has no answer, and is ordered by the newest", () => {
    expect(answerOf({ crm: DONE, ads: NO_USER })).toMatchObject({
      ...{ failed: false, code: null, cost: 0, sources: ["crm", "ads"] },
      cursor: "2026-03-03T10:00:00.000Z",
    });
    expect(answerOf({ crm: DONE, ads: BROKEN, odd: 5 })).toMatchObject({
      ...{ failed: true, code: "a source failed", cost: 0, sources: ["crm"] },
      cursor: "2026-03-02T10:00:00.000Z",
    });
    expect(answerOf({})).toMatchObject({ failed: false, sources: [], cursor: null });
  });

  it("gives a record for each source, and no null for what was answered before", () => {
    const answer = answerOf({ crm: { ...DONE, more: 1 }, ads: BROKEN, odd: 5 });
    const records = (about: { isRefresh?: boolean; sources?: string[] }) =>
      CHECKS.records("email_checks", { jobId: "1", isRefresh: false, sources: [], ...about }, answer);
    const common = { job_id: "1", email: "a@x.example" };
    const [crm, ads, odd] = [
      { ...common, ...DONE, source: "crm", more: 1 },
      { ...common, ...BROKEN, source: "ads" },
      { ...common, source: "odd", status: null, is_user: null, checked_at: null, cached: null },
    ];
    expect(records({})).toEqual([crm, ads, odd]);
    expect(records({ sources: ["crm", "ads"] })).toEqual([crm, odd]);
    expect(records({ isRefresh: true })).toEqual([crm]);
  });

  it.each([
    ["A@X.Example", "a@x.example"],
    [" a@x.example. ", "a@x.example"],
    ["somebody", "somebody"],
  ])("is of one e-mail however the service spells it: %j", (email, key) => {
    const reply = CHECKS.result(200, view({ email, sources: { crm: DONE } }));
    const answer = reply?.kind === "answered" ? reply.answer : answerOf({});
    const records = CHECKS.records("email_checks", { jobId: "1", isRefresh: false, sources: [] }, answer);
    expect(records).toEqual([{ ...DONE, job_id: "1", email: key, source: "crm" }]);
  });
});

describe("an e-mail verification", () => {
  const AT = Date.UTC(2026, 2, 2, 10);

  it("is answered at once, and never asked for again", () => {
    expect(VERIFICATIONS).toMatchObject({ polling: null, maxWait: 0, postsAtOnce: 10 });
    expect(VERIFICATIONS.submit.path).toBe("/api/v1/external/verify-email");
    expect(VERIFICATIONS.result(200, view({}))).toBe(undefined);
  });

  it.each<unknown>([{ success: true, data: { status: "valid" } }, "valid", null, [1]])(
    "is kept as it was said: %j",
    (response) => {
      const value = { email: "a@x.example", verified_at: "2026-03-02T10:00:00.000Z", response };
      const answer = { value, cursor: value.verified_at, cost: 0, failed: false, code: null, sources: [] };
      expect(VERIFICATIONS.taken(response, "a@x.example", AT)).toEqual({ kind: "answered", answer });
      const about = { jobId: null, isRefresh: false, sources: [] };
      expect(VERIFICATIONS.records("email_verifications", about, answer)).toEqual([value]);
      expect(unsealedAnswer("a@x.example", 0, sealedText(answer))).toEqual(answer);
    },
  );

  it("that an older version kept without its moment has that of its job", () => {
    const answer = unsealedAnswer("a@x.example", AT, '{"said":"x y"}');
    expect(answer.value).toEqual({
      ...{ email: "a@x.example", verified_at: "2026-03-02T10:00:00.000Z", response: { said: "x y" } },
    });
  });
});
