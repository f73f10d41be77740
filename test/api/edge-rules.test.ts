import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/api/clock.ts";
import { toText } from "../../src/api/decode.ts";
import { envelopeCode } from "../../src/api/error-table.ts";
import { LinePattern } from "../../src/api/fast-match.ts";
import { inferSchema } from "../../src/api/infer-schema.ts";
import { Limiter } from "../../src/api/limiter.ts";
import { RowNotes } from "../../src/api/row-notes.ts";
import { RowParser } from "../../src/api/rows.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig, secretsOf } from "../../src/config/config.ts";
import { ConfigError, DataError } from "../../src/errors.ts";
import { Session } from "../../src/run/session.ts";
import type { RawLine } from "../../src/streams/event.ts";
import { closedWindow } from "../../src/streams/window.ts";
import type { Day } from "../../src/time.ts";

const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";
const [PEOPLE, COMPANIES] = STREAMS;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A clock on which a sleep takes no time, and each look at it a second. */
function slowClock(step = 1_000): Clock {
  let now = 0;
  return {
    now: () => Date.now(),
    monotonic: () => {
      now += step;
      return now;
    },
    sleep: async (ms) => {
      now += ms;
    },
  };
}

async function open(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  clock = slowClock(0),
): Promise<Session> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = parseConfig({ base_url: url, api_key: KEY, requests_per_minute: 6000 }, {});
  const runtime = { clock, signal: new AbortController().signal, environment: {}, random: () => 0 };
  const session = new Session(config, runtime, () => undefined);
  closers.push(async () => {
    await session.close();
    server.closeAllConnections();
    server.close();
  });
  return session;
}

const list = (total: number | null, data: readonly unknown[] = []): string =>
  JSON.stringify({ success: true, data, pagination: { page: 1, limit: 1, total } });

const RULES = { cursor: "discoveredAt", schema: null };

describe("a count", () => {
  it("asks for the dated first, so that no arrival hides someone without a date", async () => {
    const asked: string[] = [];
    const session = await open((request, response) => {
      asked.push(String(request.url));
      // One person with a date arrives between the two counts; one has none.
      response.end(list(asked.length === 1 ? 10 : 12));
    });
    const count = await session.streamApi(PEOPLE, RULES).count({ kind: "undated" });
    expect(asked.map((url) => url.includes("discovered_from"))).toEqual([true, false]);
    expect(count).toMatchObject({ rows: 10, undated: 2 });
  });

  it("without a total ends the stream where counts are proof", async () => {
    const session = await open((_, response) => response.end(list(null)));
    await expect(session.streamApi(PEOPLE, RULES).count({ kind: "all" })).rejects.toThrow(DataError);
  });

  it("is no lower than the number of rows that its own answer shows", async () => {
    const row = { id: "1", discoveredAt: "2026-01-02T03:04:05Z" };
    const session = await open((_, response) => response.end(list(0, [row])));
    const day = closedWindow("2026-01-02" as Day, "2026-01-02" as Day);
    expect(await session.streamApi(PEOPLE, RULES).count(day)).toMatchObject({
      rows: 1,
      isTooLow: true,
    });
  });

  it("is too low if that of everything is", async () => {
    const session = await open((request, response) => {
      response.end(String(request.url).includes("discovered_from") ? list(0) : list(0, [{ id: "1" }]));
    });
    const count = await session.streamApi(PEOPLE, RULES).count({ kind: "undated" });
    expect(count).toMatchObject({ rows: 0, undated: 1, isTooLow: true });
  });

  it("was asked before the request left, whatever the answer took", async () => {
    const session = await open((_, response) => response.end(list(1)), slowClock(5_000));
    const { asked, answered } = await session.streamApi(PEOPLE, RULES).count({ kind: "all" });
    expect(answered - asked).toBeGreaterThanOrEqual(7_000);
  });
});

describe("nothing", () => {
  const today = { kind: "open", from: "2026-03-20" as Day, undated: false } as const;

  it("may be a list of null, beside its pagination alone", async () => {
    const pagination = { page: 1, limit: 1, total: 0, totalPages: 0 };
    const empty = await open((_, response) => response.end(JSON.stringify({ data: null, pagination })));
    const api = empty.streamApi(PEOPLE, RULES);
    expect(await api.count(today)).toMatchObject({ rows: 0, known: true });
    expect(await api.page(today, 1)).toMatchObject({ rows: [] });
    expect(await api.rowAt(today, 1)).toEqual({ row: undefined, total: 0 });
    const none = await open((_, response) => response.end('{"success":true,"data":null}'));
    await expect(none.streamApi(PEOPLE, RULES).count(today)).rejects.toThrow("not of the interface's form");
  });

  it("may be a refusal of a page past the first, and of no other", async () => {
    const refusing = (status: number, code: string): Promise<Session> =>
      open((_, response) => {
        response.writeHead(status).end(JSON.stringify({ success: false, error: { code, message: "" } }));
      });
    for (const [status, code] of [
      [404, "NO_SUCH_PAGE"],
      [400, "INVALID_PARAMETER"],
    ] as const) {
      const api = (await refusing(status, code)).streamApi(PEOPLE, RULES);
      expect(await api.page(today, 2)).toMatchObject({ rows: [], total: null });
      await expect(api.page(today, 1)).rejects.toThrow(ConfigError);
    }
    const revoked = (await refusing(401, "INVALID_API_KEY")).streamApi(PEOPLE, RULES);
    await expect(revoked.page(today, 2)).rejects.toThrow(ConfigError);
  });

  it("may be an export without content", async () => {
    const session = await open((_, response) => response.writeHead(204).end());
    const rows: unknown[] = [];
    for await (const batch of session.streamApi(PEOPLE, RULES).stream(today)) rows.push(...batch.rows);
    expect(rows).toEqual([]);
  });
});

