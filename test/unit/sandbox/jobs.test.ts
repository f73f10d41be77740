import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { nextOpening } from "../../../sandbox/data/email-checks.ts";
import { FOREIGN_JOB } from "../../../sandbox/data/job-options.ts";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { listen } from "../../support/serve.ts";
import { ask, codeOf, type Got, get } from "./http.ts";

const LOOKUP = "/api/v1/external/company-lookup";
const VERIFY = "/api/v1/public/verify";
const EXTERNAL_KEY = "svc_99999999_99999999999999999999999999999999";
const HOUR = 3_600_000;

const start = (options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({ people: 5, plan: "agency", requestsPerMinute: 0, now: "2026-03-02T10:00:00Z", ...options });

async function post(sandbox: Sandbox, path: string, body: unknown, key = sandbox.key): Promise<Got> {
  return await ask(`${sandbox.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const lookUp = async (sandbox: Sandbox, domain: string, webhook_url?: string): Promise<string> => {
  const { text } = await post(sandbox, LOOKUP, { domain, webhook_url });
  return JSON.parse(text).data.job_id;
};
const result = async (sandbox: Sandbox, id: string): Promise<{ status: number; body: unknown }> => {
  const { status, text } = await get(sandbox, `${LOOKUP}/${id}/result`);
  return { status, body: JSON.parse(text) };
};
/** The result of a look-up, once it is ready. */
const answerTo = async (sandbox: Sandbox, domain: string): Promise<{ status: number; body: unknown }> => {
  const id = await lookUp(sandbox, domain);
  sandbox.advance(10_000);
  return await result(sandbox, id);
};
type Checked = { job_id: string; poll_after: string | null };
const check = async (sandbox: Sandbox, email: string): Promise<Checked> =>
  JSON.parse((await post(sandbox, VERIFY, { email })).text);
type View = { status: string; sources: Record<string, unknown> };
const view = async (sandbox: Sandbox, id: string): Promise<View> =>
  JSON.parse((await get(sandbox, `${VERIFY}/${id}`)).text);

const UNANSWERED = { is_user: null, checked_at: null, cached: false };

describe("nextOpening()", () => {
  it.each([
    ["within office hours", "2026-03-02T10:00:00Z", "UTC", "2026-03-02T10:00:00Z"],
    ["before they begin", "2026-03-02T08:59:59Z", "UTC", "2026-03-02T09:00:00Z"],
    ["at their end", "2026-03-02T18:00:00Z", "UTC", "2026-03-03T09:00:00Z"],
    ["over a weekend", "2026-03-06T18:00:00Z", "UTC", "2026-03-09T09:00:00Z"],
    ["over the change to summer time", "2026-03-06T23:30:00Z", "America/New_York", "2026-03-09T13:00:00Z"],
    ["in a zone of quarter hours", "2026-03-02T00:00:00Z", "Asia/Kathmandu", "2026-03-02T03:15:00Z"],
  ])("%s", (_, from, zone, opening) => {
    expect(new Date(nextOpening(Date.parse(from), zone)).toISOString()).toBe(new Date(opening).toISOString());
  });
});

describe("company look-ups", () => {
  it("are processed, then answered, and charged by the contact", async () => {
    await using sandbox = await start({ jobs: { credits: 20 } });
    const { status, text } = await post(sandbox, LOOKUP, { domain: "3.example" });
    expect(status).toBe(202);
    expect(JSON.parse(text)).toMatchObject({ success: true, data: { scheduled_for: "immediate" } });
    const id = JSON.parse(text).data.job_id;
    expect(id).toMatch(/^job_\d+_\w+$/);
    expect(await result(sandbox, id)).toMatchObject({ status: 202, body: { status: "processing" } });
    sandbox.advance(10_000);
    const { status: done, body } = await result(sandbox, id);
    expect(done).toBe(200);
    expect(body).toMatchObject({ job_id: id, status: "success", credits_used: 3, contacts: [{}, {}, {}] });
    expect(body).not.toHaveProperty("success");
    expect(sandbox.credits()).toBe(17);
    expect(sandbox.submissions).toMatchObject([{ kind: "company-lookup", item: "3.example", jobId: id }]);
  });

  it("end in errors that cost nothing", async () => {
    await using sandbox = await start({ jobs: { credits: 2 } });
    for (const [domain, error_code] of [
      ["nobody.example", "COMPANY_NOT_FOUND"],
      ["broken.example", "INTERNAL_ERROR"],
      ["3.example", "INSUFFICIENT_CREDITS"],
    ] as const) {
      const body = { status: "error", error_code, credits_used: 0 };
      expect(await answerTo(sandbox, domain)).toMatchObject({ status: 500, body });
    }
    expect(sandbox.credits()).toBe(2);
  });

  it("are refused without any credits", async () => {
    await using sandbox = await start({ jobs: { credits: 0 } });
    const refusal = await post(sandbox, LOOKUP, { domain: "3.example" });
    expect([refusal.status, codeOf(refusal)]).toEqual([500, "INSUFFICIENT_CREDITS"]);
    expect(sandbox.submissions).toEqual([]);
  });

  it("wait for the next day beyond the daily limit", async () => {
    await using sandbox = await start({ jobs: { dailyLookups: 1 } });
    await lookUp(sandbox, "1.example");
    const id = await lookUp(sandbox, "2.example");
    sandbox.advance(HOUR);
    const queued = { status: "queued", contacts: [], credits_used: 0 };
    const body = { ...queued, scheduled_processing_time: "2026-03-03T00:00:00.000Z" };
    expect(await result(sandbox, id)).toMatchObject({ status: 202, body });
    sandbox.advance(13 * HOUR + 60_000);
    expect(await result(sandbox, id)).toMatchObject({ status: 200 });
  });

  it("stay in process for ever if they are lost or unknown, and are denied to others", async () => {
    await using sandbox = await start();
    const lost = await lookUp(sandbox, "lost.example");
    sandbox.advance(1000 * HOUR);
    for (const id of [lost, "job_99_never"]) {
      expect(await result(sandbox, id)).toMatchObject({ status: 202, body: { status: "processing" } });
    }
    const foreign = await get(sandbox, `${LOOKUP}/${FOREIGN_JOB}/result`);
    expect([foreign.status, codeOf(foreign)]).toEqual([403, "ACCESS_DENIED"]);
  });

  it("are sent to their webhook when they are ready", async () => {
    const hook = createServer();
    const port = await listen(hook);
    await using sandbox = await start();
    const arrived = once(hook, "request");
    const id = await lookUp(sandbox, "1.example", `http://127.0.0.1:${port}/x`);
    sandbox.advance(10_000);
    const [delivery, response] = await arrived;
    let body = "";
    for await (const chunk of delivery) body += chunk;
    response.end();
    expect(JSON.parse(body)).toMatchObject({ job_id: id, status: "success" });
  });

  it("refuse what is no domain", async () => {
    await using sandbox = await start();
    const bodies = [{}, { domain: 7 }, { domain: "a b" }, { domain: "a.example", webhook_url: "x" }];
    for (const body of ["{", "[]", ...bodies]) {
      const refusal = await post(sandbox, LOOKUP, body);
      expect([refusal.status, codeOf(refusal)]).toEqual([400, "INVALID_REQUEST"]);
    }
    expect(sandbox.submissions).toEqual([]);
  });

  it("have a key and a limit of their own if the sandbox is told so", async () => {
    await using sandbox = await start({ externalKey: EXTERNAL_KEY, requestsPerMinute: 1 });
    expect((await post(sandbox, LOOKUP, { domain: "1.example" })).status).toBe(401);
    expect((await post(sandbox, LOOKUP, { domain: "1.example" }, EXTERNAL_KEY)).status).toBe(202);
    expect((await post(sandbox, LOOKUP, { domain: "1.example" }, EXTERNAL_KEY)).status).toBe(429);
    expect((await post(sandbox, VERIFY, { email: "a@x.example" }, EXTERNAL_KEY)).status).toBe(401);
    expect((await post(sandbox, VERIFY, { email: "a@x.example" })).status).toBe(202);
  });
});

