import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { type Behaviour, CountingService, envelope, refusing } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { countingStage, DAY, HOUR, jobConfig, playScene, type Scene } from "../support/job-stage.ts";
import { canMount, mountAlone } from "../support/mounts.ts";
import { ROOT } from "../support/run.ts";
import { tempDir } from "../support/temp-dir.ts";

vi.setConfig({ testTimeout: 60_000 });

const ITEMS = [..."abcdef"].map((letter) => `${letter}.example`);
const [A = ""] = ITEMS;
const EMAILS = [..."abcdef"].map((letter) => `${letter}@x.example`);
const created_at = "2026-03-02T10:00:00Z";

/** The result of the first item; the others answer as usual. */
const first = (body: object, price = 100): Behaviour => ({
  price,
  result: (job_id, item) => (item === A ? { status: 200, body: { job_id, domain: A, ...body } } : undefined),
});
const success = (more: object) => ({ status: "success", contacts: [], credits_used: 1, created_at, ...more });
const result = (body: object) => first(success(body), 1);
/** More than 32 MiB, as 12,000 contacts are. */
const CONTACTS = Array.from({ length: 12_000 }, (_, nth) => ({
  email: `p${nth}@${A}`,
  note: "x".repeat(3_100),
}));
const LONG = "x".repeat(100_000);

const QUEUED: Behaviour = { result: () => ({ status: 200, body: { status: "queued" } }) };
/** Answers the submission of some items with these bytes. */
const saying = (items: readonly string[], bytes: string): Behaviour => ({
  wild: { method: "POST", items: [...items], answer: (response) => response.socket?.end(bytes) },
});

