import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { FAILURES, networkError, PUBLIC_API, statusError } from "../../src/api/error-table.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import type { Environment } from "../../src/config/environment.ts";
import { BodyError, ConfigError, NotFoundError, TransientError } from "../../src/errors.ts";
import { Session } from "../../src/run/session.ts";
import type { Notice } from "../../src/streams/event.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";
import type { Window } from "../../src/streams/window.ts";
import type { Day } from "../../src/time.ts";
import { fastClock, withSandbox } from "../faultlab/read-once.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const RECENT: Window = { kind: "open", from: "2026-03-19" as Day, undated: false };

const PLACE = { host: "api.example.com:443", settings: PUBLIC_API };

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

type Opened = { api: StreamApi; notices: Notice[]; abort: AbortController; session: Session };

function open(
  url: string,
  {
    environment = {},
    idle = 0.3,
    random = () => 0,
  }: { environment?: Environment; idle?: number; random?: () => number } = {},
): Opened {
  const config = {
    ...parseConfig({ base_url: url, api_key: KEY, requests_per_minute: 6000, allow_insecure_http: true }, {}),
    idleTimeoutSeconds: idle,
  };
  const abort = new AbortController();
  const notices: Notice[] = [];
  const runtime = { clock: fastClock(), signal: abort.signal, environment, random };
  const session = new Session(config, runtime, (notice) => void notices.push(notice));
  closers.push(() => session.close());
  const [people] = STREAMS;
  return {
    api: session.streamApi(people, { cursor: "discoveredAt", schema: null }),
    notices,
    abort,
    session,
  };
}

/** A service of one's own; counts its requests. */
async function serve(
  answer: (response: ServerResponse, nth: number, request: IncomingMessage) => void,
): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(response, requests.length, request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const list = (total: number): string =>
  JSON.stringify({ success: true, pagination: { page: 1, limit: 1, total, totalPages: 1 }, data: [] });

const refuse = (response: ServerResponse, status: number, code: string, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ success: false, error: { code, message: `the key is ${KEY}` } }));
};

async function drain(api: StreamApi): Promise<number> {
  let rows = 0;
  for await (const batch of api.stream(RECENT)) rows += batch.rows.length;
  return rows;
}

