import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../sandbox/server.ts";
import { JobRuntime } from "../support/job-runtime.ts";
import { tempDir } from "../support/temp-dir.ts";

const MONDAY = "2026-03-02T10:00:00Z";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const EXTERNAL_KEY = "svc_99999999_99999999999999999999999999999999";

const start = (options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({ people: 20, companies: 4, requestsPerMinute: 0, now: MONDAY, ...options });

const runtime = (sandbox: Sandbox, jobs: object): JobRuntime =>
  new JobRuntime(
    {
      base_url: sandbox.url,
      api_key: sandbox.key,
      requests_per_minute: 6000,
      external_api: { api_url: sandbox.url, api_key: sandbox.key },
      ...jobs,
    },
    sandbox,
  );

const limited = (sandbox: Sandbox, jobs: object): JobRuntime =>
  runtime(sandbox, { max_run_seconds: 20, ...jobs });

const items = (sandbox: Sandbox): readonly string[] => sandbox.submissions.map(({ item }) => item);

describe("company_lookups", () => {
  const lookup = (sandbox: Sandbox, settings: object): JobRuntime =>
    runtime(sandbox, { company_lookup: settings });

  it("buys each domain once, and keeps the result whole", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: ["2.example", "1.example", " 2.Example "] });
    const first = await runs.readStream("company_lookups");
    expect(first.code).toBe(0);
    const byDomain = first
      .records()
      .toSorted((a, b) => String(b["domain"]).localeCompare(String(a["domain"])));
    expect(byDomain).toMatchObject([
      {
        domain: "2.example",
        status: "success",
        credits_used: 2,
        contacts: [{}, { verifications: [{}, {}] }],
      },
      { domain: "1.example", status: "success", credits_used: 1 },
    ]);
    expect(first.warnings()).toEqual([expect.stringContaining("up to 2 of 2 items")]);
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(second.records()).toEqual([]);
    expect(items(sandbox)).toEqual(["2.example", "1.example"]);
    expect(second.warnings()).toEqual([]);
  });

  it("says before and after each submission what state is in", async () => {
    await using sandbox = await start();
    const { messages } = await lookup(sandbox, { domains: ["1.example"] }).readStream("company_lookups");
    const steps = messages.flatMap(({ type, state }) =>
      type === "STATE" || type === "RECORD"
        ? [state?.stream.stream_state.jobs[0]?.subs?.[0]?.step ?? "record"]
        : [],
    );
    expect(steps).toEqual(["unknown", "open", "record", "record"]);
  });

  it("holds no item in state", async () => {
    await using sandbox = await start();
    const { messages } = await lookup(sandbox, { domains: ["1.example"] }).readStream("company_lookups");
    const states = messages.filter(({ type }) => type === "STATE");
    expect(JSON.stringify(states)).not.toContain("1.example");
  });

  it("does not buy again for a full refresh, and says that it cannot deliver what was answered", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: ["1.example", "2.example"], max_lookups_per_sync: 1 });
    const first = await runs.readStream("company_lookups");
    const second = await runs.readStream("company_lookups", {
      state: first.state(),
      syncMode: "full_refresh",
    });
    expect(second.code).toBe(1);
    expect(second.messages.at(-1)?.trace?.stream_status?.status ?? second.text).toContain("INCOMPLETE");
    expect(items(sandbox)).toEqual(["1.example"]);
  });

  it("buys again what is old enough", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: ["1.example"], refresh_after_days: 2 });
    const first = await runs.readStream("company_lookups");
    runs.pass(2 * DAY + 13 * HOUR);
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(items(sandbox)).toHaveLength(1);
    runs.pass(HOUR + 60_000);
    await runs.readStream("company_lookups", { state: second.state() });
    expect(items(sandbox)).toHaveLength(2);
  });

  it("submits nothing more when the next answer could pass the cap of credits", async () => {
    await using sandbox = await start();
    const domains = Array.from({ length: 12 }, (_, nth) => `10-${nth}.example`);
    const runs = lookup(sandbox, { domains, max_credits_per_sync: 25 });
    const first = await runs.readStream("company_lookups");
    expect(1000 - sandbox.credits()).toBe(20);
    expect(first.code).toBe(0);
    expect(first.jobs()).toEqual([]);
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(1000 - sandbox.credits()).toBe(40);
    expect(new Set(items(sandbox)).size).toBe(4);
    expect(second.code).toBe(0);
  });

  it("has one in flight before the first answer, five at most, then twenty", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 3600 } });
    const domains = Array.from({ length: 60 }, (_, nth) => `1-${nth}.example`);
    const parked = await lookup(sandbox, {
      domains,
      max_credits_per_sync: 10_000,
      max_wait_seconds: 200,
    }).readStream("company_lookups");
    expect(items(sandbox)).toHaveLength(1);
    expect(parked.code).toBe(0);
    await using other = await start();
    const runs = lookup(other, { domains, max_lookups_per_sync: 45, max_credits_per_sync: 10_000 });
    const all = await runs.readStream("company_lookups");
    expect(items(other)).toHaveLength(45);
    expect(all.records()).toHaveLength(45);
  });

  it("submits nothing where the caps are zero, but collects", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 3600 } });
    const settings = { domains: ["1.example", "2.example"], max_lookups_per_sync: 1 };
    const first = await lookup(sandbox, settings).readStream("company_lookups");
    expect(first.records()).toEqual([]);
    sandbox.advance(HOUR);
    for (const cap of [{ max_lookups_per_sync: 0 }, { max_credits_per_sync: 0 }]) {
      const runs = lookup(sandbox, { ...settings, ...cap });
      const second = await runs.readStream("company_lookups", { state: first.state() });
      expect(second.records()).toMatchObject([{ domain: "1.example" }]);
    }
    expect(items(sandbox)).toEqual(["1.example"]);
  });

  it("polls after 5, 10, 20 … seconds, five minutes in all, then parks", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 3600 } });
    const runs = lookup(sandbox, { domains: ["1.example"], max_wait_seconds: 86_400 });
    const first = await runs.readStream("company_lookups");
    const from = sandbox.requests.findIndex(({ method }) => method === "POST");
    const [posted, ...polls] = sandbox.requests.slice(from).map(({ at }) => at);
    // To five seconds: what the machine takes itself counts as well.
    const seconds = polls.map((at) => 5 * Math.round((at - Number(posted)) / 5000));
    expect(seconds).toEqual([5, 15, 35, 75, 155, 300]);
    expect(first.code).toBe(0);
    runs.pass(HOUR);
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(second.records()).toHaveLength(1);
    expect(items(sandbox)).toEqual(["1.example"]);
  });

  it("waits no longer than it may", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 3600 } });
    const run = await lookup(sandbox, { domains: ["1.example"], max_wait_seconds: 60 }).readStream(
      "company_lookups",
    );
    expect(run.slept).toBeLessThanOrEqual(61_000);
    expect(run.text).toContain("1 job left open");
  });

  it("submits and waits for nothing more once the run is to end", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 15 } });
    const domains = Array.from({ length: 40 }, (_, nth) => `1-${nth}.example`);
    const run = await limited(sandbox, { company_lookup: { domains } }).readStream("company_lookups");
    expect(run.code).toBe(0);
    expect(run.slept).toBeLessThanOrEqual(21_000);
    expect(items(sandbox).length).toBeLessThan(40);
    // Asked after 5 and 15 s; the next question would come after the end.
    await using slow = await start({ jobs: { lookupSeconds: 3600 } });
    const waited = await limited(slow, { company_lookup: { domains: ["1.example"] } }).readStream(
      "company_lookups",
    );
    expect(Math.round(waited.slept / 1000)).toBe(15);
  });

  it("does not poll before the time for which a job is scheduled, nor in a later run", async () => {
    await using sandbox = await start({ jobs: { dailyLookups: 1 } });
    const runs = lookup(sandbox, { domains: ["1.example", "2.example"] });
    const first = await runs.readStream("company_lookups");
    expect(first.records()).toHaveLength(1);
    expect(first.text).toContain("the first answer is due at 2026-03-03T00:00:00.000Z");
    const polls = (): number => sandbox.requests.filter(({ path }) => path.includes("/job_2_")).length;
    const asked = polls();
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(polls()).toBe(asked);
    runs.pass(14 * HOUR + 60_000);
    const third = await runs.readStream("company_lookups", { state: second.state() });
    expect(third.records()).toMatchObject([{ domain: "2.example" }]);
    expect(items(sandbox)).toHaveLength(2);
  });

  it("shows that it is alive while it waits", async () => {
    await using sandbox = await start({ jobs: { dailyLookups: 1 } });
    const runs = lookup(sandbox, { domains: ["1.example", "2.example"], max_wait_seconds: 86_400 });
    const { messages, slept, text } = await runs.readStream("company_lookups");
    expect(slept).toBeGreaterThan(13 * HOUR);
    expect(text).toMatch(/waiting for 1 job/);
    const states = messages.filter(({ type }) => type === "STATE").length;
    expect(states).toBeGreaterThan(slept / (5 * 60_000));
  });

  it.each([
    ["nobody.example", "COMPANY_NOT_FOUND", [1, 1, 1, 1, 1, 1]],
    ["broken.example", "INTERNAL_ERROR", [1, 2, 3, 4, 4, 4]],
    ["unpaid.example", "INSUFFICIENT_CREDITS", [1, 2, 3, 4, 5, 6]],
  ])("keeps the error of %s as a record; %s is submitted at these times: %j", async (domain, code, times) => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: [domain] });
    let state: unknown;
    let records = 0;
    const submitted: number[] = [];
    for (const pause of [0, HOUR, DAY, 7 * DAY, 30 * DAY, 30 * DAY]) {
      runs.pass(pause + 60_000);
      const ran = await runs.readStream("company_lookups", { state });
      state = ran.state();
      records += ran.records().length;
      expect(ran.code).toBe(0);
      submitted.push(items(sandbox).length);
      for (const record of ran.records()) {
        expect(record).toMatchObject({ status: "error", error_code: code, contacts: [], credits_used: 0 });
      }
    }
    expect(submitted).toEqual(times);
    expect(records).toBe(times.at(-1));
  });

  it("ends complete with a warning where the credits are used up, and the next sync tries one", async () => {
    await using sandbox = await start();
    const domains = ["1.example", "1b.example", "1c.example", "1d.example"];
    const runs = lookup(sandbox, { domains });
    sandbox.fault("status=429:code=QUOTA_EXCEEDED:skip=1:times=always:path=company-lookup$");
    const ran = await runs.readStream("company_lookups");
    expect(ran.code).toBe(0);
    expect(ran.records()).toMatchObject([{ domain: "1.example" }]);
    expect(ran.done()).toBe(1);
    expect(ran.warnings().at(-1)).toContain("out of credits or quota");
    expect(ran.slept).toBeLessThan(60_000);
    const posts = (): number => sandbox.requests.filter(({ method }) => method === "POST").length;
    const before = posts();
    sandbox.fault("status=429:code=QUOTA_EXCEEDED:times=always:path=company-lookup$");
    await runs.readStream("company_lookups", { state: ran.state() });
    expect(posts()).toBe(before + 1);
    expect(items(sandbox)).toEqual(["1.example"]);
  });

  it("never submits again what stays in process for ever, and asks for it more and more seldom", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, {
      domains: ["lost.example", ...Array.from({ length: 60 }, (_, nth) => `1-${nth}.example`)],
      max_lookups_per_sync: 2,
    });
    let state: unknown;
    const asked: number[] = [];
    for (let day = 0; day < 30; day++) {
      const before = sandbox.requests.length;
      state = (await runs.readStream("company_lookups", { state })).state();
      const polls = sandbox.requests.slice(before).filter(({ path }) => path.includes("/job_1_")).length;
      if (polls > 0) asked.push(day);
      runs.pass(DAY);
    }
    expect(items(sandbox).filter((item) => item === "lost.example")).toHaveLength(1);
    expect(asked).toEqual([0, 1, 2, 3, 4, 11, 18, 25]);
  });

  it("never submits again a job that the service does not know, or denies, and collects the others", async () => {
    for (const fault of [
      "status=404:code=JOB_NOT_FOUND",
      "status=404",
      "status=403:code=ACCESS_DENIED",
      "status=500:code=INTERNAL_ERROR",
    ]) {
      await using sandbox = await start();
      const runs = lookup(sandbox, { domains: ["1.example", "2.example"], max_wait_seconds: 60 });
      sandbox.fault(`${fault}:times=always:path=/job_1_`);
      const ran = await runs.readStream("company_lookups");
      expect(items(sandbox)).toEqual(["1.example"]);
      expect(ran.jobs()).toMatchObject([{ step: "open" }]);
      const second = await runs.readStream("company_lookups", { state: ran.state() });
      expect(items(sandbox)).toEqual(["1.example", "2.example"]);
      expect(second.records()).toMatchObject([{ domain: "2.example" }]);
      expect(second.jobs()).toMatchObject([{ step: "open", misses: 1 }]);
      expect(second.code).toBe(0);
      sandbox.fault();
      runs.pass(2 * HOUR);
      const third = await runs.readStream("company_lookups", { state: second.state() });
      expect(third.records()).toMatchObject([{ domain: "1.example" }]);
      expect(items(sandbox)).toHaveLength(2);
    }
  });

  it("fails where the only job brings nothing, but not for a week: then that is no news", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: ["1.example"], max_wait_seconds: 60 });
    sandbox.fault("status=500:code=INTERNAL_ERROR:times=always:path=/job_1_");
    const first = await runs.readStream("company_lookups");
    expect(first.code).toBe(1);
    runs.pass(6 * DAY);
    const second = await runs.readStream("company_lookups", { state: first.state() });
    expect(second.code).toBe(1);
    runs.pass(DAY);
    const third = await runs.readStream("company_lookups", { state: second.state() });
    expect(third.code).toBe(0);
    expect(third.warnings()).toContainEqual(expect.stringContaining("no result for"));
    expect(items(sandbox)).toEqual(["1.example"]);
  });

  it("submits nothing to an address that answers 404 to everything", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 3600 } });
    const runs = lookup(sandbox, { domains: ["1.example"] });
    sandbox.fault("status=404:times=always:path=result");
    const ran = await runs.readStream("company_lookups");
    expect(ran.code).toBe(1);
    expect(items(sandbox)).toEqual([]);
  });

  it.each(["drop-after", "fail-after", "reset:after=0:path=company-lookup$"])(
    "does not repeat a submission whose answer is lost: %s",
    async (fault) => {
      await using sandbox = await start();
      const settings = { domains: ["1.example"] };
      sandbox.fault(fault);
      const first = await lookup(sandbox, settings).readStream("company_lookups");
      expect(first.code).toBe(0);
      expect(first.jobs()).toMatchObject([{ step: "unknown" }]);
      expect(first.warnings().at(-1)).toContain("retry_unknown");
      const second = await lookup(sandbox, settings).readStream("company_lookups", { state: first.state() });
      expect(items(sandbox)).toHaveLength(1);
      expect(second.warnings()).toEqual([expect.stringContaining("1 submission got no answer")]);
      const retrying = lookup(sandbox, { ...settings, retry_unknown: true });
      const third = await retrying.readStream("company_lookups", { state: second.state() });
      expect(third.records()).toHaveLength(1);
      expect(items(sandbox)).toHaveLength(2);
    },
  );

  it("takes a connection that broke before the submission was taken for a lost one all the same", async () => {
    await using sandbox = await start();
    sandbox.fault("drop-before");
    const ran = await lookup(sandbox, { domains: ["1.example"] }).readStream("company_lookups");
    expect(ran.jobs()).toMatchObject([{ step: "unknown" }]);
    expect(items(sandbox)).toEqual([]);
  });

  it("gives an outage no more than three submissions", async () => {
    await using sandbox = await start();
    const domains = Array.from({ length: 9 }, (_, nth) => `1-${nth}.example`);
    sandbox.fault("status=500:times=always:path=company-lookup$");
    const ran = await lookup(sandbox, { domains }).readStream("company_lookups");
    expect(ran.code).toBe(1);
    expect(ran.errors()).toMatchObject([{ failure_type: "transient_error" }]);
    expect(ran.jobs().map(({ step }) => step)).toEqual(["unknown", "unknown", "unknown"]);
  });

  it.each(["429=7:times=3:path=company-lookup$", "status=423:times=3:path=company-lookup$"])(
    "tries again what the service has refused for now: %s",
    async (fault) => {
      await using sandbox = await start();
      sandbox.fault(fault);
      const ran = await lookup(sandbox, { domains: ["1.example"] }).readStream("company_lookups");
      expect(ran.code).toBe(0);
      expect(ran.records()).toHaveLength(1);
      expect(items(sandbox)).toHaveLength(1);
    },
  );

  it("keeps nothing of a submission that never left", async () => {
    const gone = await start();
    await gone.close();
    const ran = await lookup(gone, { domains: ["1.example"] }).readStream("company_lookups");
    expect(ran.code).toBe(1);
    expect(ran.errors()).toMatchObject([{ failure_type: "transient_error" }]);
    expect(ran.jobs()).toEqual([]);
  });

  it("names an item that is refused by its place, and submits it again after 30 days", async () => {
    await using sandbox = await start();
    sandbox.fault("status=400:code=INVALID_REQUEST:skip=1:path=company-lookup$");
    const runs = lookup(sandbox, { domains: ["1.example", "2.example", "3.example"] });
    const ran = await runs.readStream("company_lookups");
    expect(ran.code).toBe(0);
    expect(items(sandbox)).toEqual(["1.example", "3.example"]);
    expect(ran.jobs()).toMatchObject([{ step: "refused" }]);
    expect(ran.warnings()).toContainEqual(
      expect.stringContaining("refuses company_lookup.domains[1] (INVALID_REQUEST)"),
    );
    runs.pass(29 * DAY);
    const second = await runs.readStream("company_lookups", { state: ran.state() });
    expect(items(sandbox)).toHaveLength(2);
    runs.pass(2 * DAY);
    await runs.readStream("company_lookups", { state: second.state() });
    expect(items(sandbox)).toHaveLength(3);
  });

  it("stops after three refusals of its form and marks nothing; the next sync begins with other items", async () => {
    await using sandbox = await start();
    const bad = Array.from({ length: 25 }, (_, nth) => `bad-${nth}.example`);
    const runs = lookup(sandbox, { domains: [...bad, "1.example"] });
    let state: unknown;
    for (let run = 1; run <= 9; run++) {
      sandbox.fault(`status=400:code=INVALID_REQUEST:times=${run === 9 ? 1 : 3}:path=company-lookup$`);
      const ran = await runs.readStream("company_lookups", { state });
      state = ran.state();
      expect(ran.code).toBe(run === 9 ? 0 : 1);
      if (run < 9) expect(ran.errors()).toMatchObject([{ failure_type: "config_error" }]);
    }
    expect(items(sandbox)).toContain("1.example");
    expect(new Set(items(sandbox)).size).toBe(items(sandbox).length);
  });

  it("takes the domains of the companies stream, under the same caps", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { from_companies: true, max_lookups_per_sync: 3 });
    const first = await runs.readStream("company_lookups");
    expect(items(sandbox)).toHaveLength(3);
    await runs.readStream("company_lookups", { state: first.state() });
    expect([...items(sandbox)].sort()).toEqual(
      sandbox
        .companies()
        .map(({ domain }) => domain)
        .sort(),
    );
  });

  it("passes the webhook on", async () => {
    await using sandbox = await start({ jobs: { lookupSeconds: 0 } });
    const bodies: string[] = [];
    const hook = createServer(async (request, response) => {
      for await (const chunk of request) bodies.push(String(chunk));
      response.end();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => hook.once("listening", resolve));
    const { port } = hook.address() as { port: number };
    const webhook = `http://127.0.0.1:${port}/secret-path`;
    const ran = await lookup(sandbox, { domains: ["1.example"], webhook_url: webhook }).readStream(
      "company_lookups",
    );
    await expect.poll(() => bodies.join("")).toContain('"domain":"1.example"');
    expect(ran.text).not.toContain("secret-path");
    hook.close();
  });

  it("refuses a state that it cannot read, and buys nothing", async () => {
    await using sandbox = await start();
    const runs = lookup(sandbox, { domains: ["1.example"] });
    const state = { company_lookups: { version: 1 } };
    const ran = await runs.readStream("company_lookups", { state });
    expect(ran.errors()).toMatchObject([{ failure_type: "config_error" }]);
    expect(items(sandbox)).toEqual([]);
  });
});

