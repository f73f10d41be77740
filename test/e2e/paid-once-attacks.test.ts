import { writeFileSync } from "node:fs";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService, envelope } from "../support/counting-service.ts";
import { countingStage, DAY, HOUR, type Setting, type Sync } from "../support/job-stage.ts";
import { type JobState, subsIn } from "../support/job-types.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 120_000 });

const ITEMS = ["a.example", "b.example", "c.example", "d.example"];
const people = ITEMS.map((companyDomain, nth) => ({ id: String(nth), companyDomain }));
const emailsOf = (count: number): string[] => Array.from({ length: count }, (_, nth) => `e${nth}@x.example`);

const lookups = (settings: object = {}, config: object = {}) =>
  countingStage("company_lookup", { domains: ITEMS, ...settings }, config);

type Answer = (response: ServerResponse) => boolean;

const reply =
  (status: number, body: string | Buffer = "", headers: OutgoingHttpHeaders = {}): Answer =>
  (response) => {
    response.writeHead(status, headers);
    response.end(body);
    return true;
  };
const error = (status: number, code: string): Answer =>
  reply(status, JSON.stringify(envelope(status, code).body));
const GZIP = { "content-encoding": "gzip" };

/** Every way to answer badly that the interface leaves open, or that a proxy invents. */
const BAD: Readonly<Record<string, Answer>> = {
  "an empty 200": reply(200, '""'),
  "a list": reply(200, "[]"),
  "a web page": reply(200, "<html>Welcome"),
  "a redirect": reply(302, "", { location: "http://elsewhere.example/" }),
  "204": reply(204),
  "408 of a proxy": reply(408),
  "418 without a word": reply(418),
  "409 with an unknown code": error(409, "CONFLICT"),
  "500 with the envelope": error(500, "INTERNAL_ERROR"),
  "502 of a gateway": reply(502, "Bad gateway"),
  "504 of a gateway": reply(504, "Gateway timeout"),
  "a body that breaks off": (response) => {
    response.writeHead(200, { "content-length": "1000" });
    response.write('{"success":true,"data":{"job_id":"job');
    setTimeout(() => response.destroy(), 20);
    return true;
  },
  "a body that is no gzip": reply(200, "no gzip", GZIP),
  "33 MiB": reply(200, gzipSync(Buffer.alloc(33 * 1024 * 1024, 32)), GZIP),
  "a nest of 5,000 lists": reply(200, `{"status":"success","x":${"[".repeat(5000)}${"]".repeat(5000)}}`),
  "a connection that breaks": (response) => {
    response.destroy();
    return true;
  },
  "bytes that are no HTTP": (response) => {
    response.socket?.end("garbage\r\n\r\n");
    return true;
  },
};

describe.each(Object.entries(BAD))("%s", (_, answer) => {
  it("for a result keeps no other job from being collected, and buys nothing again", async () => {
    const stage = await lookups();
    const behaviour = {
      wild: (method: string, item: string, response: ServerResponse) =>
        method === "GET" && item === "b.example" && answer(response),
    };
    const collected: unknown[] = [];
    for (const after of [0, 8 * DAY, 8 * DAY, 8 * DAY])
      collected.push(...(await stage.play({ after, behaviour })).records().map(({ domain }) => domain));
    expect(collected.toSorted()).toEqual(["a.example", "c.example", "d.example"]);
    expect(stage.bought.toSorted()).toEqual(ITEMS);
    await stage.play({ after: 48 * DAY, bought: [], delivered: ["b.example"] });
  });

  it("to a submission buys nothing twice, with state, without it and without receipts", async () => {
    const stage = await lookups();
    const behaviour = {
      wild: (method: string, _item: string, response: ServerResponse) =>
        method === "POST" && answer(response),
    };
    for (const after of [0, 8 * DAY, 8 * DAY]) await stage.play({ after, behaviour, fails: null });
    await stage.play({ after: 8 * DAY, behaviour, isForgotten: true, fails: null });
    expect(stage.service.orderedTwice).toEqual([]);
  });
});

