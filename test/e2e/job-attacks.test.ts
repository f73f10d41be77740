import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { type Behaviour, CountingService, envelope } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { JobRuntime } from "../support/job-runtime.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ITEMS = ["a.example", "b.example", "c.example", "d.example"];

async function worldOf(
  { url }: CountingService,
  service: CountingService,
  jobs: object,
): Promise<JobRuntime> {
  const config = {
    base_url: url,
    api_key: "k",
    requests_per_minute: 6000,
    receipts_file: join(await tempDir(), "receipts.jsonl"),
    external_api: { api_url: url, api_key: "k" },
    ...jobs,
  };
  const runtime = new JobRuntime(config, service);
  await runtime.discover();
  return runtime;
}

const lookups = (service: CountingService, settings: object = {}): Promise<JobRuntime> =>
  worldOf(service, service, { company_lookup: { domains: ITEMS, ...settings } });

const json = (response: ServerResponse, status: number, body: unknown): boolean => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
  return true;
};

/** Every way to answer badly that the interface leaves open, or that a proxy invents. */
const BAD: Readonly<Record<string, (response: ServerResponse) => boolean>> = {
  "an empty 200": (response) => json(response, 200, ""),
  "a list": (response) => json(response, 200, []),
  "a web page": (response) => {
    response.end("<html>Welcome");
    return true;
  },
  "a redirect": (response) => {
    response.writeHead(302, { location: "http://elsewhere.example/" });
    response.end();
    return true;
  },
  "204": (response) => {
    response.writeHead(204);
    response.end();
    return true;
  },
  "408 of a proxy": (response) => {
    response.writeHead(408);
    response.end();
    return true;
  },
  "418 without a word": (response) => {
    response.writeHead(418);
    response.end();
    return true;
  },
  "409 with an unknown code": (response) =>
    json(response, 409, { success: false, error: { code: "CONFLICT", message: "" } }),
  "500 with the envelope": (response) =>
    json(response, 500, { success: false, error: { code: "INTERNAL_ERROR", message: "" } }),
  "502 of a gateway": (response) => {
    response.writeHead(502);
    response.end("Bad gateway");
    return true;
  },
  "a body that breaks off": (response) => {
    response.writeHead(200, { "content-length": "1000" });
    response.write('{"success":true,"data":{"job_id":"job');
    setTimeout(() => response.destroy(), 20);
    return true;
  },
  "a body that is no gzip": (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end("no gzip");
    return true;
  },
  "33 MiB": (response) => {
    response.writeHead(200, { "content-encoding": "gzip" });
    response.end(gzipSync(Buffer.alloc(33 * 1024 * 1024, 32)));
    return true;
  },
  "a nest of 5,000 lists": (response) => {
    response.end(`{"status":"success","x":${"[".repeat(5000)}${"]".repeat(5000)}}`);
    return true;
  },
  "a connection that breaks": (response) => {
    response.destroy();
    return true;
  },
  "bytes that are no HTTP": (response) => {
    response.socket?.end("garbage\r\n\r\n");
    return true;
  },
};

describe.each(Object.entries(BAD))("%s", { timeout: 120_000 }, (_, answer) => {
  it("for a result keeps no other job from being collected, and buys nothing again", async () => {
    await using service = await CountingService.start();
    service.behaviour = {
      wild: (method, item, response) => method === "GET" && item === "b.example" && answer(response),
    };
    const runtime = await lookups(service);
    let state: unknown;
    const collected: unknown[] = [];
    for (let run = 0; run < 4; run++) {
      const ran = await runtime.readStream("company_lookups", { state });
      state = ran.state();
      expect(ran.code, `${run} ${ran.text.slice(-800)}`).toBe(0);
      collected.push(...ran.records().map(({ domain }) => domain));
      runtime.pass(8 * DAY);
    }
    expect(collected.toSorted()).toEqual(["a.example", "c.example", "d.example"]);
    expect(service.bought.toSorted()).toEqual(ITEMS);
    service.behaviour = {};
    runtime.pass(40 * DAY);
    const healed = await runtime.readStream("company_lookups", { state });
    expect(healed.records()).toMatchObject([{ domain: "b.example" }]);
    expect(service.bought.toSorted()).toEqual(ITEMS);
  });

  it("to a submission buys nothing twice, with state, without it and without receipts", async () => {
    await using service = await CountingService.start();
    service.behaviour = { wild: (method, _item, response) => method === "POST" && answer(response) };
    const runtime = await lookups(service);
    let state: unknown;
    for (let run = 0; run < 3; run++) {
      state = (await runtime.readStream("company_lookups", { state })).state();
      runtime.pass(8 * DAY);
    }
    await runtime.readStream("company_lookups");
    expect(service.boughtTwice).toEqual([]);
  });
});