describe("email_checks", () => {
  const checking = (sandbox: Sandbox, settings: object): JobRuntime =>
    runtime(sandbox, { email_check: settings });
  const agency = (options: SandboxOptions = {}): Promise<Sandbox> => start({ plan: "agency", ...options });

  it("has a record for each e-mail and source, once the job is completed", async () => {
    await using sandbox = await agency({ sources: 3 });
    const ran = await checking(sandbox, { emails: ["a@x.example"] }).readStream("email_checks");
    expect(ran.code).toBe(0);
    expect(ran.records()).toHaveLength(3);
    for (const record of ran.records()) {
      expect(record).toEqual({
        job_id: expect.stringMatching(/^chk_/),
        email: "a@x.example",
        source: expect.any(String),
        status: "done",
        is_user: expect.any(Boolean),
        checked_at: expect.stringMatching(/^2026-03-02T10:/),
        cached: false,
      });
    }
    // One submission, and no credits.
    expect(JSON.stringify(ran.state())).toMatch(/"spent":\[\["2026-03-02",[^\]]*,1,0,0\]\]/);
  });

  it("parks what waits for office hours, asks nothing before, and collects it then", async () => {
    await using sandbox = await agency({
      now: "2026-03-06T20:00:00Z",
      jobs: { timezone: "America/New_York" },
    });
    const runs = checking(sandbox, { emails: ["a@x.example", "b@x.example"] });
    const first = await runs.readStream("email_checks");
    expect(first.code).toBe(0);
    expect(items(sandbox)).toHaveLength(2);
    runs.pass(5 * HOUR);
    const late = checking(sandbox, { emails: ["c@x.example"] });
    const second = await late.readStream("email_checks", { state: first.state() });
    expect(second.text).toContain("the first answer is due at 2026-03-09T13:00:00.000Z");
    const polls = (): number => sandbox.requests.filter(({ path }) => path.includes("/chk_")).length;
    const asked = polls();
    const third = await late.readStream("email_checks", { state: second.state() });
    expect(polls()).toBe(asked);
    runs.pass(3 * DAY);
    const fourth = await late.readStream("email_checks", { state: third.state() });
    expect(new Set(fourth.records().map(({ email }) => email))).toEqual(new Set(["c@x.example"]));
    expect(items(sandbox)).toHaveLength(3);
  });

  it("polls from 5 seconds backing off to 60", async () => {
    await using sandbox = await agency({ sources: 1, jobs: { checkSeconds: 400 } });
    const runs = checking(sandbox, { emails: ["a@x.example"], max_wait_seconds: 600 });
    await runs.readStream("email_checks");
    const from = sandbox.requests.findIndex(({ method }) => method === "POST");
    const [posted, ...polls] = sandbox.requests.slice(from).map(({ at }) => at);
    // To five seconds: what the machine takes itself counts as well.
    const seconds = polls.map((at) => 5 * Math.round((at - Number(posted)) / 5000));
    expect(seconds).toEqual([5, 15, 35, 75, 135, 195, 255, 315, 375, 435]);
  });

  it("keeps the date of a cached answer", async () => {
    await using sandbox = await agency();
    const ran = await checking(sandbox, { emails: ["known@x.example"] }).readStream("email_checks");
    for (const record of ran.records()) {
      expect(record).toMatchObject({ cached: true, checked_at: expect.stringMatching(/^2026-01-31/) });
    }
  });

  it.each([
    ["fails@x.example", [1, 2, 3, 4, 4]],
    ["fails-once@x.example", [1, 2, 2, 2, 2]],
  ])("asks again where a source failed, and replaces no answer: %s", async (email, times) => {
    await using sandbox = await agency();
    const runs = checking(sandbox, { emails: [email] });
    let state: unknown;
    const submitted: number[] = [];
    const records = [];
    for (const pause of [0, HOUR, DAY, 7 * DAY, 7 * DAY]) {
      runs.pass(pause + 60_000);
      const ran = await runs.readStream("email_checks", { state });
      state = ran.state();
      submitted.push(items(sandbox).length);
      records.push(ran.records());
    }
    expect(submitted).toEqual(times);
    expect(records[0]?.[0]).toMatchObject({ status: "failed", is_user: null, checked_at: null });
    const answered = new Set(
      records
        .flat()
        .filter(({ is_user }) => is_user !== null)
        .map(({ source }) => source),
    );
    for (const record of records.slice(1).flat()) {
      if (record["is_user"] === null) expect(answered).not.toContain(record["source"]);
    }
  });

  it("never submits again what the service does not know", async () => {
    await using sandbox = await agency({ jobs: { checkSeconds: 600 } });
    const runs = checking(sandbox, { emails: ["a@x.example"] });
    const first = await runs.readStream("email_checks");
    sandbox.forgetJobs();
    const second = await runs.readStream("email_checks", { state: first.state() });
    expect(items(sandbox)).toHaveLength(1);
    expect(second.code).toBe(0);
    expect(second.jobs()).toMatchObject([{ step: "open" }]);
    expect(second.warnings()).toContainEqual(expect.stringContaining("JOB_NOT_FOUND"));
  });
});