const QUEUED = { status: "queued", contacts: [], credits_used: 0 };
const WRONG_KEY = envelope(401, "INVALID_API_KEY");
const PROCESSING = { result: () => ({ status: 200, body: { status: "processing" } }) };
const onlyD = (code: string): Sync => ({
  ...{ isForgotten: true, fails: null },
  behaviour: { refuse: (item) => (item === "d.example" ? undefined : envelope(400, code)) },
});
const clockOff = (hours: number): Scene => ({
  settings: { domains: [], from_people: true },
  syncs: [
    {
      ...{ clockMoves: hours * HOUR, behaviour: { people }, bought: [] },
      warns: `30 hours ${hours > 0 ? "ahead of" : "behind"} this machine's`,
    },
    { clockMoves: -hours * HOUR, behaviour: { people }, bought: ITEMS },
  ],
});
/** Refused items are not tried again by runs that know only the receipts. */
const throwsStateAway = (code: string): Scene => ({
  syncs: [onlyD(code), onlyD(code), onlyD(code), { ...onlyD(code), submissions: 0 }],
  bought: ["d.example"],
});

/** A gateway that answers every submission, for days, without saying whether it arrived. */
const unsaid = (submissions: number, after: number, isForgotten = false): Sync => ({
  ...{ after, submissions, isForgotten, fails: submissions === 3 ? "transient_error" : undefined },
  behaviour: { refuse: () => ({ status: 503, body: "" }) },
});

type Scene = {
  readonly setting?: Setting;
  readonly settings?: object;
  readonly config?: object;
  readonly syncs: readonly [Sync, ...Sync[]];
  /** In all syncs together. */
  readonly bought?: readonly string[];
};

const SCENES: Readonly<Record<string, Scene>> = {
  "A clock that is 30 hours ahead buys nothing, nor do rows of people": clockOff(30),
  "A clock that is 30 hours behind buys nothing, nor do rows of people": clockOff(-30),
  "A platform that always throws its state away gets what stands behind refused items":
    throwsStateAway("INVALID_REQUEST"),
  "A platform that always throws its state away gets what stands behind items that cannot be verified":
    throwsStateAway("SOURCE_NOT_VERIFIABLE"),
  "A submission endpoint that is down for days leaves three items unknown, then one a day, whatever is remembered":
    {
      settings: { domains: emailsOf(20).map((email) => email.replace("@", ".")) },
      syncs: [
        unsaid(3, 0),
        unsaid(1, HOUR),
        unsaid(0, HOUR),
        unsaid(0, HOUR, true),
        unsaid(1, DAY),
        unsaid(0, HOUR, true),
        unsaid(1, DAY, true),
        // One is answered, and the rest follows.
        { after: DAY, submissions: 20 - 6 },
      ],
    },
  "Jobs that are queued until tomorrow hold no place in flight": {
    syncs: [
      {
        behaviour: {
          result: (job_id) => {
            const scheduled_processing_time = new Date(Date.now() + DAY).toISOString();
            return { status: 202, body: { job_id, ...QUEUED, scheduled_processing_time } };
          },
        },
        bought: ITEMS,
      },
    ],
  },
  "A key that is wrong for one sync fails it, and the jobs are collected afterwards": {
    settings: { max_wait_seconds: 0 },
    syncs: [
      {},
      { behaviour: { result: () => WRONG_KEY, refuse: () => WRONG_KEY }, fails: "config_error" },
      { delivered: ["a.example"] },
    ],
  },
  "A key that may see none of three jobs fails the sync, and the jobs are collected afterwards": {
    setting: "email_check",
    settings: { emails: emailsOf(3), max_wait_seconds: 0 },
    syncs: [
      { behaviour: PROCESSING, bought: 3, delivered: [] },
      {
        behaviour: { result: () => envelope(403, "ACCESS_DENIED") },
        ...{ fails: "config_error", says: "may not read any of the 3 jobs" },
      },
      { bought: 0, delivered: emailsOf(3) },
    ],
  },
  "An address at which every job brings nonsense is asked for 50 of them": {
    setting: "email_check",
    settings: { emails: emailsOf(60), max_wait_seconds: 0 },
    syncs: [
      { behaviour: PROCESSING, bought: 60, delivered: [] },
      { behaviour: { result: () => envelope(400, "NONSENSE") }, fails: "config_error", polls: 51 },
      { bought: 0, delivered: 60 },
    ],
  },
  "An answer that costs more than a cap passes it, and the next item waits for another day": {
    settings: { max_credits_per_day: 10 },
    syncs: [
      {
        behaviour: { price: () => 12 },
        ...{ bought: ["a.example"], warns: "a cap was passed: a day may use 10 credits, and 12 were used" },
      },
      { bought: [] },
      { after: DAY, bought: 1 },
    ],
  },
  "Without any memory a run submits ten items, and the next ten more": {
    setting: "email_verification",
    settings: { emails: emailsOf(15) },
    config: { receipts_file: "" },
    syncs: [{ bought: 10, warns: "email_verifications: at most 10 items will be submitted" }, { bought: 5 }],
    bought: emailsOf(15),
  },
  "Receipts that are there and cannot be used stop the submissions, and open jobs are collected": {
    settings: { max_wait_seconds: 0 },
    config: { receipts_file: "" },
    syncs: [
      { bought: ["a.example"] },
      {
        config: { receipts_file: await tempDir() },
        settings: { max_wait_seconds: 300 },
        ...{ fails: "config_error", bought: [], delivered: ["a.example"] },
      },
    ],
  },
};

