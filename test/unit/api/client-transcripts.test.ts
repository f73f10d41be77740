import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { Client, type ClientOptions } from "../../../src/api/client.ts";
import { openDispatcher } from "../../../src/api/dispatcher.ts";
import { EXTERNAL_API } from "../../../src/api/error-table.ts";
import { Limiter } from "../../../src/api/limiter.ts";
import { ConnectorError, FormError } from "../../../src/errors.ts";
import { serve } from "../../support/serve.ts";
import { sleepyClock } from "../../support/session.ts";

type Answer = {
  readonly status?: number;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the connection breaks. */
  readonly cut?: "before the head" | "in the body";
};

const NOON = "Fri, 20 Mar 2026 12:00:00 GMT";
const refusal = (code: string): string => JSON.stringify({ success: false, error: { code } });
const refused = (status: number, code = "NOT_OF_THE_INTERFACE", headers = {}): Answer => ({
  ...{ status, body: refusal(code), headers },
});
const OK: Answer = { body: '{"n":1}' };
const PACKED = { "content-encoding": "gzip" };
const LIMITED = refused(429, "RATE_LIMITED");
const patient = (seconds: string): Answer => refused(429, "RATE_LIMITED", { "retry-after": seconds });

async function answer(response: ServerResponse, { status = 200, body = "", headers = {}, cut }: Answer) {
  if (cut === "before the head") return void response.destroy();
  response.setHeader("date", NOON).writeHead(status, headers);
  if (cut === undefined) return void response.end(body);
  response.write(body, () => setImmediate(() => response.destroy()));
}

const CALLS = {
  get: (client: Client) => client.getJson("count", "/x", { a: "1 &", b: "é" }, (value) => value),
  "get, of a form": (client: Client) =>
    client.getJson("count", "/x", {}, () => {
      throw new FormError("Cannot count: not that form", { reason: "not that form" });
    }),
  ask: (client: Client) =>
    client.ask(
      "ask",
      "/job/1",
      (status) => status < 405,
      (...answered) => answered,
    ),
  "ask, read": (client: Client) =>
    client.ask(
      "ask",
      "/job/1",
      (status) => status < 405,
      () => undefined,
    ),
  open: async (client: Client) => {
    const { body, gzipped, idleMs } = await client.open("read", "/rows", {});
    return { body: (await text(body)).length, gzipped, idleMs };
  },
  "open once": async (client: Client) => {
    const { body, gzipped } = await client.open("read", "/rows", { q: "1" }, true);
    return { body: (await text(body)).length, gzipped };
  },
  post: (client: Client) => client.post("submit", "/jobs", { domain: "é.example" }),
} as const;
type Call = keyof typeof CALLS;

const told = (error: unknown): string => {
  if (!(error instanceof ConnectorError)) return String(error);
  const { name, code = "", reason = "", message, cause } = error;
  return `${name} ${code}: ${reason === "" ? message : message.replace(reason, `[${reason}]`)}${cause === undefined ? "" : "; with its cause"}`;
};

/** A call, what it asks, how long it waits between, and what comes of it. */
async function transcript(
  call: Call,
  answers: readonly Answer[],
  given: Partial<ClientOptions> = {},
  step = 0,
): Promise<string[]> {
  const lines: string[] = [];
  let nth = 0;
  const { url } = await serve(async (request: IncomingMessage, response) => {
    const { method, headers } = request;
    const body = await text(request);
    const said = ["x-api-key", "accept", "accept-encoding", "content-type"].map(
      (name) => headers[name] ?? "-",
    );
    lines.push(`  ${method} ${request.url} ${nth === 0 ? said.join(" ") : ""} ${body}`.trimEnd());
    await answer(response, answers[Math.min(nth++, answers.length - 1)] ?? OK);
  });
  const base = new URL(url);
  const ticks = sleepyClock(step);
  const clock = {
    ...ticks,
    sleep: async (ms: number) => {
      lines.push(`  sleeps ${ms} ms`);
      await ticks.sleep(ms);
    },
  };
  const dispatcher = openDispatcher(base, {});
  onTestFinished(() => dispatcher.close());
  const client = new Client({
    ...{
      base,
      apiKey: "KEY",
      settings: EXTERNAL_API,
      dispatcher,
      clock,
      random: () => 0.5,
      idleTimeoutMs: 30_000,
    },
    ...{ limiter: new Limiter(600, clock), signal: new AbortController().signal },
    notify: (notice) => void lines.push(`  ${Object.values(notice).join(", ")}`),
    ...given,
  });
  const ends = await CALLS[call](client).then(
    (value) => JSON.stringify(value, (_, inner) => (inner instanceof Error ? told(inner) : inner)),
    told,
  );
  const { requests, retries, bytesReceived, waitedMs, requestMs } = client.usage;
  const clocks = `${new Date(client.now()).toISOString()}${client.knowsTime ? "" : " (by this machine)"}`;
  const used = `${requests} requests, ${retries} retries, ${bytesReceived} bytes, waited ${waitedMs} ms, asked ${requestMs} ms`;
  return [...lines, `  → ${ends}`, `  ${used}; ${clocks}`].map((line) => line.replaceAll(base.host, "HOST"));
}

