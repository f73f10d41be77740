import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { decodedTexts } from "../../../src/api/decode.ts";
import { envelopeCode } from "../../../src/api/error-table.ts";
import { RowNotes } from "../../../src/api/row-notes.ts";
import { RowParser } from "../../../src/api/rows.ts";
import { STREAMS } from "../../../src/catalog/streams.ts";
import { ConfigError, DataError } from "../../../src/errors.ts";
import type { RawLine } from "../../../src/streams/event.ts";
import { closedWindow } from "../../../src/streams/window.ts";
import type { Day } from "../../../src/time.ts";
import { listOf, serve } from "../../support/serve.ts";
import { KEY, type Opened, openSession, sleepyClock } from "../../support/session.ts";

const COMPANIES = STREAMS[1];

type Asked = Opened & { readonly asked: readonly string[] };

/** A run's dealings with a service that gives these answers; `asked`: the addresses of its requests so far. */
async function open(
  answer: (url: string, response: ServerResponse) => void,
  clock = sleepyClock(),
): Promise<Asked> {
  const asked: string[] = [];
  const { url } = await serve((request: IncomingMessage, response) => {
    asked.push(String(request.url));
    answer(String(request.url), response);
  });
  return { ...openSession(url, { clock, idle: 60 }), asked };
}

const DATED_ROW = { id: "1", discoveredAt: "2026-01-02T10:00:00Z" };

describe("a count", () => {
  it.each([
    ["of no day", null],
    ["of a day before", "2026-01-01T23:59:59Z"],
    ["of a day after", "2026-01-03T00:00:00Z"],
  ])("ends the stream if its filter brings a row %s", async (_, discoveredAt) => {
    const { api } = await open((_, response) => response.end(listOf(9, [{ id: "1", discoveredAt }])));
    const day = closedWindow("2026-01-02" as Day, "2026-01-02" as Day);
    await expect(api.count(day)).rejects.toThrow("date filters");
  });

  it("asks for the dated first, so that no arrival hides someone without a date", async () => {
    // One person with a date arrives between the two counts; one has none.
    const totals = [10, 12];
    const { api, asked } = await open((_, response) => response.end(listOf(totals.shift() ?? 0)));
    const count = await api.count({ kind: "undated" });
    expect(asked.map((url) => url.includes("discovered_from"))).toEqual([true, false]);
    expect(count).toMatchObject({ rows: 10, undated: 2 });
  });

  it("without a total ends the stream where counts are proof", async () => {
    const { api } = await open((_, response) => response.end(listOf(null)));
    await expect(api.count({ kind: "all" })).rejects.toThrow(DataError);
  });

  it.each([
    [7, null],
    [null, 7],
  ])("is none where half of it is no number, and counts prove nothing: %j, %j", async (dated, all) => {
    const { url } = await serve(({ url: asked = "" }, response) =>
      response.end(listOf(asked.includes("discovered_from") ? dated : all)),
    );
    const { api } = openSession(url, { verify: false });
    expect(await api.count({ kind: "undated" })).toMatchObject({ known: false });
  });

  it.each(["discovered_from", "limit"])(
    "ends the stream if it is lower than its own answer shows, twice (%s)",
    async (filter) => {
      let low = 2;
      const { api, asked } = await open((url, response) => {
        const isLow = url.includes(filter) && low-- > 0;
        response.end(listOf(isLow ? 0 : 1, url.includes(filter) ? [DATED_ROW] : []));
      });
      const day = closedWindow("2026-01-02" as Day, "2026-01-02" as Day);
      await expect(api.count(day)).rejects.toThrow(/says 0 beside 1 row.*verify_counts/);
      expect(asked).toHaveLength(2);
      low = 1;
      expect(await api.count({ kind: "undated" })).toMatchObject({ rows: 1, undated: 0 });
      low = 9;
      await expect(api.count({ kind: "undated" })).rejects.toThrow(DataError);
    },
  );

  it("was asked before the request left, whatever the answer took", async () => {
    const { api } = await open((_, response) => response.end(listOf(1)), sleepyClock(5_000));
    const { asked, answered } = await api.count({ kind: "all" });
    expect(answered - asked).toBeGreaterThanOrEqual(7_000);
  });
});

