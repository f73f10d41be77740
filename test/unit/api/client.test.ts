import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/api/clock.ts";
import { FAILURES, NETWORK, networkError, PUBLIC_API, statusError } from "../../../src/api/error-table.ts";
import { BodyError, ConfigError, TransientError } from "../../../src/errors.ts";
import type { StreamApi } from "../../../src/streams/stream-api.ts";
import type { Window } from "../../../src/streams/window.ts";
import type { Day } from "../../../src/time.ts";
import { withSandbox } from "../../lab/faultlab/read-once.ts";
import { deadPort, listOf, type Served, serve as serveRequests } from "../../support/serve.ts";
import { errorOf, holdTimers, KEY, type Opened, openSession } from "../../support/session.ts";

const RECENT: Window = { kind: "open", from: "2026-03-19" as Day, undated: false };

const PLACE = { host: "api.example.com:443", settings: PUBLIC_API };

/** A service of the test's own, which knows how many requests there were. */
async function serve(answer: (response: ServerResponse, nth: number) => void): Promise<Served> {
  const served = await serveRequests((_, response) => answer(response, served.requests.length));
  return served;
}

const refuse = (response: ServerResponse, status: number, code: string, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ success: false, error: { code, message: `the key is ${KEY}` } }));
};

async function drain(api: StreamApi, window = RECENT): Promise<number> {
  let rows = 0;
  for await (const batch of api.stream(window)) rows += batch.rows.length;
  return rows;
}

function saysNoSecret(error: Error): void {
  for (let next: unknown = error; next instanceof Error; next = next.cause) {
    expect(next.message).not.toContain(KEY);
    expect(next.message).not.toContain("00112233");
    expect(next.message).not.toContain("0a1b2c3d");
  }
}

