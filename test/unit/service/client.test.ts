import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { Client } from "../../../src/service/client.ts";
import type { Service } from "../../../src/sync/service.ts";
import type { Window } from "../../../src/sync/window.ts";
import { deadPort, listen, listOf, type Served, serve as serveRequests } from "../../support/serve.ts";
import { errorOf, KEY, nameOf, type Opened, openSession, sleepyClock } from "../../support/session.ts";

const ALL: Window = { kind: "all" };

/** A service of the test's own, which knows how many requests there were. */
async function serve(answer: (response: ServerResponse, nth: number) => void): Promise<Served> {
  const served = await serveRequests((_, response) => answer(response, served.requests.length));
  return served;
}

type Answer = {
  readonly status?: number;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the connection breaks. */
  readonly cut?: "before the head" | "in the body";
};

const refused = (status: number, code = "NOT_OF_THE_INTERFACE", headers = {}): Answer => {
  const error = { code, message: `the key is ${KEY}` };
  return { status, headers, body: JSON.stringify({ success: false, error }) };
};
const after = (seconds: string) => ({ "retry-after": seconds });
const limited = (seconds?: string): Answer =>
  refused(429, "RATE_LIMITED", seconds === undefined ? {} : after(seconds));
const redirected = (status: number): Answer => ({
  status,
  headers: { location: `https://elsewhere.example/${KEY}` },
});
const PACKED = { "content-encoding": "GZip" };
const OK: Answer = { body: '{"n":1}' };
const GZIPPED: Answer = { body: gzipSync('{"n":2}'), headers: PACKED };
const DAMAGED: Answer = { body: "x", headers: PACKED };
const BROTLI: Answer = { body: "x", headers: { "content-encoding": "br" } };
const UNAVAILABLE = refused(503, "SOURCE_UNAVAILABLE", after("90"));
const USED_UP = refused(429, "QUOTA_EXCEEDED", after("20"));
const DEAD: Answer = { cut: "before the head" };
const TORN: Answer = { body: '{"n":', cut: "in the body" };

function give(response: ServerResponse, { status = 200, body = "", headers = {}, cut }: Answer): void {
  if (cut === "before the head") return void response.destroy();
  response.writeHead(status, headers);
  if (cut === undefined) return void response.end(body);
  response.write(body, () => setImmediate(() => response.destroy()));
}

/** A service that gives these answers in turn, and the last one ever after; who asks for ever, gets an answer at last. */
const giveInTurn = (...answers: readonly Answer[]): Promise<Served> =>
  serve((response, nth) =>
    give(response, (nth > 40 ? OK : answers[Math.min(nth, answers.length) - 1]) ?? OK),
  );

/** How the connector asks: for JSON, for an export that is not begun again, and by a POST. */
const CALLS = {
  get: async (client: Client) => {
    await client.getJson("count", "/x", {}, (value) => value);
    return "answer";
  },
  once: async (client: Client) => {
    await text((await client.open("read", "/x", {}, true)).body);
    return "answer";
  },
  post: async (client: Client) => {
    const posted = await client.post("submit", "/x", {});
    return posted.kind === "answered" ? `answered ${posted.status}` : posted.kind;
  },
} as const;

async function drain(api: Service): Promise<number> {
  let rows = 0;
  for await (const batch of api.stream(ALL)) rows += batch.length;
  return rows;
}

function expectNoSecret(error: Error): void {
  for (let next: unknown = error; next instanceof Error; next = next.cause)
    for (const secret of [KEY, "00112233", "0a1b2c3d"]) expect(next.message).not.toContain(secret);
}