describe("the service's clock", { timeout: 60_000 }, () => {
  it.each([30 * HOUR, -30 * HOUR])("%d ms off: rows of people buy nothing either", async (off) => {
    await using service = await CountingService.start();
    const people = ITEMS.map((companyDomain, nth) => ({ id: String(nth), companyDomain }));
    service.behaviour = { people };
    const runtime = await worldOf(service, service, { company_lookup: { from_people: true } });
    service.advance(off);
    const ran = await runtime.readStream("company_lookups");
    expect(service.bought).toEqual([]);
    expect(ran.warnings().join()).toContain("30 hours");
    expect(ran.code).toBe(0);
    service.advance(-off);
    await runtime.readStream("company_lookups", { state: ran.state() });
    expect(service.bought.toSorted()).toEqual(ITEMS);
  });

  it("jumps during a run: nothing more is submitted", async () => {
    await using service = await CountingService.start();
    let submitted = 0;
    service.behaviour = {
      refuse: () => {
        submitted += 1;
        if (submitted === 2) service.advance(30 * HOUR);
        return undefined;
      },
    };
    const runtime = await worldOf(service, service, {
      email_verification: { emails: Array.from({ length: 40 }, (_, nth) => `e${nth}@x.example`) },
    });
    const ran = await runtime.readStream("email_verifications");
    expect(service.bought.length).toBeLessThanOrEqual(2 + 10);
    expect(ran.warnings().join()).toContain("30 hours");
  });
});

describe("a refresh that the service refuses", { timeout: 60_000 }, () => {
  it.each([
    ["COMPANY_NOT_FOUND", 0],
    ["INVALID_REQUEST", 1],
  ])("is not tried in every run, and the answer is kept: %s", async (code, taken) => {
    await using service = await CountingService.start();
    const runtime = await lookups(service, { refresh_after_days: 3 });
    let { state } = await runtime.readStream("company_lookups");
    const asked: string[] = [];
    const refuse = (item: string) => (asked.push(item) <= taken ? undefined : envelope(400, code));
    service.behaviour = { refuse };
    runtime.pass(5 * DAY);
    for (let run = 0; run < 3; run++) {
      const ran = await runtime.readStream("company_lookups", { state: state() });
      state = ran.state;
      expect(ran.code).toBe(0);
      expect(ran.done()).toBe(ITEMS.length);
      runtime.pass(HOUR);
    }
    expect(asked.toSorted()).toEqual(ITEMS);
    expect(service.bought).toHaveLength(ITEMS.length + taken);
    service.behaviour = {};
    runtime.pass(4 * DAY);
    const healed = await runtime.readStream("company_lookups", { state: state() });
    expect(healed.records()).toHaveLength(ITEMS.length);
    const refreshed = await runtime.readStream("company_lookups", { syncMode: "full_refresh" });
    expect(refreshed.records()).toHaveLength(ITEMS.length);
    expect(service.bought).toHaveLength(2 * ITEMS.length + taken);
  });

  it("for want of credits is tried once in every run, and the answer is kept", async () => {
    await using service = await CountingService.start();
    const runtime = await lookups(service, { refresh_after_days: 3 });
    let { state } = await runtime.readStream("company_lookups");
    let asked = 0;
    const refuse = () => {
      asked += 1;
      return envelope(402, "INSUFFICIENT_CREDITS");
    };
    service.behaviour = { refuse };
    runtime.pass(5 * DAY);
    for (let run = 0; run < 3; run++) {
      const ran = await runtime.readStream("company_lookups", { state: state() });
      state = ran.state;
      expect(ran.code).toBe(0);
      expect(ran.done()).toBe(ITEMS.length);
    }
    expect(asked).toBe(3);
    expect(service.bought).toHaveLength(ITEMS.length);
  });
});