describe("nothing", () => {
  const today = { kind: "open", from: "2026-03-20" as Day, undated: false } as const;

  it("may be a list of null, beside its pagination alone", async () => {
    const pagination = { page: 1, limit: 1, total: 0, totalPages: 0 };
    const { api } = await open((_, response) => response.end(JSON.stringify({ data: null, pagination })));
    expect(await api.count(today)).toMatchObject({ rows: 0, known: true });
    expect(await api.page(today, 1)).toMatchObject({ rows: [] });
    expect(await api.rowAt(today, 1)).toEqual({ row: undefined, total: 0 });
    const none = await open((_, response) => response.end('{"success":true,"data":null}'));
    await expect(none.api.count(today)).rejects.toThrow("not of the interface's form");
  });

  it("may be a refusal of a page past the first, and of no other", async () => {
    const refusing = (status: number, code: string): Promise<Asked> =>
      open((_, response) => {
        response.writeHead(status).end(JSON.stringify({ success: false, error: { code, message: "" } }));
      });
    for (const [status, code] of [
      [404, "NO_SUCH_PAGE"],
      [400, "INVALID_PARAMETER"],
    ] as const) {
      const { api } = await refusing(status, code);
      expect(await api.page(today, 2)).toMatchObject({ rows: [], total: null });
      await expect(api.page(today, 1)).rejects.toThrow(ConfigError);
    }
    const revoked = await refusing(401, "INVALID_API_KEY");
    await expect(revoked.api.page(today, 2)).rejects.toThrow(ConfigError);
  });

  it("may be an export without content", async () => {
    const { api } = await open((_, response) => response.writeHead(204).end());
    const rows: unknown[] = [];
    for await (const batch of api.stream(today)) rows.push(...batch.rows);
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
    const answer = JSON.stringify({ success: true, data: [{ id: "1" }], pagination });
    const { api, asked } = await open((_, response) => response.end(answer));
    const page = await api.page({ kind: "all" }, 7);
    expect(page).toMatchObject({ size, rows: [{ key: '"1"' }], total: pagination?.total ?? null });
    expect(asked[0]).toMatch(/[?&]page=7&limit=1000/);
  });
});

describe("Session.readingOf()", () => {
  const dated = { domain: "example.com", discoveredAt: "2026-01-02T03:04:05Z" };

  it.each([
    ["by days if their date filter is honoured", 0, [], true],
    ["as one body if it is ignored", 9, [dated], false],
    ["as one body if rows come that it leaves out of the total", 0, [dated], false],
    ["as one body if they have no dates", 9, [{ domain: "example.com" }], false],
  ])("reads companies %s", async (_, total, rows, isDated) => {
    const all = isDated ? [dated] : rows;
    const { session } = await open((url, response) => {
      response.end(url.includes("discovered_to") ? listOf(total, rows) : listOf(9, all));
    });
    expect(await session.readingOf(COMPANIES)).toEqual({ isDated, isListed: true });
  });

  it("reads companies from their export where there is no list", async () => {
    const { session } = await open((_, response) => response.writeHead(404).end());
    expect(await session.readingOf(COMPANIES)).toEqual({ isDated: false, isListed: false });
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
    const clock = sleepyClock();
    const { client } = await open(
      (_, response) => response.writeHead(429, { "retry-after": "30" }).end(),
      clock,
    );
    await client.requestSlot();
    expect((await client.post("submit", "/x", {})).kind).toBe("limited");
    const before = clock.time;
    await client.requestSlot();
    expect(clock.time - before).toBeGreaterThanOrEqual(30_000);
  });
});

describe("RowParser", () => {
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
    expect(parser.match(like)).toEqual({ raw: like, key: '"2"', cursor: null, names: ["id", "name"] });
  });
});

describe("toText()", () => {
  /** How many characters it makes of chunks. */
  async function lengthOf(chunks: readonly Buffer[]): Promise<number> {
    let length = 0;
    const arrived = Readable.from(chunks) as AsyncIterable<Buffer>;
    for await (const text of decodedTexts(arrived, new RowNotes())) length += text.length;
    return length;
  }

  it("measures each line by itself, however many come before it", async () => {
    const chunk = Buffer.from(`${"x".repeat(65_000)}\ny`);
    expect(await lengthOf(Array(300).fill(chunk))).toBe(300 * chunk.length);
  });

  it("takes a line of sixteen MiB, and no byte more", async () => {
    expect(await lengthOf([Buffer.alloc(16_777_216, "x")])).toBe(16_777_216);
    await expect(lengthOf([Buffer.alloc(16_777_217, "x")])).rejects.toThrow("longer than 16 MiB");
  });
});