describe("a page", () => {
  it.each([
    [{ page: 1, limit: 2, total: 3 }, 2],
    [{ page: 1, limit: 0, total: 3 }, 1_000],
    [{ page: 1, limit: "2", total: 3 }, 1_000],
    [undefined, 1_000],
  ])("is as long as the service says, else as long as was asked for: %j", async (pagination, size) => {
    const asked: string[] = [];
    const session = await open((request, response) => {
      asked.push(String(request.url));
      response.end(JSON.stringify({ success: true, data: [{ id: "1" }], pagination }));
    });
    const page = await session.streamApi(PEOPLE, RULES).page({ kind: "all" }, 7);
    expect(page).toMatchObject({ size, rows: [{ key: '"1"' }], total: pagination?.total ?? null });
    expect(asked[0]).toMatch(/[?&]page=7&limit=1000/);
  });
});

describe("Session.readingOf()", () => {
  const dated = { domain: "example.com", discoveredAt: "2026-01-02T03:04:05Z" };

  it("reads companies by days only if their date filter is honoured", async () => {
    const honours = await open((request, response) => {
      response.end(String(request.url).includes("discovered_to") ? list(0) : list(9, [dated]));
    });
    expect(await honours.readingOf(COMPANIES)).toEqual({ dated: true, listed: true });
    const ignores = await open((_, response) => response.end(list(9, [dated])));
    expect(await ignores.readingOf(COMPANIES)).toEqual({ dated: false, listed: true });
    const shows = await open((request, response) => {
      response.end(list(String(request.url).includes("discovered_to") ? 0 : 9, [dated]));
    });
    expect(await shows.readingOf(COMPANIES)).toEqual({ dated: false, listed: true });
    const undated = await open((_, response) => response.end(list(9, [{ domain: "example.com" }])));
    expect(await undated.readingOf(COMPANIES)).toEqual({ dated: false, listed: true });
  });

  it("reads companies from their export where there is no list", async () => {
    const session = await open((_, response) => response.writeHead(404).end());
    expect(await session.readingOf(COMPANIES)).toEqual({ dated: false, listed: false });
  });
});

describe("envelopeCode()", () => {
  const error = { code: "RATE_LIMITED", message: "for people" };

  it("is the code of the service's error envelope, and of nothing that is like it", () => {
    expect(envelopeCode({ success: false, error })).toBe("RATE_LIMITED");
    const others = [null, undefined, "x", 1, [], { success: true, error }, { error }, { success: false }];
    for (const value of others) expect(envelopeCode(value), JSON.stringify(value)).toBeUndefined();
    expect(envelopeCode({ success: false, error: "RATE_LIMITED" })).toBeUndefined();
  });

  it.each([KEY, "lower_case", "A", "WITH SPACE", 7, null, undefined, ["RATE_LIMITED"]])(
    "repeats nothing that is not a code's form: %j",
    (code) => {
      expect(envelopeCode({ success: false, error: { code } })).toBe("an unknown code");
    },
  );
});

describe("a rate limit", () => {
  it("that a POST meets holds up every request of the key", async () => {
    const clock = slowClock(0);
    const session = await open(
      (_, response) => response.writeHead(429, { "retry-after": "30" }).end(),
      clock,
    );
    await session.client.turn();
    expect((await session.client.post("submit", "/x", {})).kind).toBe("limited");
    const before = clock.monotonic();
    await session.client.turn();
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(30_000);
  });

  it("is the longest of those that are said", async () => {
    const clock = slowClock(0);
    const limiter = new Limiter(60, clock);
    limiter.block(60_000);
    limiter.block(1_000);
    await limiter.take();
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
  });
});

describe("LinePattern", () => {
  it("matches no line without its key, whatever it learns", () => {
    const fields = new Map([
      ["id", { type: "string" }],
      ["name", { type: "string" }],
    ]);
    const pattern = new LinePattern(fields, "id", null);
    pattern.learn(["name"]);
    expect(pattern.match('{"name":"x"}')).toBeUndefined();
    pattern.learn(["id", "name"]);
    expect(pattern.match('{"name":"x"}')).toBeUndefined();
    expect(pattern.match('{"id":"1","name":"x"}')).toBeDefined();
  });
});