describe("a platform that always throws its state away", { timeout: 60_000 }, () => {
  const refusing = (code: string): Behaviour => ({
    refuse: (item) => (item === "d.example" ? undefined : envelope(400, code)),
  });

  it.each(["INVALID_REQUEST", "SOURCE_NOT_VERIFIABLE"])(
    "still gets what stands behind items that are refused: %s",
    async (code) => {
      await using service = await CountingService.start();
      service.behaviour = refusing(code);
      const runtime = await lookups(service);
      for (let run = 0; run < 3; run++) await runtime.readStream("company_lookups");
      expect(service.bought).toEqual(["d.example"]);
      const posts = (): number => service.requests.filter((request) => request.startsWith("POST")).length;
      const before = posts();
      await runtime.readStream("company_lookups");
      expect(posts()).toBe(before);
    },
  );
});

describe("jobs that are queued until tomorrow", { timeout: 60_000 }, () => {
  it("hold no place in flight", async () => {
    await using service = await CountingService.start();
    const queued = (jobId: string): object => ({
      job_id: jobId,
      status: "queued",
      contacts: [],
      credits_used: 0,
      scheduled_processing_time: new Date(Date.now() + DAY).toISOString(),
    });
    service.behaviour = { result: (jobId) => ({ status: 202, body: queued(jobId) }) };
    const runtime = await lookups(service);
    await runtime.readStream("company_lookups");
    expect(service.bought).toEqual(ITEMS);
  });
});

describe("one job id for two items", { timeout: 60_000 }, () => {
  it("is charged no less than once each, and bought once each", async () => {
    await using service = await CountingService.start();
    service.behaviour = {
      wild: (method, _item, response) =>
        method === "POST" && json(response, 202, { success: true, data: { job_id: "job_0_x" } }),
    };
    const runtime = await lookups(service);
    const first = await runtime.readStream("company_lookups");
    await runtime.readStream("company_lookups", { state: first.state() });
    expect(service.boughtTwice).toEqual([]);
  });
});

describe("a key that is wrong for one sync", { timeout: 60_000 }, () => {
  it("fails as config_error, and the jobs are collected afterwards", async () => {
    await using service = await CountingService.start();
    const runtime = await lookups(service, { max_wait_seconds: 0 });
    const first = await runtime.readStream("company_lookups");
    service.behaviour = {
      result: () => envelope(401, "INVALID_API_KEY"),
      refuse: () => envelope(401, "INVALID_API_KEY"),
    };
    const wrong = await runtime.readStream("company_lookups", { state: first.state() });
    expect(wrong.errors()).toMatchObject([{ failure_type: "config_error" }]);
    service.behaviour = {};
    const after = await runtime.readStream("company_lookups", { state: wrong.state() });
    expect(after.records()).toMatchObject([{ domain: "a.example" }]);
    expect(service.boughtTwice).toEqual([]);
  });
});

describe("one stream of look-ups refreshed, the other incremental", { timeout: 60_000 }, () => {
  it("buys once, by the incremental one; the refresh is complete once it knows and has delivered all", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const { url } = service;
    const config = await file("config.json", {
      base_url: url,
      api_key: "k",
      requests_per_minute: 6000,
      receipts_file: join(folder, "receipts.jsonl"),
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: ITEMS },
    });
    const modes = [
      ["company_lookups", "full_refresh"],
      ["company_lookup_contacts", "incremental"],
    ];
    const catalog = await file("catalog.json", {
      streams: modes.map(([name, sync_mode]) => ({ stream: { name, json_schema: {} }, sync_mode })),
    });
    const args = ["read", "--config", config, "--catalog", catalog, "--state-file", join(folder, "s.json")];
    for (const code of [1, 0]) {
      expect((await run(CONNECTOR, args, { clock: hurriedClock() })).code).toBe(code);
      expect(service.bought.toSorted()).toEqual(ITEMS);
    }
  });
});

describe("both streams of look-ups in one run", { timeout: 60_000 }, () => {
  it("wait once for one job, read the rows once, and submit what the caps let one stream", async () => {
    const asked: (readonly string[])[] = [];
    for (const streams of [["company_lookups"], ["company_lookups", "company_lookup_contacts"]]) {
      await using service = await CountingService.start();
      const people = ITEMS.map((companyDomain, nth) => ({ id: String(nth), companyDomain }));
      const processing = { status: 200, body: { status: "processing" } };
      service.behaviour = { people, result: (_id, item) => (item === "c.example" ? processing : undefined) };
      const settings = { domains: ["c.example"], from_people: true, max_wait_seconds: 200 };
      const runtime = await lookups(service, settings);
      const before = service.requests.length;
      const ran = await runtime.readStream(streams);
      expect(ran.code, ran.text.slice(-800)).toBe(0);
      asked.push(service.requests.slice(before).filter((request) => !request.includes("job_0_check")));
    }
    const [one = [], both = []] = asked;
    expect(one.filter((request) => request.includes("/people")).length).toBeGreaterThan(0);
    expect(both.toSorted()).toEqual(one.toSorted());
  });
});