const SCENES: Readonly<Record<string, Scene>> = {
  "an answer as high as the cap lets the next ones go one by one": {
    syncs: [{ behaviour: { price: 100 }, bought: [A] }, { bought: ITEMS.slice(1) }],
  },
  "a first job that has no result keeps the others back for a day": {
    settings: { max_credits_per_month: 100 },
    syncs: [
      { behaviour: { result: () => envelope(404, "JOB_NOT_FOUND") }, bought: [A] },
      { after: HOUR, behaviour: { result: () => envelope(404, "JOB_NOT_FOUND") }, bought: [] },
      { after: DAY, behaviour: first({ status: "odd" }, 1), bought: ITEMS.slice(1) },
    ],
  },
  "a result of 37 MiB is delivered": {
    settings: { domains: [A], max_credits_per_sync: 20_000 },
    syncs: [{ behaviour: result({ contacts: CONTACTS }), delivered: [A], says: "12,000 credits used" }],
  },
  "a result under the main domain of the company is delivered with a warning": {
    settings: { domains: [A] },
    syncs: [{ behaviour: result({ domain: "main.example" }), delivered: 1, warns: "than was submitted" }],
  },
  "a result under another spelling is delivered": {
    settings: { domains: [A] },
    syncs: [{ behaviour: result({ domain: "WWW.A.example." }), delivered: 1 }],
  },
  "a result in an envelope, which cannot be used, is charged": {
    settings: { domains: [A] },
    syncs: [
      {
        behaviour: first({ success: true, data: { status: "success", credits_used: 7 } }),
        ...{ fails: "transient_error", says: "7 credits used in this sync", delivered: [] },
      },
      { after: DAY, bought: [], delivered: [A] },
    ],
  },
  "an answer in progress that is none, and names its cost, is charged": {
    settings: { domains: [A] },
    syncs: [
      {
        behaviour: { result: () => ({ status: 202, body: success({ status: "done", credits_used: 7 }) }) },
        ...{ fails: "transient_error", says: "7 credits used in this sync", delivered: [] },
      },
      { after: DAY, bought: [], delivered: [A] },
    ],
  },
  "a header that comes twice is one value": {
    settings: { domains: ITEMS.slice(0, 3) },
    syncs: [
      {
        behaviour: {
          wild: {
            ...{ method: "POST", items: [A] },
            answer: (response) =>
              response
                .setHeader("content-encoding", ["identity", "identity"])
                .writeHead(202)
                .end('{"success":true,"data":{"job_id":"job_0_x"}}'),
          },
        },
        delivered: ITEMS.slice(0, 3),
      },
    ],
  },
  ...Object.fromEntries(
    ['{"success":true,"deliv', "tru", "-", "1e", "0.", "<html><bo", "<?xml version", " "].map((text) => [
      `a verification that is cut is a lost answer: ${text}`,
      {
        setting: "email_verification",
        settings: { emails: EMAILS.slice(0, 2) },
        syncs: [
          {
            behaviour: saying(EMAILS.slice(0, 1), `HTTP/1.1 200 OK\r\n\r\n${text}`),
            ...{ delivered: EMAILS.slice(1, 2), warns: "1 submission got no answer" },
          },
          { after: 40 * DAY, bought: [] },
        ],
      } satisfies Scene,
    ]),
  ),
  ...Object.fromEntries(
    [
      '"[ok] deliverable"',
      "[OK] deliverable",
      '""',
      '"a","b"',
      "{'a': True}",
      '{"score":NaN}',
      "tru",
      "<b>",
    ].map((text) => [
      `a verification with its length is an answer, whatever it says: ${text}`,
      {
        setting: "email_verification",
        settings: { emails: EMAILS.slice(0, 1) },
        syncs: [
          {
            behaviour: saying(EMAILS, `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
            delivered: EMAILS.slice(0, 1),
          },
        ],
      } satisfies Scene,
    ]),
  ),
  "one look-up is open at a time until its price is known, over all syncs": {
    settings: { domains: ITEMS, max_wait_seconds: 0 },
    syncs: [
      { behaviour: QUEUED, bought: [A] },
      { behaviour: QUEUED, after: DAY, bought: [] },
      { behaviour: QUEUED, after: 2 * DAY, bought: [] },
      { behaviour: QUEUED, after: 2 * DAY, bought: 1 },
      { behaviour: { price: 3 }, settings: { domains: ITEMS }, bought: ITEMS.length - 2 },
    ],
  },
  "a result under the URL of another item is that item's": {
    settings: { domains: ITEMS.slice(0, 2) },
    syncs: [
      {
        behaviour: {
          result: (job_id, domain) => ({
            ...{ status: 200 },
            body: {
              job_id,
              ...success({ domain: domain === A ? domain : `https://www.${A}/x`, credits_used: 2 }),
            },
          }),
        },
        ...{ delivered: [A], says: "4 credits used in this sync" },
      },
    ],
  },
  "a check that waits over a weekend is no problem": {
    setting: "email_check",
    settings: { emails: EMAILS.slice(0, 1), max_wait_seconds: 0 },
    syncs: [
      { behaviour: { result: () => ({ status: 200, body: { status: "queued" } }) }, bought: 1 },
      {
        ...{ after: 3 * DAY, behaviour: { result: () => ({ status: 200, body: { status: "running" } }) } },
        ...{ bought: [], lacks: '"warn"' },
      },
    ],
  },
  "a suppressed address in the list of a contact, or a list of addresses, does not leave": {
    settings: { domains: [A] },
    config: { suppress_file: await file("suppressed.txt", "ann@x.example\n") },
    syncs: [
      {
        behaviour: result({
          contacts: [
            { email: ["ann@x.example"] },
            "Ann@x.example",
            [{ email: "ANN@x.example" }],
            { email: "b@x" },
            "b@x.example ann@x.example",
            { email: "mailto:ann@x.example" },
          ],
        }),
        ...{ delivered: [A], lacks: "ann@x" },
      },
    ],
  },
};