describe("email_verifications", () => {
  it("asks once for each e-mail and keeps the response whole", async () => {
    await using sandbox = await start({ externalKey: EXTERNAL_KEY });
    const runs = runtime(sandbox, {
      external_api: { api_url: sandbox.url, api_key: EXTERNAL_KEY },
      email_verification: { emails: ["a@x.example"] },
    });
    const first = await runs.readStream("email_verifications");
    expect(first.records()).toEqual([
      {
        email: "a@x.example",
        verified_at: expect.stringMatching(/^2026-03-02T10:00/),
        response: expect.objectContaining({ email: "a@x.example", checks: expect.anything() }),
      },
    ]);
    await runs.readStream("email_verifications", { state: first.state() });
    expect(items(sandbox)).toHaveLength(1);
  });
});

describe("receipts of verifications", () => {
  it("bring a full refresh what was answered before, which buys nothing", async () => {
    await using sandbox = await start({ externalKey: EXTERNAL_KEY });
    const runs = runtime(sandbox, {
      external_api: { api_url: sandbox.url, api_key: EXTERNAL_KEY },
      receipts_file: join(await tempDir(), "receipts.jsonl"),
      email_verification: { emails: ["a@x.example", "b@x.example"] },
    });
    const first = await runs.readStream("email_verifications");
    const second = await runs.readStream("email_verifications", { syncMode: "full_refresh" });
    const byEmail = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
    expect(byEmail(second.records())).toEqual(byEmail(first.records()));
    expect(second.text).toContain("; 2 answered, 0 submitted");
    expect(items(sandbox)).toHaveLength(2);
  });
});