describe("RowParser", () => {
  it.each([null, "", true, false, [], ["a"], {}, { id: 1 }, undefined])(
    "takes a row whose key is %j for one without a key",
    (id) => {
      const notes = new RowNotes();
      const row = { id, name: "x" };
      const raw = JSON.stringify(row) as RawLine;
      const parser = new RowParser({ key: "id", cursor: null, schema: null });
      expect(parser.parse(raw, JSON.parse(raw), notes).key).toBe("");
      expect(notes.take()?.withoutKey).toBe(1);
    },
  );

  it("says which fields of a row contradict the schema, or are not in it", () => {
    const properties = { id: { type: "string" }, size: { type: ["null", "integer"] } };
    const parser = new RowParser({ key: "id", cursor: null, schema: { type: "object", properties } });
    const notes = new RowNotes();
    const rows = ['{"id":"1","size":2}', '{"id":"2","size":"two"}', '{"id":"3","colour":"red"}'];
    for (const raw of rows) parser.parse(raw as RawLine, JSON.parse(raw), notes);
    const facts = notes.take();
    expect([...(facts?.contradictions ?? [])]).toEqual([["size", 1]]);
    expect([...(facts?.newFields.keys() ?? [])]).toEqual(["colour"]);
  });

  it.each(["", "__proto__", "a\0b"])("declares nothing of a field that no platform can name: %j", (name) => {
    const notes = new RowNotes();
    notes.addNewField(name, 1.5);
    expect(notes.take()?.newFields.get(name)).toStrictEqual({ rows: 1, schema: {} });
  });

  it("knows a row by its line once it has seen one of its names", () => {
    const properties = { id: { type: "string" }, name: { type: ["null", "string"] } };
    const parser = new RowParser({ key: "id", cursor: null, schema: { type: "object", properties } });
    const [raw, like] = ['{"id":"1","name":"x"}', '{"id":"2","name":null}'];
    expect(parser.match(like)).toBeUndefined();
    parser.parse(raw as RawLine, JSON.parse(raw), new RowNotes());
    expect(parser.match(like)).toEqual({ raw: like, key: '"2"', cursor: null });
  });

  it.each(["constructor", "toString", "hasOwnProperty", "valueOf"])(
    "takes a field that is named %s for any other",
    (name) => {
      const notes = new RowNotes();
      const parser = new RowParser({ key: "id", cursor: null, schema: { type: "object", properties: {} } });
      const raw = `{"id":"1",${JSON.stringify(name)}:1.5}` as RawLine;
      parser.parse(raw, JSON.parse(raw), notes);
      const facts = notes.take();
      expect(facts?.newFields.get(name)).toMatchObject({ rows: 1, schema: { type: ["null", "number"] } });
      expect(facts?.contradictions.size).toBe(0);
    },
  );

  it("tells a number from the text of its digits, whatever its size", () => {
    const parser = new RowParser({ key: "id", cursor: null, schema: null });
    const keys = ["1", '"1"', "-1", "9007199254740993", "9007199254740992", "1.5"].map((id) => {
      const raw = `{"id":${id}}` as RawLine;
      return parser.parse(raw, JSON.parse(raw), new RowNotes()).key;
    });
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("inferSchema()", () => {
  it("does not depend on which of the records comes last", () => {
    const [moment, text] = [{ at: "2026-01-02T03:04:05Z" }, { at: "yesterday" }];
    const one = inferSchema({ type: "object" }, [moment, text]);
    expect(inferSchema({ type: "object" }, [text, moment])).toEqual(one);
    expect(one.properties?.["at"]).toEqual({ type: ["null", "string"] });
  });
});

describe("toText()", () => {
  it("measures each line by itself, however many come before it", async () => {
    const chunk = Buffer.from(`${"x".repeat(65_000)}\ny`);
    const chunks = (async function* () {
      for (let nth = 0; nth < 300; nth++) yield chunk;
    })();
    let bytes = 0;
    for await (const text of toText(chunks, new RowNotes())) bytes += text.length;
    expect(bytes).toBe(300 * chunk.length);
  });
});

describe("toText() of one line", () => {
  it("takes sixteen MiB, and no byte more", async () => {
    const lengthOf = async (bytes: number): Promise<number> => {
      const chunks = (async function* () {
        yield Buffer.alloc(bytes, "x");
      })();
      let length = 0;
      for await (const text of toText(chunks, new RowNotes())) length += text.length;
      return length;
    };
    expect(await lengthOf(16_777_216)).toBe(16_777_216);
    await expect(lengthOf(16_777_217)).rejects.toThrow("longer than 16 MiB");
  });
});

describe("secretsOf()", () => {
  it("has the key of each API, the salt and the webhook's address", () => {
    const config = parseConfig(
      {
        base_url: "https://a.example.com",
        api_key: KEY,
        hash_salt: "a salt of mine",
        hash_fields: ["email"],
        external_api: { api_url: "https://b.example.com", api_key: "another_key" },
        company_lookup: { domains: ["example.com"], webhook_url: "https://hook.example.com/secret" },
      },
      {},
    );
    expect(secretsOf(config)).toEqual(
      expect.arrayContaining([KEY, "another_key", "a salt of mine", "https://hook.example.com/secret"]),
    );
  });
});