describe("money", () => {
  it.each(Object.entries(SCENES))("%s", (_, { settings, ...scene }) => {
    const lists = scene.setting === undefined ? { domains: ITEMS } : {};
    return playScene({ ...scene, settings: { ...lists, ...settings } });
  });

  it.each<[string, Scene["setting"], Behaviour]>([
    ["a code of a failure", "company_lookup", first({ status: "error", error_code: LONG }, 1)],
    [
      "names of sources",
      "email_check",
      {
        result: (job_id, email) => {
          const sources = { [LONG]: { is_user: true }, two: { status: "failed", is_user: null } };
          return { status: 200, body: { job_id, email, status: "completed", sources } };
        },
      },
    ],
  ])("%s is in no state and no message", async (_what, setting = "company_lookup", behaviour) => {
    const items = setting === "email_check" ? { emails: EMAILS.slice(0, 1) } : { domains: [A] };
    const stage = await countingStage(setting, items);
    const ran = await stage.play({ behaviour, fails: null });
    expect(JSON.stringify(ran.states)).not.toContain("xxxx");
    expect(JSON.stringify(ran.messages.filter(({ record }) => record === undefined))).not.toContain("xxxx");
  });

  it("is announced by few states where these are large", async () => {
    const emails = Array.from({ length: 60 }, (_, nth) => `e${nth}@x.example`);
    const stage = await countingStage("email_verification", { emails });
    const { states } = await stage.play({ settings: { max_per_sync: 1 }, bought: 1 });
    const digests = Array.from({ length: 6_000 }, (_, nth) => String(nth).padStart(16, "d"));
    const delivered = states[0]?.stream.stream_state["delivered"] as unknown[];
    delivered.push(["2026-01-01", digests.join("")]);
    stage.state = states;
    const { messages } = await stage.play({ bought: 59, delivered: 59 });
    expect(messages.filter(({ state }) => state !== undefined).length).toBeLessThan(10);
  });

  it.skipIf(!canMount)(
    "is spent once by two runs that use one receipts file through two mounts",
    async () => {
      await using service = await CountingService.start();
      service.behaviour = { until: () => new Promise((resolve) => setTimeout(resolve, Math.random() * 30)) };
      const folder = await tempDir();
      const read = async (name: string, max_per_sync: number, asProcess: boolean) => {
        const email_verification = { emails: EMAILS, max_per_sync };
        const settings = { receipts_file: join(folder, name), email_verification };
        const config = await file("config.json", jobConfig(service, settings));
        const args = ["read", "--config", config, "--stream", "email_verifications"];
        return await run(CONNECTOR, args, { asProcess });
      };
      await read("receipts.jsonl", 0, false);
      for (const name of ["one", "two"]) mountAlone(join(folder, "receipts.jsonl"), join(folder, name));
      await Promise.all(["one", "two"].map((name) => read(name, 10, true)));
      expect(service.orderedTwice).toEqual([]);
      await read("one", 10, false);
      expect(service.bought.toSorted()).toEqual(EMAILS);
    },
  );
});

it("look-ups under a cap by day continue after a run was killed before the first price", async () => {
  await using service = await CountingService.start();
  const receipts_file = join(await tempDir(), "receipts.jsonl");
  const settings = { receipts_file, company_lookup: { domains: ITEMS, max_credits_per_day: 20 } };
  const config = await file("config.json", jobConfig(service, settings));
  const args = ["read", "--config", config, "--stream", "company_lookups"];
  await run(CONNECTOR, args, {
    started: (child) => {
      service.behaviour = { wild: { method: "POST", answer: () => child.kill("SIGKILL") } };
    },
  });
  expect(service.bought).toEqual([A]);
  service.behaviour = {};
  await run(CONNECTOR, args, { clock: hurriedClock() });
  expect(service.bought).toEqual(ITEMS);
});