describe("Client", () => {
  it("counts, and knows between which moments of the service's clock", async () => {
    const { url } = await serve((response) => {
      response.setHeader("date", "Fri, 20 Mar 2026 10:00:00 GMT");
      response.end(listOf(7));
    });
    const { api } = openSession(url);
    const count = await api.count(RECENT);
    expect(count).toMatchObject({ rows: 7, known: true, answered: Date.parse("2026-03-20T10:00:01Z") });
    expect(count.asked).toBeLessThanOrEqual(Date.parse("2026-03-20T09:59:59Z"));
    expect(count.asked).toBeGreaterThan(Date.parse("2026-03-20T09:59:50Z"));
    expect(count.asked % 1000).toBe(0);
    expect(Math.abs(api.now() - Date.parse("2026-03-20T10:00:00Z"))).toBeLessThan(2_000);
  });

  it("sends its key in one header, asks for gzip, and names its days", async () => {
    const { url, requests } = await serve((response) => response.end(listOf(0)));
    await openSession(`${url}/base/`).api.count({
      kind: "closed",
      from: "2026-01-01" as Day,
      to: "2026-01-02" as Day,
    });
    expect(requests[0]?.url).toBe(
      "/base/api/v1/public/people?limit=1&discovered_from=2026-01-01&discovered_to=2026-01-02",
    );
    expect(requests[0]?.headers).toMatchObject({ "x-api-key": KEY, "accept-encoding": "gzip" });
    expect(requests[0]?.url).not.toContain("svc_");
  });

  it.each([
    ["https://api.example.com", "api.example.com:443"],
    ["http://localhost", "localhost:80"],
    ["https://localhost:8443/base", "localhost:8443"],
  ])("names the port in its errors: %s", (url, host) => {
    const { client } = openSession(url);
    expect(client.refusal("read people", 500, undefined).message).toContain(
      `Cannot read people at ${host}: `,
    );
  });

  it("asks over one connection, and submits each time over a new one, which cannot be dying", async () => {
    const { url, requests } = await serve((response) => response.end(listOf(0)));
    const { api, client } = openSession(url);
    for (let nth = 0; nth < 2; nth++) {
      await api.count(RECENT);
      await client.post("submit", "/submit", {});
    }
    const [count, post, again, second] = requests.map(({ socket }) => socket);
    expect(again).toBe(count);
    expect(new Set([count, post, second]).size).toBe(3);
  });

  it.each([
    [500, "INTERNAL_ERROR"],
    [503, "ORG_KIND_UNAVAILABLE"],
    [423, "SOURCE_UNAVAILABLE"],
    [502, "NOT_OF_THE_INTERFACE"],
    [408, "NOT_OF_THE_INTERFACE"],
  ])("asks again after %i %s, five times at most", async (status, code) => {
    const once = await serve((response, nth) =>
      nth < 5 ? refuse(response, status, code) : response.end(listOf(7)),
    );
    expect((await openSession(once.url).api.count(RECENT)).rows).toBe(7);
    const ever = await serve((response) => refuse(response, status, code));
    const error = await errorOf(openSession(ever.url).api.count(RECENT));
    expect(error).toBeInstanceOf(TransientError);
    saysNoSecret(error);
    expect(ever.requests).toHaveLength(5);
  });

  it.each([
    [400, "INVALID_PARAMETER"],
    [401, "INVALID_API_KEY"],
    [403, "ENDPOINT_NOT_ON_PLAN"],
    [403, "QUOTA_EXCEEDED"],
    [429, "QUOTA_EXCEEDED"],
    [418, "NOT_OF_THE_INTERFACE"],
  ])("does not ask again after %i %s", async (status, code) => {
    const { url, requests } = await serve((response) => refuse(response, status, code));
    const error = await errorOf(openSession(url).api.count(RECENT));
    expect(error).toBeInstanceOf(ConfigError);
    saysNoSecret(error);
    expect(requests).toHaveLength(1);
  });

  it("waits out a 429 without taking it for a failed try, and says so", async () => {
    const { url } = await serve((response, nth) =>
      nth <= 8 ? refuse(response, 429, "RATE_LIMITED", { "retry-after": "20" }) : response.end(listOf(1)),
    );
    const { api, notices } = openSession(url);
    const before = Date.now();
    expect((await api.count(RECENT)).rows).toBe(1);
    const until = notices.flatMap((notice) => (notice.kind === "limited" ? [notice.until] : []));
    expect(until).toHaveLength(8);
    expect(Math.min(...until)).toBeGreaterThanOrEqual(before + 20_000);
  });

  it("waits twice as long after each failure, up to half a minute, and any part of that", async () => {
    const { url } = await serve((response) => refuse(response, 500, "INTERNAL_ERROR"));
    for (const part of [1, 0.25]) {
      const { api, notices } = openSession(url, { random: () => part });
      await errorOf(api.count(RECENT));
      const waits = notices.flatMap((notice) => (notice.kind === "retrying" ? [notice.waitMs] : []));
      expect(waits).toEqual([1_000, 2_000, 4_000, 8_000].map((ms) => ms * part));
    }
    const { session } = openSession(url, { random: () => 1 });
    await session.client.backOff(9);
    expect(Math.round(session.usage.waitedMs / 1_000)).toBe(30);
  });

  it.each([{}, { "retry-after": "soon" }, { "retry-after": "" }])(
    "leaves a service alone for ten seconds that does not say for how long: %j",
    async (headers) => {
      const { url } = await serve((response, nth) =>
        nth === 1 ? refuse(response, 429, "RATE_LIMITED", headers) : response.end(listOf(1)),
      );
      const { api, session } = openSession(url);
      await api.count(RECENT);
      expect(Math.round(session.usage.waitedMs / 1_000)).toBe(10);
    },
  );

  it("asks again no sooner than a service wishes that is down", async () => {
    const { url } = await serve((response, nth) =>
      nth === 1
        ? refuse(response, 503, "ORG_KIND_UNAVAILABLE", { "retry-after": "90" })
        : response.end(listOf(1)),
    );
    const { api, session, notices } = openSession(url);
    await api.count(RECENT);
    expect(session.usage.waitedMs).toBeGreaterThanOrEqual(90_000);
    expect(notices).toMatchObject([{ kind: "retrying", waitMs: 90_000, attempt: 2, attempts: 5 }]);
  });

  it.each([new TypeError("x"), new RangeError("x"), new SyntaxError("x"), new ReferenceError("x")])(
    "takes a failure of the program itself for no answer of the service: %o",
    async (bug) => {
      const { url, requests } = await serve((response) => response.end(listOf(1)));
      const { client } = openSession(url).session;
      const fail = (): never => {
        throw bug;
      };
      expect(await client.getJson("count people", "/x", {}, fail).catch((error: unknown) => error)).toBe(bug);
      expect(await client.ask("collect", "/x", () => true, fail).catch((error: unknown) => error)).toBe(bug);
      expect(requests).toHaveLength(2);
    },
  );

  it("asks again after a TypeError that a broken connection caused", async () => {
    const { url, requests } = await serve((response) => response.end(listOf(1)));
    const cause = Object.assign(new Error("reset"), { code: "ECONNRESET" });
    const fail = (): never => {
      throw new TypeError("terminated", { cause });
    };
    const asked = openSession(url).session.client.getJson("count people", "/x", {}, fail);
    expect(await errorOf(asked)).toBeInstanceOf(TransientError);
    expect(requests).toHaveLength(5);
  });

  it("gives up on a service that never lets it in", async () => {
    const { url, requests } = await serve((response) =>
      refuse(response, 429, "RATE_LIMITED", { "retry-after": "9999" }),
    );
    expect(await errorOf(openSession(url).api.count(RECENT))).toBeInstanceOf(TransientError);
    // Five minutes are the longest that one is waited for, half an hour all of them.
    expect(requests).toHaveLength(7);
  });

  it.each([300, 301, 302, 308])(
    "refuses a redirect by %i and says where it points, without its path",
    async (status) => {
      const { url } = await serve((response) => {
        response.writeHead(status, { location: `https://elsewhere.example/x?key=${KEY}` });
        response.end("moved");
      });
      const error = await errorOf(openSession(url).api.count(RECENT));
      expect(error).toBeInstanceOf(ConfigError);
      expect(error.message).toContain("https://elsewhere.example");
      saysNoSecret(error);
    },
  );

  it("asks again where nothing listens, and says so", async () => {
    const error = await errorOf(openSession(`http://127.0.0.1:${await deadPort()}`).api.count(RECENT));
    expect(error).toBeInstanceOf(TransientError);
    expect(error.message).toContain("the connection was refused (ECONNREFUSED)");
  });

  it.each([
    ["an answer", ""],
    ["the rest of a JSON answer", listOf(2).slice(0, 9)],
  ])("does not wait for ever for %s", async (_what, begun) => {
    const { url, requests } = await serve((response, nth) => {
      if (nth === 3) response.end(listOf(2));
      else if (begun !== "") response.write(begun);
    });
    expect((await openSession(url, { idle: 0.1 }).api.count(RECENT)).rows).toBe(2);
    expect(requests).toHaveLength(3);
  });

  it("does not wait for ever for the rest of an export", async () => {
    const { url } = await serve((response) => response.write('{"id":"1"}\n'));
    const error = await errorOf(drain(openSession(url, { idle: 0.1 }).api));
    expect(error).toBeInstanceOf(BodyError);
  });

  it("is not impatient with a service while its own reader is slow", async () => {
    const line = `{"id":"${"x".repeat(1_000)}"}\n`;
    const rows = 30_000;
    const { url } = await serve(async (response) => {
      for (let row = 0; row < rows; row += 100) {
        if (!response.write(line.repeat(100))) await once(response, "drain");
      }
      response.end();
    });
    holdTimers();
    let read = 0;
    for await (const batch of openSession(url, { idle: 5 }).api.stream(RECENT)) {
      read += batch.rows.length;
      vi.advanceTimersByTime(12_000);
    }
    expect(read).toBe(rows);
  });

  it("closes the connection of an export that nobody reads on", async () => {
    const gone: Promise<unknown>[] = [];
    const { url } = await serve((response) => {
      gone.push(once(response, "close"));
      response.write('{"id":"1"}\n{"id":"2"}\n');
    });
    for await (const _ of openSession(url).api.stream(RECENT)) break;
    await gone[0];
  });

  it.each([
    ["a question", ({ api }: Opened) => errorOf(api.count(RECENT))],
    ["a submission", ({ session }: Opened) => session.client.post("submit", "/x", {})],
  ])("reads nothing of the body of a redirect of %s, however long it goes on", async (_what, ask) => {
    const gone: Promise<unknown>[] = [];
    const { url } = await serve((response) => {
      gone.push(once(response, "close"));
      response.writeHead(302, { location: "https://elsewhere.example/" });
      response.write("It has moved. ".repeat(10));
    });
    await ask(openSession(url));
    await gone[0];
  });

  it.each([
    [300, "unanswered"],
    [301, "unsent"],
    [303, "unanswered"],
    [399, "unanswered"],
    [400, "answered"],
  ])("takes a submission that was answered %i for %s", async (status, kind) => {
    const { url } = await serve((response) => response.writeHead(status).end());
    expect(await openSession(url).session.client.post("submit", "/x", {})).toMatchObject({ kind });
  });

  it.each([
    ["an answer", () => {}, 0],
    ["a body", (response: ServerResponse) => response.write('{"id":"1"}\n'), 1],
    ["its turn", (response: ServerResponse) => refuse(response, 429, "RATE_LIMITED"), 1],
  ])("ends when its signal aborts while it waits for %s", async (_what, answer, bytes) => {
    const { url, requests } = await serve(answer);
    for (const ask of [({ api }: Opened) => api.count(RECENT), ({ api }: Opened) => drain(api)]) {
      const before = requests.length;
      const opened = openSession(url, { clock: systemClock });
      const ended = errorOf(Promise.resolve(ask(opened)));
      while (requests.length === before || opened.client.usage.bytesReceived < bytes) await turn();
      opened.abort.abort(new Error("stop"));
      await ended;
      expect(requests).toHaveLength(before + 1);
    }
  });
});

