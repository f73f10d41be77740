import { expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { ask, type Got, get } from "./http.ts";

const LOOKUP = "/api/v1/external/company-lookup";
const VERIFY = "/api/v1/public/verify";

const start = (options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({ people: 5, plan: "agency", now: "2026-03-02T10:00:00Z", ...options });

const post = (sandbox: Sandbox, path: string, body: object): Promise<Got> =>
  ask(`${sandbox.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": sandbox.key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

const lookUp = async (sandbox: Sandbox): Promise<string> =>
  JSON.parse((await post(sandbox, LOOKUP, { domain: "3.example" })).text).data.job_id;
const result = async (sandbox: Sandbox, id: string): Promise<{ status: number; body: unknown }> => {
  const { status, text } = await get(sandbox, `${LOOKUP}/${id}/result`);
  return { status, body: JSON.parse(text) };
};

it("e-mail checks wait for office hours, run, and release all answers together", async () => {
  await using sandbox = await start({ sources: 2, now: "2026-03-07T12:00:00Z" });
  const checked = JSON.parse((await post(sandbox, VERIFY, { email: "a@x.example" })).text);
  expect(checked.poll_after).toBe("2026-03-09T09:00:00.000Z");
  const view = async (): Promise<{ status: string; sources: Record<string, object> }> =>
    JSON.parse((await get(sandbox, `${VERIFY}/${checked.job_id}`)).text);
  expect((await view()).status).toBe("queued");
  sandbox.advance(Date.parse("2026-03-09T09:00:06Z") - Date.parse("2026-03-07T12:00:00Z"));
  const { status, sources } = await view();
  expect([status, ...Object.values(sources)]).toMatchObject([
    "running",
    { status: "done", is_user: null, checked_at: null },
    { status: "running", is_user: null, checked_at: null },
  ]);
  sandbox.advance(5_000);
  const completed = await view();
  expect(completed.status).toBe("completed");
  const answer = { status: "done", is_user: expect.any(Boolean), checked_at: expect.any(String) };
  expect(Object.values(completed.sources)).toMatchObject([answer, answer]);
});

it.each([
  ["drop-before", 0, "reset"],
  ["drop-after", 1, "reset"],
  ["fail-after", 1, "500"],
  ["status=500:path=company-lookup$", 0, "500"],
])("the fault %s leaves %d submissions", async (fault, taken, seen) => {
  await using sandbox = await start();
  sandbox.fault(fault);
  const outcome = post(sandbox, LOOKUP, { domain: "3.example" }).then(
    ({ status }) => String(status),
    () => "reset",
  );
  expect(await outcome).toBe(seen);
  expect(sandbox.submissions).toHaveLength(taken);
});

it.each([
  ["lost", 404, /"code":"JOB_NOT_FOUND"/],
  ["error", 500, /"success":false.*"code":"INTERNAL_ERROR"/],
  ["malformed", 200, /"contacts":\[\{$/],
  ["processing", 202, /"status":"processing"/],
  ["far-away", 202, /"status":"queued".*"scheduled_processing_time":"2999-01-01/],
  ["no-credits", 500, /"status":"error".*"error_code":"INSUFFICIENT_CREDITS"/],
  ["quota", 429, /"code":"QUOTA_EXCEEDED"/],
])("a service that misbehaves answers a question for a result with %s", async (what, status, pattern) => {
  await using sandbox = await start({ faults: [`result=${what}`] });
  const id = await lookUp(sandbox);
  sandbox.advance(10_000);
  const got = await get(sandbox, `${LOOKUP}/${id}/result`);
  expect([got.status, got.text]).toEqual([status, expect.stringMatching(pattern)]);
  expect(await result(sandbox, id)).toMatchObject({ status: 200, body: { job_id: id, credits_used: 3 } });
});