describe("submissions", () => {
  it("go one at a time until one is answered, then ten verifications side by side", async () => {
    const waiting: (() => void)[] = [];
    let answered = 0;
    let most = 0;
    const server = createServer((request, response) => {
      request.resume();
      if (request.method !== "POST") return void response.writeHead(404).end("{}");
      waiting.push(() => {
        answered += 1;
        response.end(JSON.stringify({ success: true, deliverable: true }));
      });
      if (answered === 0) most = Math.max(most, waiting.length);
      // The first is answered by itself, the others once there are ten of them.
      if (answered === 0 || waiting.length === 10) for (const answer of waiting.splice(0)) answer();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const runs = new JobRuntime(
      {
        ...{ base_url: url, api_key: EXTERNAL_KEY, requests_per_minute: 6000 },
        external_api: { api_url: url, api_key: EXTERNAL_KEY },
        receipts_file: join(await tempDir(), "receipts.jsonl"),
        email_verification: { emails: Array.from({ length: 21 }, (_, nth) => `e${nth}@x.example`) },
      },
      { url, advance: () => undefined },
    );
    const ran = await runs.readStream("email_verifications");
    server.closeAllConnections();
    server.close();
    expect({ code: ran.code, records: ran.records().length, most }).toEqual({
      code: 0,
      records: 21,
      most: 1,
    });
  });
});

describe("a key of the Agency plan", () => {
  const jobs = { email_check: { emails: ["a@x.example"] } };

  it("is fine if it can do what is configured, and check submits nothing", async () => {
    await using sandbox = await start({ plan: "agency" });
    const { messages } = await runtime(sandbox, jobs).check();
    expect(messages[0]?.connectionStatus?.status).toBe("SUCCEEDED");
    expect(messages[0]?.connectionStatus?.message).toContain("This key can read sources (5), email_checks");
    expect(messages[0]?.connectionStatus?.message).toContain("people: ");
    expect(items(sandbox)).toEqual([]);
  });

  it("is of no use where nothing is configured that it can do", async () => {
    await using sandbox = await start({ plan: "agency" });
    const { messages } = await runtime(sandbox, {}).check();
    expect(messages[0]?.connectionStatus?.status).toBe("FAILED");
  });

  it("reads without a catalog what it can", async () => {
    await using sandbox = await start({ plan: "agency" });
    const ran = await runtime(sandbox, jobs).readAll();
    expect(ran.code).toBe(0);
    const streams = new Set(ran.messages.flatMap(({ record }) => record?.stream ?? []));
    expect(streams).toEqual(new Set(["sources", "email_checks"]));
  });

  it("discovers the streams of the plan that it lacks, too", async () => {
    await using sandbox = await start({ plan: "agency" });
    const { messages } = await runtime(sandbox, jobs).discover();
    expect(messages[0]?.catalog?.streams.map(({ name }) => name)).toEqual([
      "people",
      "companies",
      "sources",
      "email_checks",
    ]);
    expect(items(sandbox)).toEqual([]);
  });
});

describe("check", () => {
  it("finds a key that the External API does not take", async () => {
    await using sandbox = await start();
    const runs = runtime(sandbox, {
      external_api: { api_url: sandbox.url, api_key: EXTERNAL_KEY },
      company_lookup: { domains: ["1.example"] },
    });
    const { messages } = await runs.check();
    expect(messages[0]?.connectionStatus?.status).toBe("FAILED");
    expect(messages[0]?.connectionStatus?.message).toContain("external_api.api_key");
    expect(items(sandbox)).toEqual([]);
  });

  it("says that look-ups can be read, and buys none", async () => {
    await using sandbox = await start();
    const { messages } = await runtime(sandbox, { company_lookup: { domains: ["1.example"] } }).check();
    expect(messages[0]?.connectionStatus).toEqual({
      status: "SUCCEEDED",
      message:
        "This key can read people (23), companies (4), sources (5), company_lookups, company_lookup_contacts. " +
        "At most 100 company look-ups and 100 credits a sync, no cap by day, no cap by month",
    });
    expect(items(sandbox)).toEqual([]);
  });
});
