import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { JobRuntime } from "../support/job-runtime.ts";
import { DAY, HOUR, jobConfig, MINUTE, type Setting, type Sync, sandboxStage } from "../support/job-stage.ts";
import type { JobState } from "../support/job-types.ts";
import { serve } from "../support/serve.ts";
import { tempDir } from "../support/temp-dir.ts";

const EXTERNAL_KEY = "svc_99999999_99999999999999999999999999999999";
const LOOKUP = "path=company-lookup$";
const ONE = ["1.example"];
const TWO = ["2.example"];
const named = (count: number, name: (nth: number) => string): string[] =>
  Array.from({ length: count }, (_, nth) => name(nth));
const SLOW: SandboxOptions = { jobs: { lookupSeconds: 3600 } };

const lookups = (settings: object, options?: SandboxOptions, config?: object) =>
  sandboxStage("company_lookup", settings, options, config);

type Scene = {
  readonly setting?: Setting;
  readonly settings: object;
  readonly options?: SandboxOptions;
  readonly config?: object;
  readonly syncs: readonly [Sync, ...Sync[]];
};

const UNKNOWN_JOB: Scene["syncs"] = [
  { bought: ONE, steps: ["open"] },
  { bought: TWO, delivered: TWO, steps: ["open"] },
  { fault: "", after: 2 * HOUR, bought: [], delivered: ONE },
];

const SCENES: Record<string, Scene> = {
  "buys nothing for a full refresh, which is incomplete where it cannot deliver what was answered": {
    settings: { domains: ["1.example", "2.example"], max_lookups_per_sync: 1 },
    syncs: [
      { bought: ONE },
      { syncMode: "full_refresh", fails: "transient_error", says: '"INCOMPLETE"', bought: [] },
    ],
  },
  "buys again what is old enough": {
    settings: { domains: ONE, refresh_after_days: 2 },
    syncs: [
      { bought: ONE },
      { after: 2 * DAY + 13 * HOUR, bought: [] },
      { after: HOUR + MINUTE, bought: ONE },
    ],
  },
  "submits nothing more when the next answer could pass the cap of credits": {
    settings: { domains: named(12, (nth) => `10-${nth}.example`), max_credits_per_sync: 25 },
    syncs: [
      { bought: ["10-0.example", "10-1.example"], steps: [] },
      { bought: ["10-2.example", "10-3.example"] },
    ],
  },
  "has up to twenty in flight after the first answer": {
    settings: {
      domains: named(60, (nth) => `1-${nth}.example`),
      max_credits_per_sync: 10_000,
      max_lookups_per_sync: 45,
    },
    syncs: [{ bought: 45, delivered: 45 }],
  },
  "submits nothing where a cap is zero, but collects": {
    settings: { domains: ["1.example", "2.example"], max_lookups_per_sync: 1 },
    options: SLOW,
    syncs: [
      { delivered: [] },
      { after: HOUR, settings: { max_lookups_per_sync: 0 }, bought: [], delivered: ONE },
      { settings: { max_credits_per_sync: 0 }, bought: [] },
    ],
  },
  "waits no longer than it may": {
    settings: { domains: ONE, max_wait_seconds: 60 },
    options: SLOW,
    syncs: [{ sleeps: 61_000, says: "1 job left open" }],
  },
  "does not poll before the time for which a job is scheduled, nor in a later run": {
    settings: { domains: ["1.example", "2.example"] },
    options: { jobs: { dailyLookups: 1 } },
    syncs: [
      { bought: 2, delivered: 1, says: "the first answer is due at 2026-03-03T00:00:00.000Z" },
      { polls: 0 },
      { after: 14 * HOUR + MINUTE, bought: [], delivered: TWO },
    ],
  },
  "ends complete with a warning where the credits are used up, and the next sync tries one": {
    settings: { domains: ["1.example", "1b.example", "1c.example", "1d.example"] },
    syncs: [
      {
        fault: `status=429:code=QUOTA_EXCEEDED:skip=1:times=always:${LOOKUP}`,
        ...{ bought: ONE, delivered: ONE, done: 1, warns: "out of credits or quota", sleeps: MINUTE },
      },
      { fault: `status=429:code=QUOTA_EXCEEDED:times=always:${LOOKUP}`, bought: [], submissions: 1 },
    ],
  },
  "fails where the only job brings nothing, but not for a week: then that is no news": {
    settings: { domains: ONE, max_wait_seconds: 60 },
    syncs: [
      {
        fault: "status=500:code=INTERNAL_ERROR:times=always:path=/job_1_",
        fails: "transient_error",
        bought: ONE,
      },
      { after: 6 * DAY, fails: "transient_error" },
      { after: DAY, bought: [], warns: "no result for" },
    ],
  },
  "submits nothing to an address that answers 404 to everything": {
    settings: { domains: ONE },
    options: SLOW,
    syncs: [{ fault: "status=404:times=always:path=result", fails: "config_error", bought: [] }],
  },
  "takes a connection that broke before the submission was taken for a lost one anyway": {
    settings: { domains: ONE },
    syncs: [{ fault: "drop-before", steps: ["unknown"], bought: [] }],
  },
  "gives an outage no more than three submissions": {
    settings: { domains: named(9, (nth) => `1-${nth}.example`) },
    syncs: [
      {
        fault: `status=500:times=always:${LOOKUP}`,
        ...{ fails: "transient_error", steps: ["unknown", "unknown", "unknown"] },
      },
    ],
  },
  "never submits again a check that the service does not know": {
    setting: "email_check",
    settings: { emails: ["a@x.example"] },
    options: { jobs: { checkSeconds: 600 } },
    syncs: [
      { bought: 1 },
      {
        fault: "status=404:code=JOB_NOT_FOUND:times=always:path=/chk_",
        bought: 0,
        steps: ["open"],
        warns: "no result for 1 job (JOB_NOT_FOUND)",
      },
    ],
  },
};