describe("e-mail checks", () => {
  it("wait for office hours, run, and release all answers together", async () => {
    await using sandbox = await start({ sources: 2, now: "2026-03-07T12:00:00Z" });
    const { job_id: id, poll_after } = await check(sandbox, "a@x.example");
    expect(poll_after).toBe("2026-03-09T09:00:00.000Z");
    expect((await view(sandbox, id)).status).toBe("queued");
    sandbox.advance(Date.parse("2026-03-09T09:00:06Z") - Date.parse("2026-03-07T12:00:00Z"));
    const running = await view(sandbox, id);
    expect(running.status).toBe("running");
    expect(Object.values(running.sources)).toEqual([
      { status: "done", ...UNANSWERED },
      { status: "running", ...UNANSWERED },
    ]);
    sandbox.advance(5_000);
    const completed = await view(sandbox, id);
    expect(completed.status).toBe("completed");
    for (const answer of Object.values(completed.sources)) {
      const answered = { is_user: expect.any(Boolean), checked_at: expect.any(String) };
      expect(answer).toMatchObject({ status: "done", ...answered });
    }
  });

  it("reuse answers with their dates, and fail for some", async () => {
    await using sandbox = await start({ sources: 1 });
    const first = await check(sandbox, "a@x.example");
    sandbox.advance(HOUR);
    const again = await check(sandbox, "a@x.example");
    const [before] = Object.values((await view(sandbox, first.job_id)).sources);
    const [after] = Object.values((await view(sandbox, again.job_id)).sources);
    expect(after).toEqual({ ...(before as object), cached: true });
    const failing = await check(sandbox, "fails@x.example");
    sandbox.advance(HOUR);
    const { status, sources } = await view(sandbox, failing.job_id);
    expect([status, Object.values(sources)]).toEqual(["completed", [{ status: "failed", ...UNANSWERED }]]);
  });

  it("are not found for others, refuse other plans and bad bodies", async () => {
    await using sandbox = await start();
    expect(codeOf(await get(sandbox, `${VERIFY}/${FOREIGN_JOB}`))).toBe("JOB_NOT_FOUND");
    expect(codeOf(await post(sandbox, VERIFY, { email: "nobody" }))).toBe("INVALID_BODY");
    const { job_id: id } = await check(sandbox, "a@x.example");
    sandbox.forgetJobs();
    expect((await get(sandbox, `${VERIFY}/${id}`)).status).toBe(404);
    await using enterprise = await start({ plan: "enterprise" });
    expect(codeOf(await post(enterprise, VERIFY, { email: "a@x.example" }))).toBe("ENDPOINT_NOT_ON_PLAN");
    expect(enterprise.submissions).toEqual([]);
  });
});