const failure = async (run: Promise<unknown>): Promise<Error> => {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error("It did not fail");
  return error;
};

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
      response.end(list(7));
    });
    const { api } = open(url);
    const count = await api.count(RECENT);
    expect(count).toMatchObject({ rows: 7, known: true, answered: Date.parse("2026-03-20T10:00:01Z") });
    expect(count.asked).toBeLessThanOrEqual(Date.parse("2026-03-20T09:59:59Z"));
    expect(count.asked).toBeGreaterThan(Date.parse("2026-03-20T09:59:50Z"));
    expect(count.asked % 1000).toBe(0);
    expect(Math.abs(api.now() - Date.parse("2026-03-20T10:00:00Z"))).toBeLessThan(2_000);
  });

  it("sends its key in one header, asks for gzip, and names its days", async () => {
    const { url, requests } = await serve((response) => response.end(list(0)));
    await open(`${url}/base/`).api.count({
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
    [500, "INTERNAL_ERROR"],
    [503, "ORG_KIND_UNAVAILABLE"],
    [423, "SOURCE_UNAVAILABLE"],
    [502, "NOT_OF_THE_INTERFACE"],
    [408, "NOT_OF_THE_INTERFACE"],
  ])("asks again after %i %s, five times at most", async (status, code) => {
    const once = await serve((response, nth) =>
      nth < 5 ? refuse(response, status, code) : response.end(list(7)),
    );
    expect((await open(once.url).api.count(RECENT)).rows).toBe(7);
    const ever = await serve((response) => refuse(response, status, code));
    const error = await failure(open(ever.url).api.count(RECENT));
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
    const error = await failure(open(url).api.count(RECENT));
    expect(error).toBeInstanceOf(ConfigError);
    saysNoSecret(error);
    expect(requests).toHaveLength(1);
  });

  it("waits out a 429 without taking it for a failed try, and says so", async () => {
    const { url } = await serve((response, nth) =>
      nth <= 8 ? refuse(response, 429, "RATE_LIMITED", { "retry-after": "20" }) : response.end(list(1)),
    );
    const { api, notices } = open(url);
    const before = Date.now();
    expect((await api.count(RECENT)).rows).toBe(1);
    const until = notices.flatMap((notice) => (notice.kind === "limited" ? [notice.until] : []));
    expect(until).toHaveLength(8);
    expect(Math.min(...until)).toBeGreaterThanOrEqual(before + 20_000);
  });

  it("waits twice as long after each failure, up to half a minute, and any part of that", async () => {
    const { url } = await serve((response) => refuse(response, 500, "INTERNAL_ERROR"));
    for (const part of [1, 0.25]) {
      const { api, notices } = open(url, { random: () => part });
      await failure(api.count(RECENT));
      const waits = notices.flatMap((notice) => (notice.kind === "retrying" ? [notice.waitMs] : []));
      expect(waits).toEqual([1_000, 2_000, 4_000, 8_000].map((ms) => ms * part));
    }
    const { session } = open(url, { random: () => 1 });
    await session.client.backOff(9);
    expect(Math.floor(session.usage.waitedMs / 1_000)).toBe(30);
  });

  it.each([{}, { "retry-after": "soon" }, { "retry-after": "" }])(
    "leaves a service alone for ten seconds that does not say for how long: %j",
    async (headers) => {
      const { url } = await serve((response, nth) =>
        nth === 1 ? refuse(response, 429, "RATE_LIMITED", headers) : response.end(list(1)),
      );
      const { api, session } = open(url);
      await api.count(RECENT);
      expect(Math.floor(session.usage.waitedMs / 1_000)).toBe(10);
    },
  );

  it("asks again no sooner than a service wishes that is down", async () => {
    const { url } = await serve((response, nth) =>
      nth === 1
        ? refuse(response, 503, "ORG_KIND_UNAVAILABLE", { "retry-after": "90" })
        : response.end(list(1)),
    );
    const { api, session, notices } = open(url);
    await api.count(RECENT);
    expect(session.usage.waitedMs).toBeGreaterThanOrEqual(90_000);
    expect(notices).toMatchObject([{ kind: "retrying", waitMs: 90_000, attempt: 2, attempts: 5 }]);
  });

  it("gives up on a service that never lets it in", async () => {
    const { url, requests } = await serve((response) =>
      refuse(response, 429, "RATE_LIMITED", { "retry-after": "9999" }),
    );
    expect(await failure(open(url).api.count(RECENT))).toBeInstanceOf(TransientError);
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
      const error = await failure(open(url).api.count(RECENT));
      expect(error).toBeInstanceOf(ConfigError);
      expect(error.message).toContain("https://elsewhere.example");
      saysNoSecret(error);
    },
  );

  it("takes a web page for no answer", async () => {
    const { url } = await serve((response) => response.end("<html></html>"));
    expect((await failure(open(url).api.count(RECENT))).message).toContain("base_url");
  });

  it("takes an address where nothing is for a mistake in the config", async () => {
    const { url } = await serve((response) => response.writeHead(404).end());
    expect(await failure(open(url).api.count(RECENT))).toBeInstanceOf(NotFoundError);
  });

  it("asks again where nothing listens, and says so", async () => {
    const probe = createSocketServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    const error = await failure(open(`http://127.0.0.1:${port}`).api.count(RECENT));
    expect(error).toBeInstanceOf(TransientError);
    expect(error.message).toContain("the connection was refused (ECONNREFUSED)");
  });

  it("does not wait for ever for an answer", async () => {
    const { url, requests } = await serve((response, nth) => (nth < 3 ? undefined : response.end(list(2))));
    expect((await open(url).api.count(RECENT)).rows).toBe(2);
    expect(requests).toHaveLength(3);
  });

  it("does not wait for ever for the rest of a JSON answer", async () => {
    const { url } = await serve((response, nth) => {
      if (nth === 2) response.end(list(3));
      else response.write(list(3).slice(0, 9));
    });
    expect((await open(url).api.count(RECENT)).rows).toBe(3);
  });

  it("does not wait for ever for the rest of an export", async () => {
    const { url } = await serve((response) => response.write('{"id":"1"}\n'));
    const error = await failure(drain(open(url).api));
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
    let read = 0;
    let slow = 3;
    for await (const batch of open(url, { idle: 0.7 }).api.stream(RECENT)) {
      read += batch.rows.length;
      if (slow-- > 0) await delay(1_500);
    }
    expect(read).toBe(rows);
  });

  it("closes the connection of an export that nobody reads on", async () => {
    let closed: (() => void) | undefined;
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { url } = await serve((response) => {
      response.on("close", () => closed?.());
      response.write('{"id":"1"}\n{"id":"2"}\n');
    });
    for await (const _ of open(url, { idle: 30 }).api.stream(RECENT)) break;
    await gone;
  });

  it.each([
    ["a question", ({ api }: Opened) => failure(api.count(RECENT))],
    ["a submission", ({ session }: Opened) => session.client.post("submit", "/x", {})],
  ])("reads nothing of the body of a redirect of %s, however long it goes on", async (_what, ask) => {
    let closed: (() => void) | undefined;
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { url } = await serve((response) => {
      response.on("close", () => closed?.());
      response.writeHead(302, { location: "https://elsewhere.example/" });
      response.write("It has moved. ".repeat(10));
    });
    await ask(open(url, { idle: 30 }));
    await gone;
  });

  it.each([
    [300, "unanswered"],
    [301, "unsent"],
    [303, "unanswered"],
    [399, "unanswered"],
    [400, "answered"],
  ])("takes a submission that was answered %i for %s", async (status, kind) => {
    const { url } = await serve((response) => response.writeHead(status).end());
    expect(await open(url).session.client.post("submit", "/x", {})).toMatchObject({ kind });
  });

  it("ends at once when its signal aborts, waiting for an answer, for a body, or for its turn", async () => {
    const silent = await serve(() => {});
    const talking = await serve((response) => response.write('{"id":"1"}\n'));
    const limited = await serve((response) => refuse(response, 429, "RATE_LIMITED"));
    for (const run of [
      ({ api }: Opened) => api.count(RECENT) as Promise<unknown>,
      ({ api }: Opened) => drain(api),
    ]) {
      for (const { url } of [silent, talking, limited]) {
        const opened = open(url, { idle: 30 });
        const ended = failure(run(opened));
        setTimeout(() => opened.abort.abort(new Error("stop")), 50);
        await ended;
      }
    }
  });

  it("goes through the proxy that the environment names, and around it where told", async () => {
    const { url } = await serve((response) => response.end(list(4)));
    const asked: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, socket) => {
      asked.push(String(request.url));
      const { port, hostname } = new URL(`http://${request.url}`);
      void import("node:net").then(({ connect }) => {
        const onward = connect(Number(port), hostname, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          onward.pipe(socket).pipe(onward);
        });
        onward.on("error", () => socket.destroy());
        socket.on("error", () => onward.destroy());
      });
    });
    proxy.on("request", (request, response) => {
      asked.push(String(request.url));
      response.end(list(4));
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    closers.push(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const away = "http://service.invalid";
    expect((await open(away, { environment: { HTTP_PROXY: address } }).api.count(RECENT)).rows).toBe(4);
    expect(asked).toEqual([expect.stringContaining("service.invalid")]);
    const around = { HTTP_PROXY: address, NO_PROXY: "service.invalid" };
    const error = await failure(open(away, { environment: around }).api.count(RECENT));
    expect(error.message).toMatch(/ENOTFOUND|EAI_AGAIN/);
    expect((await open(url, { environment: { HTTP_PROXY: address } }).api.count(RECENT)).rows).toBe(4);
    expect(asked).toHaveLength(1);
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
      const { api } = open(url, { idle: 2 });
      let rows = 0;
      const run = async (): Promise<void> => {
        for await (const batch of api.stream({ kind: "open", from: "1970-01-01" as Day, undated: true }))
          rows += batch.rows.length;
      };
      if (how === "raises") expect(await failure(run())).toBeInstanceOf(BodyError);
      else await run();
      expect(rows).toBeLessThan(how === "raises" && cut === "gzip-trailer" ? 2_001 : 2_000);
    });
  });
});