it("the week of docs/jobs.md is true", async () => {
  const page = await readFile(join(ROOT, "docs/jobs.md"), "utf8");
  const days = [...page.matchAll(/^\| \w+day \| (.+) \| (\d+) \| (\d+) \|$/gm)];
  const domains = Array.from({ length: 300 }, (_, nth) => `d${nth}.example`);
  const stage = await countingStage("company_lookup", { domains, max_credits_per_sync: 20 });
  expect(days).toHaveLength(7);
  for (const [, costs = "", lookups, credits] of days) {
    const prices = costs.match(/\d+/g) ?? [];
    const before = stage.bought.length;
    const behaviour: Behaviour = {
      result: (job_id, domain) => {
        const cost = Number(prices[stage.bought.indexOf(domain) - before] ?? prices.at(-1));
        const body = { job_id, domain, ...success({ credits_used: cost }) };
        const none = { job_id, domain, status: "error", error_code: "COMPANY_NOT_FOUND" };
        return { status: 200, body: cost === 0 ? none : body };
      },
    };
    await stage.play({ behaviour, after: DAY, bought: Number(lookups), says: `${credits} credits used` });
  }
});

it("a state of jobs is not merged, and not given up either", async () => {
  const stage = await countingStage("company_lookup", { domains: [A] });
  const { states } = await stage.play({ bought: [A] });
  const path = await file("state.json", states);
  const { code, stderr } = await run(CONNECTOR, ["state", "merge", path, path]);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/shards do not read "company_lookups".*Keep the state/),
  ]);
  expect(stderr).not.toMatch(/remove/i);
});

/** A config of a service elsewhere, whose receipts are in a place of the user. */
const elsewhere = (host: string) =>
  file("config.json", {
    ...{ base_url: `https://${host}`, api_key: "svc_00000000_1" },
    external_api: { api_url: `https://${host}`, api_key: "svc_00000000_1" },
    email_verification: { emails: EMAILS },
  });

describe("jobs", () => {
  it("names the receipts by their absolute path, however HOME and the host are written", async () => {
    const known = async (host: string, env: Record<string, string>) => {
      const { stdout } = await run(CONNECTOR, ["jobs", "--config", await elsewhere(host)], { env });
      return /The receipts "(.*)" are new/.exec(stdout)?.[1];
    };
    const usual = await known("x.example", { HOME: homedir() });
    expect(usual?.startsWith(join(homedir(), ".local/state/source-contact-intelligence/receipts-"))).toBe(
      true,
    );
    const same = [
      await known("x.example.", { HOME: homedir() }),
      await known("x.example", { HOME: "" }),
      await known("x.example", { HOME: homedir(), XDG_STATE_HOME: "state" }),
    ];
    expect(same).toEqual([usual, usual, usual]);
  });

  it("says how many purchases the receipts know, and forecasts with the price of the run", async () => {
    await using service = await CountingService.start();
    service.behaviour = { price: 10 };
    const receipts_file = join(await tempDir(), "receipts.jsonl");
    const domains = Array.from({ length: 30 }, (_, nth) => `d${nth}.example`);
    const settings = { receipts_file, company_lookup: { domains, max_lookups_per_sync: 2 } };
    const config = await file("config.json", jobConfig(service, settings));
    const state = join(await tempDir(), "state.json");
    const args = ["read", "--config", config, "--stream", "company_lookups", "--state-file", state];
    await run(CONNECTOR, args, { clock: hurriedClock() });
    service.behaviour = refusing(400, "INVALID_BODY");
    await run(CONNECTOR, args, { clock: hurriedClock() });
    expect(service.tried.length).toBeGreaterThan(2);
    const suppress_file = await file("suppressed.txt", "0a".repeat(32));
    const more = { receipts_file, suppress_file, company_lookup: { domains, max_lookups_per_sync: 100 } };
    const jobs = ["jobs", "--config", await file("more.json", jobConfig(service, more))];
    const { stdout, stderr } = await run(CONNECTOR, jobs);
    expect(stdout).toContain(`The receipts "${receipts_file}" know 2 purchases`);
    expect(stdout).toContain("10 of 28 waiting items");
    expect(stderr).toMatch(/^Warning: The suppress_file ".*" has only hexadecimal digits in line 1: /);
    const json = JSON.parse((await run(CONNECTOR, [...jobs, "--json"])).stdout);
    expect(json).toMatchObject([{ receipts: receipts_file, purchases: 2 }]);
  });
});