describe("e-mail verifications", () => {
  it("are answered at once", async () => {
    await using sandbox = await start();
    const { status, text } = await post(sandbox, "/api/v1/external/verify-email", { email: "a@x.example" });
    expect([status, JSON.parse(text).email]).toEqual([200, "a@x.example"]);
    expect(sandbox.submissions).toMatchObject([{ kind: "email-verification", item: "a@x.example" }]);
  });
});

describe("faults of submissions", () => {
  it.each([
    ["drop-before", 0, "reset"],
    ["drop-after", 1, "reset"],
    ["fail-after", 1, "500"],
    ["status=500:path=company-lookup$", 0, "500"],
  ])("%s leaves %d submissions", async (fault, taken, seen) => {
    await using sandbox = await start();
    sandbox.fault(fault);
    const outcome = post(sandbox, LOOKUP, { domain: "1.example" }).then(
      ({ status }) => String(status),
      () => "reset",
    );
    expect(await outcome).toBe(seen);
    expect(sandbox.submissions).toHaveLength(taken);
  });

  it("strike submissions only", async () => {
    await using sandbox = await start();
    const id = await lookUp(sandbox, "1.example");
    sandbox.fault("drop-before");
    expect((await result(sandbox, id)).status).toBe(202);
  });
});

describe("jobs of a service that misbehaves", () => {
  const COMPANY = { domain: "3.example" };

  it.each([
    ["lost", 404, /"code":"JOB_NOT_FOUND"/],
    ["error", 500, /"success":false.*"code":"INTERNAL_ERROR"/],
    ["malformed", 200, /"contacts":\[\{$/],
    ["processing", 202, /"status":"processing"/],
    ["far-away", 202, /"status":"queued".*"scheduled_processing_time":"2999-01-01/],
    ["no-credits", 500, /"status":"error".*"error_code":"INSUFFICIENT_CREDITS"/],
    ["quota", 429, /"code":"QUOTA_EXCEEDED"/],
  ])("answers a question for a result with %s", async (what, status, pattern) => {
    await using sandbox = await start({ faults: [`result=${what}`] });
    const id = await lookUp(sandbox, COMPANY.domain);
    sandbox.advance(10_000);
    const got = await get(sandbox, `${LOOKUP}/${id}/result`);
    expect([got.status, got.text]).toEqual([status, expect.stringMatching(pattern)]);
    expect(await result(sandbox, id)).toMatchObject({ status: 200, body: { job_id: id, credits_used: 3 } });
  });

  it("lets a check run for ever", async () => {
    await using sandbox = await start({ faults: ["result=processing:times=always"] });
    const { job_id } = await check(sandbox, "a@b.example");
    sandbox.advance(HOUR);
    expect(await view(sandbox, job_id)).toMatchObject({ status: "running", sources: {} });
  });

  it.each([
    ["no-credits", 500, "INSUFFICIENT_CREDITS"],
    ["quota", 429, "QUOTA_EXCEEDED"],
    ["item", 400, "SOURCE_NOT_VERIFIABLE"],
  ])("refuses a submission: %s", async (why, status, code) => {
    await using sandbox = await start({ faults: [`submission=${why}`] });
    const refused = await post(sandbox, LOOKUP, COMPANY);
    expect([refused.status, codeOf(refused), sandbox.submissions.length]).toEqual([status, code, 0]);
    expect((await post(sandbox, LOOKUP, COMPANY)).status).toBe(202);
  });

  it("has prices of its own", async () => {
    await using sandbox = await start({ faults: ["credits-used=40,-5"] });
    const id = await lookUp(sandbox, COMPANY.domain);
    sandbox.advance(10_000);
    const prices: unknown[] = [];
    for (let nth = 0; nth < 3; nth++) {
      const { body } = await result(sandbox, id);
      prices.push((body as { credits_used: number }).credits_used);
    }
    expect(prices).toEqual([40, -5, 40]);
  });

  it("puts off the first question to a date that nobody lives to see", async () => {
    await using sandbox = await start({ faults: ["poll-after"] });
    expect((await check(sandbox, "a@b.example")).poll_after).toBe("2999-01-01T00:00:00.000Z");
  });
});