for (const [fault, fails] of [
  ["status=404:code=JOB_NOT_FOUND", undefined],
  ["status=404", "config_error"],
  ["status=403:code=ACCESS_DENIED", undefined],
  ["status=500:code=INTERNAL_ERROR", "transient_error"],
] as const) {
  const [first, ...rest] = UNKNOWN_JOB;
  SCENES[`never submits again a job that is answered ${fault}, and collects the others`] = {
    settings: { domains: ["1.example", "2.example"], max_wait_seconds: 60 },
    syncs: [{ ...first, fault: `${fault}:times=always:path=/job_1_`, ...(fails && { fails }) }, ...rest],
  };
}

describe("jobs", () => {
  it.each(Object.entries(SCENES))("%s", async (_, { setting = "company_lookup", ...scene }) => {
    const stage = await sandboxStage(setting, scene.settings, scene.options, scene.config);
    await stage.play(...scene.syncs);
  });
});

describe("company_lookups", () => {
  it("are bought once each, and their results are kept as they are", async () => {
    const stage = await lookups({ domains: ["2.example", "1.example", " 2.Example "] });
    const first = await stage.play({ warns: "up to 2 of 2 items", warnings: 1 });
    expect(
      first.records().toSorted((a, b) => Number(b["credits_used"]) - Number(a["credits_used"])),
    ).toMatchObject([
      {
        ...{ domain: "2.example", status: "success", credits_used: 2 },
        contacts: [{}, { verifications: [{}, {}] }],
      },
      { domain: "1.example", status: "success", credits_used: 1 },
    ]);
    await stage.play({ bought: [], delivered: [], warnings: [] });
    expect(stage.bought).toEqual(["2.example", "1.example"]);
  });

  it("say before and after each submission what state is in, which holds no item", async () => {
    const { messages } = await (await lookups({ domains: ONE })).play({});
    const steps = messages.flatMap(({ type, state }) =>
      type === "STATE" || type === "RECORD"
        ? [(state?.stream.stream_state as JobState | undefined)?.jobs[0]?.subs?.[0]?.step ?? "record"]
        : [],
    );
    expect(steps).toEqual(["unknown", "open", "record", "record"]);
    expect(JSON.stringify(messages.filter(({ type }) => type === "STATE"))).not.toContain("1.example");
  });

  it("are not submitted or waited for once the run is to end", async () => {
    const limit = { max_run_seconds: 20 };
    const domains = named(40, (nth) => `1-${nth}.example`);
    const stage = await lookups({ domains }, { jobs: { lookupSeconds: 15 } }, limit);
    await stage.play({ sleeps: 21_000 });
    expect(stage.bought.length).toBeLessThan(40);
    // Asked after 5 and 12.5 s; the next question would come after the end.
    await (await lookups({ domains: ONE }, SLOW, limit)).play({ polls: 2 });
  });

  it("that stay in process for ever are never submitted again, and asked for more and more seldom", async () => {
    const domains = ["lost.example", ...named(60, (nth) => `1-${nth}.example`)];
    const stage = await lookups({ domains, max_lookups_per_sync: 2 });
    const asked: number[] = [];
    for (let day = 0; day < 30; day++) {
      const before = stage.requests.length;
      await stage.play({ after: day === 0 ? 0 : DAY });
      if (stage.requests.slice(before).some((request) => request.includes("/job_1_"))) asked.push(day);
    }
    expect(stage.bought.filter((item) => item === "lost.example")).toHaveLength(1);
    expect(asked).toEqual([0, 1, 2, 3, 4, 11, 18, 25]);
  });

  it.each(["drop-after", "fail-after", "reset:after=0:path=company-lookup$"])(
    "are not submitted again where the answer is lost: %s",
    async (fault) => {
      const stage = await lookups({ domains: ONE });
      await stage.play({ fault, steps: ["unknown"], warns: "retry_unknown" });
      const { length } = stage.bought;
      await stage.play({ bought: [], warns: "1 submission got no answer", warnings: 1 });
      await stage.play({ settings: { retry_unknown: true }, bought: ONE, delivered: 1 });
      expect(length).toBe(1);
    },
  );

  it.each(["429=7:times=3:path=company-lookup$", "status=423:times=3:path=company-lookup$"])(
    "that the service refuses for now are tried again: %s",
    async (fault) => {
      await (await lookups({ domains: ONE })).play({ fault, bought: ONE, delivered: ONE });
    },
  );

  it("that never left are not kept", async () => {
    const stage = await lookups({ domains: ONE });
    await stage.service.close();
    const ran = await stage.play({ fails: "transient_error" });
    expect(ran.jobs()).toEqual([]);
  });

  it("stop after three refusals of their form and mark nothing; the next sync begins with other items", async () => {
    const stage = await lookups({ domains: [...named(25, (nth) => `bad-${nth}.example`), "1.example"] });
    const fault = (times: number): string => `status=400:code=INVALID_REQUEST:times=${times}:${LOOKUP}`;
    for (let run = 1; run < 9; run++) await stage.play({ fault: fault(3), fails: "config_error" });
    await stage.play({ fault: fault(1), warns: "(INVALID_REQUEST)" });
    expect(stage.bought).toContain("1.example");
    expect(new Set(stage.bought).size).toBe(stage.bought.length);
  });

  it("take the domains of the companies stream, under the same caps", async () => {
    const stage = await lookups({ from_companies: true, max_lookups_per_sync: 3 });
    await stage.play({ bought: 3 }, {});
    expect(stage.bought.toSorted()).toEqual(
      stage.service
        .companies()
        .map(({ domain }) => domain)
        .sort(),
    );
  });

  it("are not bought with a state that cannot be read", async () => {
    const stage = await lookups({ domains: ONE });
    const state = { company_lookups: { version: 1 } };
    const ran = await stage.runtime.readStream("company_lookups", { state });
    expect(ran.errors()).toMatchObject([{ failure_type: "config_error" }]);
    expect(stage.bought).toEqual([]);
  });
});

