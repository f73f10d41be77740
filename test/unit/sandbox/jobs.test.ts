import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { ask, type Got, get } from "./http.ts";

const LOOKUP = "/api/v1/external/company-lookup";
const VERIFY = "/api/v1/public/verify";
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
type Checked = { job_id: string; poll_after: string | null };
const check = async (sandbox: Sandbox, email: string): Promise<Checked> =>
  JSON.parse((await post(sandbox, VERIFY, { email })).text);
type View = { status: string; sources: Record<string, unknown> };
const view = async (sandbox: Sandbox, id: string): Promise<View> =>
  JSON.parse((await get(sandbox, `${VERIFY}/${id}`)).text);

const UNANSWERED = { is_user: null, checked_at: null, cached: false };

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
});