describe("no memory at all", { timeout: 60_000 }, () => {
  it("lets a run submit ten items, and the next ten more", async () => {
    await using service = await CountingService.start();
    const emails = Array.from({ length: 15 }, (_, nth) => `e${nth}@x.example`);
    const runtime = await worldOf(service, service, { receipts_file: "", email_verification: { emails } });
    const ran = await runtime.readStream("email_verifications");
    expect(service.bought).toHaveLength(10);
    expect(ran.warnings().join()).toContain("at most 10 items");
    await runtime.readStream("email_verifications", { state: ran.state() });
    expect(service.bought.toSorted()).toEqual(emails.toSorted());
  });

  it.each(["sales", undefined])(
    "counts a state whose namespace is %s, whatever the catalog says",
    async (namespace) => {
      await using service = await CountingService.start();
      const emails = ["a@x.example"];
      const runtime = await worldOf(service, service, { receipts_file: "", email_verification: { emails } });
      const [message] = (await runtime.readStream("email_verifications")).state() as [
        { stream: { stream_descriptor: object; stream_state: object } },
      ];
      const descriptor = { name: "email_verifications", namespace };
      const state = [{ ...message, stream: { ...message.stream, stream_descriptor: descriptor } }];
      await runtime.readStream("email_verifications", { state });
      expect(service.bought).toEqual(emails);
    },
  );
});

describe("receipts that are there and cannot be used", { timeout: 60_000 }, () => {
  it("stop the submissions, and open jobs are collected", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const runtime = await lookups(service, { max_wait_seconds: 0, receipts_file: "" });
    const first = await runtime.readStream("company_lookups");
    expect(service.bought).toEqual(["a.example"]);
    const blocked = await worldOf(service, service, {
      company_lookup: { domains: ITEMS },
      receipts_file: folder,
    });
    const ran = await blocked.readStream("company_lookups", { state: first.state() });
    expect(ran.errors()).toMatchObject([{ failure_type: "config_error" }]);
    expect(ran.records()).toMatchObject([{ domain: "a.example" }]);
    expect(service.bought).toEqual(["a.example"]);
  });
});

describe("a bare record stream without a memory", () => {
  it("is refused before any request, with exit 2", async () => {
    await using service = await CountingService.start();
    const { url } = service;
    const config = await file("config.json", {
      base_url: url,
      api_key: "k",
      email_check: { emails: ["a@x.example"] },
    });
    const args = ["read", "--config", config, "--format", "jsonl", "--stream", "email_checks"];
    const { code, stderr } = await run(CONNECTOR, args);
    expect(code).toBe(2);
    expect(stderr).toContain("--state-file");
    expect(service.requests).toEqual([]);
  });
});

describe("prices that are nonsense", { timeout: 60_000 }, () => {
  it.each([-5, "5", "-5", null, "1e400", "NaN", [], {}])(
    "credits_used %j passes no cap",
    async (credits_used) => {
      await using service = await CountingService.start();
      const domains = Array.from({ length: 40 }, (_, nth) => `i${nth}.example`);
      service.behaviour = {
        result: (job_id, domain) => ({
          status: 200,
          body: {
            job_id,
            domain,
            status: "success",
            contacts: [{}, {}, {}, {}],
            credits_used,
            created_at: new Date().toISOString(),
          },
        }),
      };
      const runtime = await lookups(service, { domains, max_credits_per_sync: 20, max_credits_per_day: 30 });
      let state: unknown;
      for (let run = 0; run < 4; run++)
        state = (await runtime.readStream("company_lookups", { state })).state();
      // 4 contacts each, or 5 credits where a text says so: 20 a sync, 30 a day.
      expect(service.bought.length).toBeLessThanOrEqual(7);
      expect(service.bought.length).toBeGreaterThan(0);
    },
  );
});
