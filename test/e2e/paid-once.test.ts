import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SandboxOptions } from "../../sandbox/server.ts";
import { countingStage, DAY, HOUR, type Setting, type Sync, sandboxStage } from "../support/job-stage.ts";
import type { JobState } from "../support/job-types.ts";
import { tempDir } from "../support/temp-dir.ts";

const ONE = ["1.example"];
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

const SCENES: Record<string, Scene> = {
  "waits no longer than it may": {
    settings: { domains: ONE, max_wait_seconds: 60 },
    options: SLOW,
    syncs: [{ sleeps: 61_000, says: "1 job left open" }],
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
};

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

  it("go one at a time until one is answered, then several side by side", async () => {
    const stage = await countingStage("email_verification", {
      emails: named(21, (nth) => `e${nth}@x.example`),
    });
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