describe("a request", () => {
  it.each<[meets: string, answers: readonly Answer[], said: string]>([
    ["an answer", [OK], "1 answer, 1 answer, 1 answered 200"],
    ["an answer in gzip", [GZIPPED], "1 answer, 1 answer, 1 answered 200"],
    ["an encoding that was not asked for", [BROTLI], "1 DataError, 1 answer, 1 answered 200"],
    ["damaged gzip, then an answer", [DAMAGED, OK], "2 answer, 1 answer, 1 answered 200"],
    ["no content", [{ status: 204 }], "1 ConfigError, 1 answer, 1 answered 204"],
    ["no JSON", [{ body: "no" }], "2 TransientError, 1 answer, 1 answered 200"],
    ["a web page", [{ body: "<p>" }], "2 TransientError for all, 1 answer, 1 answered 200"],
    ["an error in a success", [refused(200, "QUOTA_EXCEEDED")], "1 ConfigError, 1 answer, 1 answered 200"],
    ["a failure, then an answer", [refused(500), OK], "2 answer, 1 TransientError, 1 answered 500"],
    ["failures", [refused(503)], "5 TransientError, 1 TransientError, 1 answered 503"],
    ["a time to come back at, then an answer", [UNAVAILABLE, OK], "2 answer, 2 answer, 1 answered 503"],
    ["rate limits, then an answer", [limited(), limited("20"), OK], "3 answer, 3 answer, 1 limited"],
    ["a rate limit for ever", [limited("9999")], "7 TransientError, 7 TransientError, 1 limited"],
    ["a quota that is used up", [USED_UP], "1 ConfigError, 1 ConfigError, 1 limited"],
    ["a wrong key", [refused(401, "INVALID_API_KEY")], "1 ConfigError, 1 ConfigError, 1 answered 401"],
    ["nothing there", [refused(404)], "1 NotFoundError, 1 NotFoundError, 1 answered 404"],
    ["a redirect by 301", [redirected(301)], "1 ConfigError for all, 1 ConfigError for all, 1 unsent"],
    ["a redirect by 303", [redirected(303)], "1 ConfigError for all, 1 ConfigError for all, 1 unanswered"],
    ["a connection that dies, then an answer", [DEAD, OK], "2 answer, 1 TransientError, 1 unanswered"],
    ["connections that die", [DEAD], "5 TransientError, 1 TransientError, 1 unanswered"],
    ["a body that breaks off, then an answer", [TORN, OK], "2 answer, 1 SocketError, 1 answered 200"],
    ["a refusal that breaks off", [{ ...TORN, status: 400 }], "1 ConfigError, 1 ConfigError, 1 answered 400"],
  ])("that meets %s has its own end as GET, as export and as POST", async (_, answers, said) => {
    const outcomes = await Promise.all(
      Object.values(CALLS).map(async (call) => {
        const { url, requests } = await giveInTurn(...answers);
        const ended = await call(openSession(url).client).catch((error: Error) => {
          expectNoSecret(error);
          return nameOf(error);
        });
        return `${requests.length} ${ended}`;
      }),
    );
    expect(outcomes.join(", ")).toBe(said);
  });
});

describe("a wait", () => {
  const waitsOf = ({ notices }: Opened): number[] =>
    notices.flatMap((notice) => (notice.kind === "retrying" ? [notice.waitMs] : []));

  it("grows twofold after each failure, up to half a minute, and takes any part of that", async () => {
    const { url } = await giveInTurn(refused(500));
    for (const part of [1, 0.25]) {
      const opened = openSession(url, { random: () => part });
      await errorOf(opened.api.count(ALL));
      expect(waitsOf(opened)).toEqual([1_000, 2_000, 4_000, 8_000].map((ms) => ms * part));
    }
    const clock = sleepyClock();
    await openSession(url, { clock, random: () => 1 }).client.backOff(9);
    expect(clock.time).toBe(30_000);
  });

  it.each([
    ["7", 7_000],
    ["1.5", 1_500],
    ["0", 1_000],
    ["Fri, 20 Mar 2026 10:00:30 GMT", 29_000],
    ["Fri, 20 Mar 2026 09:00:00 GMT", 1_000],
    ["soon", 10_000],
    [undefined, 10_000],
  ])("for a rate limit that ends after %j takes %i ms of the service's clock", async (seconds, ms) => {
    const answer = limited(seconds);
    const date = "Fri, 20 Mar 2026 10:00:00 GMT";
    const { url } = await giveInTurn({ ...answer, headers: { ...answer.headers, date } }, OK);
    const clock = sleepyClock();
    const { client, notices } = openSession(url, { clock });
    await CALLS.get(client);
    expect([clock.time, client.usage.waitedMs]).toEqual([ms, ms]);
    expect(notices).toEqual([{ kind: "limited", until: ms }]);
  });

  it("after a POST that met a rate limit delays every request of the key", async () => {
    const clock = sleepyClock();
    const { url } = await giveInTurn(limited("30"));
    const { client } = openSession(url, { clock });
    await client.requestSlot();
    await client.post("submit", "/x", {});
    const before = clock.time;
    await client.requestSlot();
    expect(clock.time - before).toBeGreaterThanOrEqual(30_000);
  });
});