describe("jobs", () => {
  it.each(Object.entries(SCENES))(
    "%s",
    async (_, { setting = "company_lookup", settings, config, ...scene }) => {
      const stage = await countingStage(
        setting,
        { ...(setting === "company_lookup" && { domains: ITEMS }), ...settings },
        config,
      );
      await stage.play(...scene.syncs);
      if (scene.bought !== undefined) expect(stage.bought.toSorted()).toEqual(scene.bought.toSorted());
      expect(stage.service.orderedTwice).toEqual([]);
    },
  );

  it("that a state announced and nobody submitted, because the key was withdrawn, are submitted by the next sync", async () => {
    const emails = emailsOf(10);
    const stage = await countingStage("email_check", { emails }, { receipts_file: "" });
    // States that take long announce several groups of submissions at once.
    stage.runtime.stateMs = 1_000;
    let taken = 0;
    const refuse = () => (++taken > 5 ? envelope(401, "INVALID_API_KEY") : undefined);
    const ran = await stage.play({ behaviour: { refuse }, fails: "config_error", bought: 5, submissions: 9 });
    const states = ran.messages.flatMap(({ state }) => (state ? [state.stream.stream_state] : []));
    expect(Math.max(...states.map((state) => subsIn(state as JobState).length))).toBe(10);
    await stage.play({ bought: emails.slice(5), fails: null });
  });

  it("submit nothing more once another run has taken the lock while they waited for their turn", async () => {
    const stage = await countingStage(
      "email_verification",
      { emails: emailsOf(40) },
      { requests_per_minute: 10 },
    );
    const { receipts_file } = stage.config as { readonly receipts_file: string };
    const { service } = stage;
    const advance = service.advance.bind(service);
    let taken: number | undefined;
    service.advance = (ms) => {
      if (ms > 0 && service.bought.length > 0 && taken === undefined) {
        taken = service.tried.length;
        writeFileSync(`${receipts_file}.lock`, '{"token":"another"}\n');
      }
      advance(ms);
    };
    await stage.play({ fails: "transient_error", says: "another run took it over" });
    expect(taken).toBeGreaterThan(0);
    expect(service.tried).toHaveLength(taken ?? 0);
  });

  it("submit nothing more when the service's clock jumps during a run", async () => {
    const stage = await countingStage("email_verification", { emails: emailsOf(40) });
    let submitted = 0;
    const refuse = () => {
      submitted += 1;
      if (submitted === 2) stage.service.advance(30 * HOUR);
      return undefined;
    };
    await stage.play({ behaviour: { refuse }, warns: "30 hours" });
    expect(stage.bought.length).toBeLessThanOrEqual(2 + 10);
  });

  it("to a submission in the words of a failed result says that nothing was bought", async () => {
    const stage = await lookups();
    const refuse = () => ({ status: 200, body: { status: "error", error_code: "INSUFFICIENT_CREDITS" } });
    await stage.play({ behaviour: { refuse }, bought: [], submissions: 1 }, { bought: ITEMS });
  });

  it.each<[string, Setting, readonly string[], (item: string, other: string) => object]>([
    ...(["success", "error"] as const).map(
      (status): [string, Setting, readonly string[], (item: string, other: string) => object] => [
        `look-ups that end with ${status}`,
        "company_lookup",
        ITEMS,
        (_item: string, domain: string) => ({
          domain,
          status,
          contacts: [],
          credits_used: 0,
          error_code: "X",
        }),
      ],
    ),
    [
      "checks",
      "email_check",
      emailsOf(4),
      (_item, email) => ({ email, status: "completed", sources: { s: { is_user: true } } }),
    ],
  ])(
    "whose answers are swapped are not delivered, and collected once they are not: %s",
    async (_, setting, items, body) => {
      const [a = "", b = ""] = items.slice(-2);
      const lists = setting === "email_check" ? { emails: items } : { domains: items };
      const stage = await countingStage(setting, lists);
      const result = (job_id: string, item: string) => {
        // Another spelling is no other item.
        const named =
          new Map([
            [a, b],
            [b, a],
          ]).get(item) ?? `${item.toUpperCase()}.`;
        const said = { job_id, ...body(item, named), created_at: new Date().toISOString() };
        return item === a || item === b ? { status: 200, body: said } : undefined;
      };
      await stage.play(
        {
          behaviour: { result },
          delivered: items.slice(0, -2),
          warns: "no result for 2 jobs (the answer names another",
        },
        { after: 8 * DAY, delivered: [a, b], bought: [] },
      );
      expect(stage.bought.toSorted()).toEqual(items);
    },
  );

  it("with one id for two items are charged and bought once each", async () => {
    const stage = await lookups();
    const wild = (method: string, _item: string, response: ServerResponse) =>
      method === "POST" && reply(202, '{"success":true,"data":{"job_id":"job_0_x"}}')(response);
    await stage.play({ behaviour: { wild }, fails: null }, { behaviour: { wild }, fails: null });
    expect(stage.service.orderedTwice).toEqual([]);
  });

  it.each(["sales", undefined])(
    "count by a state whose namespace is %s, whatever the catalog says",
    async (namespace) => {
      const emails = ["a@x.example"];
      const stage = await countingStage("email_verification", { emails }, { receipts_file: "" });
      const [message] = (await stage.play({})).state() as [{ stream: { stream_state: object } }];
      const stream_descriptor = { name: "email_verifications", namespace };
      const state = [{ ...message, stream: { ...message.stream, stream_descriptor } }];
      await stage.runtime.readStream("email_verifications", { state });
      expect(stage.bought).toEqual(emails);
    },
  );

  it.each([-5, "5", "-5", null, "1e400", "NaN", [], {}])(
    "pass no cap for credits_used %j",
    async (credits_used) => {
      const domains = Array.from({ length: 40 }, (_, nth) => `i${nth}.example`);
      const stage = await lookups({ domains, max_credits_per_sync: 20, max_credits_per_day: 30 });
      const result = (job_id: string, domain: string) => {
        const created_at = new Date().toISOString();
        const contacts = [{}, {}, {}, {}];
        return {
          status: 200,
          body: { job_id, domain, status: "success", contacts, credits_used, created_at },
        };
      };
      for (let run = 0; run < 4; run++) await stage.play({ behaviour: { result } });
      // 4 contacts each, or 5 credits where a text says so: 20 a sync, 30 a day.
      expect(stage.bought.length).toBeLessThanOrEqual(7);
      expect(stage.bought.length).toBeGreaterThan(0);
    },
  );

  it("are refused before any request, with exit 2, by a bare record stream without a memory", async () => {
    await using service = await CountingService.start();
    const settings = { base_url: service.url, api_key: "k", email_check: { emails: ["a@x.example"] } };
    const config = await file("config.json", settings);
    const args = ["read", "--config", config, "--format", "jsonl", "--stream", "email_checks"];
    const { code, stderr } = await run(CONNECTOR, args);
    expect(code).toBe(2);
    expect(stderr).toContain("--state-file");
    expect(service.requests).toEqual([]);
  });
});