describe("the error table", () => {
  const CODES = [
    ...[
      "INVALID_PARAMETER",
      "INVALID_API_KEY",
      "ENDPOINT_NOT_ON_PLAN",
      "SUBSCRIPTION_INACTIVE",
      "SOURCE_NOT_ALLOWED",
    ],
    ...[
      "JOB_NOT_FOUND",
      "SOURCE_UNAVAILABLE",
      "RATE_LIMIT_EXCEEDED",
      "INTERNAL_ERROR",
      "ORG_KIND_UNAVAILABLE",
    ],
    ...[
      "STREAM_FAILED",
      "INVALID_BODY",
      "SOURCE_NOT_VERIFIABLE",
      "RATE_LIMITED",
      "QUOTA_EXCEEDED",
      "INVALID_REQUEST",
    ],
    ...["ACCESS_DENIED", "COMPANY_NOT_FOUND", "INSUFFICIENT_CREDITS"],
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

  it("goes by the code, not by the status", () => {
    expect(statusError("x", PLACE, 500, "INVALID_API_KEY")).toBeInstanceOf(ConfigError);
    expect(statusError("x", PLACE, 400, "INTERNAL_ERROR")).toBeInstanceOf(TransientError);
  });

  it("falls back to the status for a code that it does not know", () => {
    expect(statusError("x", PLACE, 500, "SOMETHING_NEW")).toBeInstanceOf(TransientError);
    expect(statusError("x", PLACE, 401, "SOMETHING_NEW")).toBeInstanceOf(ConfigError);
    expect(statusError("x", PLACE, 599, undefined)).toBeInstanceOf(TransientError);
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
  ])("says what a bare status %i means: %s", (status, words, kind) => {
    const error = statusError("x", PLACE, status, undefined);
    expect(error).toBeInstanceOf(kind);
    expect(error.message).toMatch(new RegExp(words));
  });

  it("finds the code of a network error however deep it lies", () => {
    const deep = new Error("outer", { cause: Object.assign(new Error("inner"), { code: "ENOTFOUND" }) });
    expect(networkError("x", PLACE, deep).message).toContain("the host name is not known");
  });
});