/** The cuts of a body that some clients take for its end. `notices`: no transport can tell, the count must. */
const CUTS = [
  ["close", "notices"],
  ["close-gzip", "raises"],
  ["end", "notices"],
  ["gzip-cut", "raises"],
  ["fin", "raises"],
  ["length", "raises"],
  ["length-gzip", "raises"],
  ["length-reset", "raises"],
  ["gzip-trailer", "raises"],
  ["midline", "raises"],
  ["reset", "raises"],
] as const;

describe("an export that is cut", () => {
  it.each(CUTS)("by %s %s", async (cut, how) => {
    await withSandbox({ people: 2_000, undated: 0, requestsPerMinute: 0, faults: [cut] }, async ({ url }) => {
      const rows = drain(openSession(url).api, { kind: "all" });
      if (how === "raises") expect(await errorOf(rows)).toBeInstanceOf(BodyError);
      else expect(await rows).toBeLessThan(2_000);
    });
  });
});

describe("the error table", () => {
  const CODES = [
    "INVALID_PARAMETER",
    "INVALID_API_KEY",
    "ENDPOINT_NOT_ON_PLAN",
    "SUBSCRIPTION_INACTIVE",
    "SOURCE_NOT_ALLOWED",
    "JOB_NOT_FOUND",
    "SOURCE_UNAVAILABLE",
    "RATE_LIMIT_EXCEEDED",
    "INTERNAL_ERROR",
    "ORG_KIND_UNAVAILABLE",
    "STREAM_FAILED",
    "INVALID_BODY",
    "SOURCE_NOT_VERIFIABLE",
    "RATE_LIMITED",
    "QUOTA_EXCEEDED",
    "INVALID_REQUEST",
    "ACCESS_DENIED",
    "COMPANY_NOT_FOUND",
    "INSUFFICIENT_CREDITS",
  ];

  it("has a row for every code of the interface and no other", () => {
    expect(Object.keys(FAILURES).sort()).toEqual([...CODES].sort());
  });

  it("says of each code what is wrong and what to do", () => {
    for (const code of CODES) {
      const { message } = statusError("read people", PLACE, 500, code);
      expect(message).toMatch(/^Cannot read people at api.example.com:443: .+\. [A-Z].+[^.]$/);
      expect(message).toContain(code);
    }
  });

  it.each([
    [400, "query parameter|parameter", ConfigError],
    [404, "there is nothing at this address", ConfigError],
    [407, "the proxy wants credentials", ConfigError],
    [408, "gave up waiting for the request", TransientError],
    [413, "too large", ConfigError],
    [422, "refuses the request", ConfigError],
    [423, "maintenance|paused", TransientError],
    [502, "a gateway could not reach the service", TransientError],
    [503, "the service is unavailable", TransientError],
    [504, "a gateway waited too long for the service", TransientError],
    [500, "the service failed", TransientError],
    [599, "the service failed", TransientError],
    [400, "the service failed", TransientError, "INTERNAL_ERROR"],
    [500, "API key", ConfigError, "INVALID_API_KEY"],
    [500, "the service failed", TransientError, "SOMETHING_NEW"],
    [401, "API key", ConfigError, "SOMETHING_NEW"],
  ])("goes by a code that it knows, else by the status: %i, %s", (status, words, kind, code?: string) => {
    const error = statusError("x", PLACE, status, code);
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toMatch(new RegExp(words));
    expect(error.message).toMatch(/^Cannot x at api.example.com:443: [a-z].+\. [A-Z].+[^.]$/);
  });

  it("says of each error of the connection what is wrong and what to do", () => {
    for (const code of NETWORK.keys()) {
      const { message } = networkError("read people", PLACE, Object.assign(new Error("x"), { code }));
      expect(message, code).toMatch(/^Cannot read people at api.example.com:443: [a-z].+\. [A-Z].+[^.]$/);
    }
  });

  it("finds the code of a network error however deep it lies", () => {
    const deep = new Error("outer", { cause: Object.assign(new Error("inner"), { code: "ENOTFOUND" }) });
    expect(networkError("x", PLACE, deep).message).toContain("the host name is not known");
  });
});
