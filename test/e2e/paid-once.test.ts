import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import {
  countingStage,
  DAY,
  HOUR,
  playInSandbox,
  type Scene,
  type Sync,
  sandboxStage,
} from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

const ONE = ["1.example"];
const named = (count: number, name: (nth: number) => string): string[] =>
  Array.from({ length: count }, (_, nth) => name(nth));
const SLOW: SandboxOptions = { jobs: { lookupSeconds: 3600 } };
const OFFICE_HOURS: SandboxOptions = {
  ...{ now: "2026-03-06T20:00:00Z", jobs: { timezone: "America/New_York" }, sources: 1 },
};
const [EARLY, LATE] = [["a@x.example", "b@x.example"], ["c@x.example"]];
const LATER: Sync = { settings: { emails: LATE } };

const lookups = (settings: object, options?: SandboxOptions, config?: object) =>
  sandboxStage("company_lookup", settings, options, config);

const SCENES: Readonly<Record<string, Scene>> = {
  "waits no longer than it may": {
    settings: { domains: ONE, max_wait_seconds: 60 },
    options: SLOW,
    syncs: [{ sleeps: 61_000, says: "1 job left open" }],
  },
  "asks for nothing that would come after the end of the run": {
    settings: { domains: ONE },
    options: SLOW,
    config: { max_run_seconds: 20 },
    // Asked after 5 and 12.5 s.
    syncs: [{ polls: 2 }],
  },
  "fails where the only job has no result, but not for a week: then that is no news": {
    settings: { domains: ONE, max_wait_seconds: 60 },
    syncs: [
      { fault: "status=500:times=always:path=/job_1_", fails: "transient_error", bought: ONE },
      { after: 6 * DAY, fails: "transient_error" },
      { after: DAY, bought: [], warns: "no result for" },
    ],
  },
  "submits nothing to an address that answers 404 to everything": {
    settings: { domains: ONE },
    options: SLOW,
    syncs: [{ fault: "status=404:times=always:path=result", fails: "config_error", bought: [] }],
  },
  "submits again what is one request too many": {
    settings: { domains: ONE },
    syncs: [{ fault: "429=7:times=3:path=company-lookup$", bought: ONE, delivered: ONE }],
  },
  "submits again what the service refuses for now": {
    settings: { domains: ONE },
    syncs: [{ fault: "status=423:times=3:path=company-lookup$", bought: ONE, delivered: ONE }],
  },
  "waits for office hours, asks for nothing before, and collects then": {
    setting: "email_check",
    settings: { emails: EARLY },
    options: OFFICE_HOURS,
    syncs: [
      { bought: EARLY },
      { after: 5 * HOUR, ...LATER, bought: LATE, says: "first answer is due at 2026-03-09T13:00:00.000Z" },
      { ...LATER, polls: 0, delivered: [] },
      { after: 3 * DAY, ...LATER, bought: 0, delivered: LATE },
    ],
  },
};

describe("a sync with jobs", () => {
  it.each(Object.entries(SCENES))("%s", (_, scene) => playInSandbox(scene));
});

describe("company_lookups", () => {
  it("are bought once each, and their results are kept as they are", async () => {
    const stage = await lookups({ domains: ["2.example", "1.example", " 2.Example "] });
    const { states, ...first } = await stage.play({ warns: "up to 2 items" });
    expect(
      first.records().toSorted((a, b) => (String(a["domain"]) < String(b["domain"]) ? -1 : 1)),
    ).toMatchObject([
      { domain: "1.example", status: "success", credits_used: 1 },
      {
        ...{ domain: "2.example", status: "success", credits_used: 2 },
        contacts: [{}, { verifications: [{}, {}] }],
      },
    ]);
    expect(JSON.stringify(states)).not.toContain("1.example");
    const second = await stage.play({ bought: [], delivered: [] });
    expect([first.warnings().length, second.warnings()]).toEqual([1, []]);
    expect(stage.bought).toEqual(["2.example", "1.example"]);
  });

  it("are not submitted once the run is to end", async () => {
    const domains = named(40, (nth) => `1-${nth}.example`);
    const stage = await lookups({ domains }, { jobs: { lookupSeconds: 15 } }, { max_run_seconds: 20 });
    await stage.play({ sleeps: 21_000 });
    expect(stage.bought.length).toBeLessThan(40);
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
    expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 14, 21, 28]);
  });
});

it("email_checks have a record for each e-mail and source, once the job is completed", async () => {
  const stage = await sandboxStage("email_check", { emails: ["a@x.example"] }, { sources: 3 });
  const ran = await stage.play({ delivered: 3 });
  for (const record of ran.records())
    expect(record).toEqual({
      ...{ job_id: expect.stringMatching(/^chk_/), source: expect.any(String), email: "a@x.example" },
      ...{ status: "done", is_user: expect.any(Boolean), cached: false },
      checked_at: expect.stringMatching(/^2026-03-02T10:/),
    });
  // One submission, and no credits.
  expect(JSON.stringify(ran.states)).toMatch(/"spent":\[\["2026-03-02",[^\]]*,1,0,0\]\]/);
});

describe("email_verifications", () => {
  it("keep the response as it is, and a full refresh delivers it again from the receipts, which buys nothing", async () => {
    const config = { receipts_file: join(await tempDir(), "receipts.jsonl") };
    const stage = await sandboxStage("email_verification", { emails: ["a@x.example"] }, {}, config);
    const [record] = (await stage.play({ bought: 1 })).records();
    expect(record).toEqual({
      email: "a@x.example",
      verified_at: expect.stringMatching(/^2026-03-02T10:00/),
      response: expect.objectContaining({ email: "a@x.example", checks: expect.anything() }),
    });
    const refresh: Sync = { isForgotten: true, syncMode: "full_refresh", says: ": 1 answered, 0 submitted" };
    const second = await stage.play({ bought: 0 }, { ...refresh, bought: 0 });
    expect(second.records()).toEqual([record]);
  });

  it("go one at a time until one is answered, then several side by side", async () => {
    const emails = named(21, (nth) => `e${nth}@x.example`);
    const stage = await countingStage("email_verification", { emails });
    const most = { first: 0, later: 0 };
    let open = 0;
    const until = async (): Promise<void> => {
      const which = stage.bought.length === 0 ? "first" : "later";
      open += 1;
      most[which] = Math.max(most[which], open);
      await new Promise((resolve) => setTimeout(resolve, 50));
      open -= 1;
    };
    await stage.play({ behaviour: { until }, bought: 21, delivered: 21 });
    expect([most.first, most.later > 1]).toEqual([1, true]);
  });
});
