import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, it, vi } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService, envelope, refusing } from "../support/counting-service.ts";
import { countingStage, DAY, HOUR, playScene, type Scene, type Sync } from "../support/job-stage.ts";

vi.setConfig({ testTimeout: 120_000 });

const ITEMS = ["a.example", "b.example", "c.example", "d.example"];
const created_at = new Date().toISOString();
const emailsOf = (count: number): string[] => Array.from({ length: count }, (_, nth) => `e${nth}@x.example`);
const EMAILS = emailsOf(4);

type Answer = (response: ServerResponse) => unknown;

const reply =
  (status: number, body: string | Buffer = "", headers: OutgoingHttpHeaders = {}): Answer =>
  (response) =>
    response.writeHead(status, headers).end(body);
const GZIP = { "content-encoding": "gzip" };

/** Every way to answer badly that the interface leaves open, or that a proxy invents. */
const BAD: Readonly<Record<string, Answer>> = {
  "an empty 200": reply(200, '""'),
  "a list": reply(200, "[]"),
  "a web page": reply(200, "<html>Welcome"),
  "a redirect": reply(302, "", { location: "http://elsewhere.example/" }),
  "204": reply(204),
  "502 of a gateway": reply(502, "Bad gateway"),
  "a body that breaks off": (response) => {
    response.writeHead(200, { "content-length": "1000" }).write('{"success":true,"data":{"job_id":"job');
    setTimeout(() => response.destroy(), 20);
  },
  "a body that is no gzip": reply(200, "no gzip", GZIP),
  "33 MiB": reply(200, gzipSync(Buffer.alloc(33 * 1024 * 1024, 32)), GZIP),
  "a nest of 5,000 lists": reply(200, `{"status":"success","x":${"[".repeat(5000)}${"]".repeat(5000)}}`),
  "a connection that breaks": (response) => response.destroy(),
  "bytes that are no HTTP": (response) => response.socket?.end("garbage\r\n\r\n"),
};

describe.each(Object.entries(BAD))("%s", (_, answer) => {
  it("for one result does not stop the other results, and buys nothing again", async () => {
    const stage = await countingStage("company_lookup", { domains: ITEMS });
    const bad = { behaviour: { wild: { method: "GET", items: ["b.example"], answer } }, after: 8 * DAY };
    await stage.play(
      { ...bad, bought: ITEMS, delivered: ["a.example", "c.example", "d.example"] },
      ...[1, 2, 3].map(() => ({ ...bad, bought: [], delivered: [] })),
      { after: 48 * DAY, bought: [], delivered: ["b.example"] },
    );
  });

  it("to a submission buys nothing twice, with state, without it and without receipts", async () => {
    const bad = { behaviour: { wild: { method: "POST", answer } }, after: 8 * DAY, fails: null };
    const settings = { domains: ITEMS };
    await playScene({ settings, syncs: [bad, bad, bad, { ...bad, isForgotten: true }] });
  });
});

it.each([429, 503])(
  "a submission that a %i with two Retry-After refuses is made again, and paid once",
  async (status) => {
    const refusals = [{ ...envelope(status, "RATE_LIMITED"), headers: { "retry-after": ["1", "1"] } }];
    const settings = { domains: ITEMS.slice(0, 1) };
    const refuse = () => refusals.pop();
    await playScene({
      settings,
      syncs: [{ behaviour: { refuse }, bought: settings.domains }, { bought: [] }],
    });
  },
);

const PROCESSING = { result: () => ({ status: 200, body: { status: "processing" } }) };
/** The platform always throws its state away. */
const onlyD: Sync = {
  ...{ isForgotten: true, fails: null },
  behaviour: refusing(400, "INVALID_REQUEST", ITEMS.slice(0, 3)),
};

/** The last two e-mails have each other's answer. */
const swapped = (job_id: string, item: string) => {
  const email = new Map([
    ["e2@x.example", "e3@x.example"],
    ["e3@x.example", "e2@x.example"],
  ]).get(item);
  const body = { job_id, created_at, email, status: "completed", sources: { s: { is_user: true } } };
  return email === undefined ? undefined : { status: 200, body };
};
const ONE_ID: Sync = {
  behaviour: {
    wild: { method: "POST", answer: reply(202, '{"success":true,"data":{"job_id":"job_0_x"}}') },
  },
  fails: null,
};

const SCENES: Readonly<Record<string, Scene>> = {
  "Answers that are swapped are not delivered, and collected once they are not": {
    setting: "email_check",
    settings: { emails: EMAILS },
    syncs: [
      { behaviour: { result: swapped }, delivered: EMAILS.slice(0, 2), warns: "the answer names another" },
      { after: 8 * DAY, delivered: EMAILS.slice(2), bought: [] },
    ],
  },
  "Two items with one id are charged and bought once each": {
    settings: { domains: ITEMS },
    syncs: [ONE_ID, ONE_ID],
  },
  "A platform that always throws its state away gets the items behind refused ones": {
    settings: { domains: ITEMS },
    syncs: [onlyD, { ...onlyD, bought: ["d.example"] }, onlyD, { ...onlyD, tried: 0 }],
  },
  "A key that may see none of three jobs fails the sync, and the jobs are collected afterwards": {
    setting: "email_check",
    settings: { emails: emailsOf(3), max_wait_seconds: 0 },
    syncs: [
      { behaviour: PROCESSING, bought: 3, delivered: [] },
      { behaviour: { result: () => envelope(403, "ACCESS_DENIED") }, fails: "config_error" },
      { bought: 0, delivered: emailsOf(3) },
    ],
  },
  "An address at which every job answers nonsense is asked for 50 of them": {
    setting: "email_check",
    settings: { emails: emailsOf(60), max_wait_seconds: 0 },
    syncs: [
      { behaviour: PROCESSING, bought: 60, delivered: [] },
      { behaviour: { result: () => envelope(400, "NONSENSE") }, fails: "config_error", polls: 51 },
      { bought: 0, delivered: 60 },
    ],
  },
  "An answer that costs more than a cap passes it, and the others wait for another day": {
    settings: { domains: ITEMS, max_credits_per_day: 10 },
    syncs: [
      { behaviour: { price: 12 }, bought: ["a.example"], warns: "a cap was passed" },
      { bought: [] },
      { after: DAY, bought: 3 },
    ],
  },
};

describe("jobs", () => {
  it.each(Object.entries(SCENES))("%s", (_, scene) => playScene(scene));

  it("submit nothing more when the service's clock jumps during a run", async () => {
    const stage = await countingStage("email_verification", { emails: emailsOf(40) });
    const refuse = () => {
      if (stage.service.tried.length === 2) stage.service.advance(30 * HOUR);
      return undefined;
    };
    await stage.play({ behaviour: { refuse }, warns: "30 hours" });
    expect(stage.bought.length).toBeLessThanOrEqual(2 + 10);
  });

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