describe("email_checks", () => {
  it("have a record for each e-mail and source, once the job is completed", async () => {
    const stage = await sandboxStage("email_check", { emails: ["a@x.example"] }, { sources: 3 });
    const ran = await stage.play({ delivered: 3 });
    for (const record of ran.records())
      expect(record).toEqual({
        job_id: expect.stringMatching(/^chk_/),
        source: expect.any(String),
        ...{ email: "a@x.example", status: "done", is_user: expect.any(Boolean), cached: false },
        checked_at: expect.stringMatching(/^2026-03-02T10:/),
      });
    // One submission, and no credits.
    expect(JSON.stringify(ran.state())).toMatch(/"spent":\[\["2026-03-02",[^\]]*,1,0,0\]\]/);
  });

  it("wait for office hours, are not asked for before, and are collected then", async () => {
    const options = { now: "2026-03-06T20:00:00Z", jobs: { timezone: "America/New_York" } };
    const stage = await sandboxStage("email_check", { emails: ["a@x.example", "b@x.example"] }, options);
    const settings = { emails: ["c@x.example"] };
    const ran = await stage.play(
      { bought: 2 },
      { after: 5 * HOUR, settings, says: "the first answer is due at 2026-03-09T13:00:00.000Z" },
      { settings, polls: 0 },
      { after: 3 * DAY, settings, bought: 0 },
    );
    expect(new Set(ran.records().map(({ email }) => email))).toEqual(new Set(["c@x.example"]));
  });
});

describe("email_verifications", () => {
  it("keep the response as it is, and a full refresh delivers it again from the receipts, which buys nothing", async () => {
    const config = { receipts_file: join(await tempDir(), "receipts.jsonl") };
    const emails = ["a@x.example", "b@x.example"];
    const stage = await sandboxStage("email_verification", { emails }, {}, config);
    const first = await stage.play({ bought: emails, delivered: emails });
    for (const record of first.records())
      expect(record).toEqual({
        email: expect.any(String),
        verified_at: expect.stringMatching(/^2026-03-02T10:00/),
        response: expect.objectContaining({ email: record["email"], checks: expect.anything() }),
      });
    const refresh: Sync = { isForgotten: true, syncMode: "full_refresh", says: "; 2 answered, 0 submitted" };
    const second = await stage.play({ bought: 0 }, { ...refresh, bought: 0 });
    const byEmail = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).toSorted();
    expect(byEmail(second.records())).toEqual(byEmail(first.records()));
  });

  it("go one at a time until one is answered, then ten side by side", async () => {
    const waiting: (() => void)[] = [];
    let answered = 0;
    let most = 0;
    const { url } = await serve((request, response) => {
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
    const receipts_file = join(await tempDir(), "receipts.jsonl");
    const email_verification = { emails: named(21, (nth) => `e${nth}@x.example`) };
    const config = jobConfig({ url, key: EXTERNAL_KEY }, { receipts_file, email_verification });
    const runs = new JobRuntime(config, { url, advance: () => undefined });
    const ran = await runs.readStream("email_verifications");
    expect([ran.code, ran.records().length, most]).toEqual([0, 21, 1]);
  });
});