describe("a connection", () => {
  it("is kept for questions, and new for each submission, so that it cannot be dying", async () => {
    const { url, requests } = await giveInTurn({ body: listOf(0) });
    const { api, client } = openSession(url);
    for (let nth = 0; nth < 2; nth++) {
      await api.count(ALL);
      await client.post("submit", "/submit", {});
    }
    const [count, post, again, second] = requests.map(({ socket }) => socket);
    expect(again).toBe(count);
    expect(new Set([count, post, second]).size).toBe(3);
  });

  it("that never works is given up after two tries, and a POST over it was never sent", async () => {
    const { api, client, notices } = openSession(`http://127.0.0.1:${await deadPort()}`);
    expect(await errorOf(api.count(ALL))).toMatchObject({
      ...{ name: "TransientError", scope: "service" },
      message: expect.stringContaining("ECONNREFUSED"),
    });
    expect(notices).toMatchObject([{ kind: "retrying", attempt: 2, attempts: 2 }]);
    expect(client.usage).toMatchObject({ requests: 2, retries: 1, bytesReceived: 0 });
    expect(await CALLS.post(client)).toBe("unsent");
  });

  it("is closed when its export is read no further", async () => {
    const gone: Promise<unknown>[] = [];
    const { url } = await serve((response) => {
      gone.push(once(response, "close"));
      response.write('{"id":"1"}\n{"id":"2"}\n');
    });
    for await (const _ of openSession(url).api.stream(ALL)) break;
    await gone[0];
  });
});

describe("a failure", () => {
  it.each([new TypeError("x"), new RangeError("x"), new SyntaxError("x"), new ReferenceError("x")])(
    "of the program itself is thrown as it is, and not tried again: %o",
    async (bug) => {
      const { url, requests } = await giveInTurn(OK);
      const { client } = openSession(url);
      const fail = (): never => {
        throw bug;
      };
      expect(await errorOf(client.getJson("count people", "/x", {}, fail))).toBe(bug);
      expect(await errorOf(client.ask("collect", "/x", fail))).toBe(bug);
      expect(requests).toHaveLength(2);
    },
  );
});

describe("an answer", () => {
  it("tells the service's time, and between which of its moments it was made", async () => {
    const date = "Fri, 20 Mar 2026 10:00:00 GMT";
    const { url } = await giveInTurn({ body: listOf(7), headers: { date } });
    const { api, client } = openSession(url);
    expect(client.knowsTime).toBe(false);
    const { asked, answered } = await api.count(ALL);
    expect([answered, client.knowsTime]).toEqual([Date.parse(date) + 1_000, true]);
    expect([asked % 1_000, asked < Date.parse(date)]).toEqual([0, true]);
    expect(Math.abs(api.now() - Date.parse(date))).toBeLessThan(2_000);
  });

  it.each([
    ["that does not begin", ""],
    ["whose JSON does not end", listOf(2).slice(0, 9)],
  ])("%s is asked for again", async (_what, begun) => {
    const { url, requests } = await serve((response, nth) => {
      if (nth >= 2) response.end(listOf(2));
      else if (begun !== "") response.write(begun);
    });
    expect((await openSession(url, { idle: 0.1 }).api.count(ALL)).rows).toBe(2);
    expect(requests.length).toBeGreaterThan(1);
  });

  it("has a deadline before its head too, however many other heads come first", async () => {
    const server = createSocketServer((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 10);
      socket.on("error", () => undefined).on("close", () => clearInterval(timer));
    });
    const { api } = openSession(`http://127.0.0.1:${await listen(server)}`, { idle: 0.02 });
    for (const asked of [api.count(ALL), drain(api)])
      expect((await errorOf(asked)).message).toContain("ANSWER_TIMEOUT");
  });

  it.each([true, false])("to a POST has five seconds when the run is to end: %s", async (comes) => {
    const begun: ServerResponse[] = [];
    const { url } = await serve((response) => void begun.push(response));
    const { client, abort } = openSession(url);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const posted = CALLS.post(client);
    while (begun.length === 0) await turn();
    abort.abort(new Error("stop"));
    vi.advanceTimersByTime(4_999);
    if (comes) begun[0]?.end("{}");
    else vi.advanceTimersByTime(1);
    expect(await posted).toBe(comes ? "answered 200" : "unanswered");
    await expect(client.requestSlot()).rejects.toThrow("stop");
  });
});