const SERIES: Readonly<Record<string, readonly Answer[]>> = {
  "an answer": [OK],
  "an answer in gzip": [{ body: gzipSync('{"n":2}'), headers: PACKED }],
  "an answer in br": [{ body: "x", headers: { "content-encoding": "br" } }],
  "no content": [{ status: 204 }],
  "no JSON": [{ body: "<p>" }],
  "an error in a success": [{ body: refusal("QUOTA_EXCEEDED") }],
  "a failure, then an answer": [refused(500), OK],
  failures: [refused(503)],
  "a wish to be left alone, then an answer": [
    refused(503, "SOURCE_UNAVAILABLE", { "retry-after": "90" }),
    OK,
  ],
  "a wish that nobody understands": [refused(503, "SOURCE_UNAVAILABLE", { "retry-after": "soon" }), OK],
  "a wish for ever": [refused(503, "SOURCE_UNAVAILABLE", { "retry-after": "99999" })],
  "a limit, then an answer": [LIMITED, patient("20"), OK],
  "a limit for ever": [patient("9999")],
  "a quota": [refused(429, "QUOTA_EXCEEDED", { "retry-after": "20" })],
  "a wrong key": [refused(401, "INVALID_API_KEY")],
  "nothing there": [refused(404)],
  "a refusal without a body": [{ status: 405 }],
  "a redirect": [{ status: 307, headers: { location: "https://elsewhere.example/x" } }],
  "a redirect that may have done it": [{ status: 303, headers: { location: "/y" } }],
  "300": [{ status: 300 }],
  "399": [{ status: 399 }],
  "a connection that dies, then an answer": [{ cut: "before the head" }, OK],
  "connections that die": [{ cut: "before the head" }],
  "a body that breaks off, then an answer": [{ body: '{"n":', cut: "in the body" }, OK],
  "a refusal that breaks off": [{ status: 400, body: '{"success":false', cut: "in the body" }],
  "damaged gzip": [{ body: "x", headers: PACKED }, OK],
  "an error too long to read": [{ status: 400, body: `${" ".repeat(65_536)}${refusal("INVALID_BODY")}` }],
  "an error that is as long as may be": [{ status: 400, body: refusal("INVALID_BODY").padStart(65_536) }],
  "an error in gzip": [{ status: 403, body: gzipSync(refusal("ACCESS_DENIED")), headers: PACKED }],
};

it("asks, waits, and gives up as these transcripts say", async () => {
  const parts: string[] = [];
  for (const [name, answers] of Object.entries(SERIES)) {
    const calls = (Object.keys(CALLS) as Call[]).filter((call) => call !== "get, of a form");
    const all = await Promise.all(calls.map((call) => transcript(call, answers)));
    for (const [nth, lines] of all.entries()) parts.push(`${calls[nth]}: ${name}`, ...lines);
  }
  parts.push("get: an answer of another form", ...(await transcript("get, of a form", [OK])));
  parts.push("get: while time passes", ...(await transcript("get", [refused(500), OK], {}, 700)));
  for (const tries of [1, 3, 9])
    parts.push(`get, with ${tries} tries: failures`, ...(await transcript("get", [refused(503)], { tries })));
  await expect(`${parts.join("\n")}\n`).toMatchFileSnapshot("../../golden/client-transcripts.txt");
});
