import { constants, gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { FAULTS, parseFault } from "../../../sandbox/faults/faults.ts";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import {
  codeOf,
  dechunk,
  get,
  linesOf,
  list,
  type Page,
  PEOPLE,
  type Raw,
  rawGet,
  STREAM,
  stream,
} from "./http.ts";

const GZIP = { "accept-encoding": "gzip" };
const CHUNKED = "transfer-encoding: chunked";
const PEOPLE_COUNT = 40;

const started = (...faults: string[]): Promise<Sandbox> =>
  startSandbox({ people: PEOPLE_COUNT, undated: 0, requestsPerMinute: 0, faults });

/** The sizes of four pages of ten. */
const sizesOf = (pages: readonly Page[]): number[] => pages.map(({ data }) => data.length);
const fourPages = (sandbox: Sandbox, more = ""): Promise<Page[]> =>
  Promise.all([1, 2, 3, 4].map((page) => list(sandbox, `?limit=10&page=${page}${more}`)));

const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);

/** The lines of a raw stream without its last, unfinished one. */
const wholeLines = (text: string): number => linesOf(text).length;

const forgiving = { finishFlush: constants.Z_SYNC_FLUSH };

describe("a plain body that is cut", () => {
  it.each([
    ["reset", CHUNKED, "reset", false, true],
    ["fin", CHUNKED, "fin", false, true],
    ["end", CHUNKED, "open", true, true],
    ["midline", CHUNKED, "open", true, false],
    ["stall", CHUNKED, "open", false, true],
    ["length", "content-length:", "fin", undefined, true],
    ["length-reset", "content-length:", "reset", undefined, true],
    ["close", "connection: close", "fin", undefined, true],
  ])("%s shows on the wire", async (fault, framing, ended, complete, onLine) => {
    await using sandbox = await started(`${fault}:after=5`);
    const raw = await rawGet(sandbox, STREAM);
    expect(raw).toMatchObject({ status: 200, ended, head: expect.stringContaining(framing) });
    const isChunked = framing === CHUNKED;
    const { content, ...chunks } = isChunked ? dechunk(raw.body) : { content: raw.body, complete: undefined };
    expect(chunks.complete).toBe(complete);
    expect(wholeLines(content.toString())).toBe(5);
    expect(content.toString().endsWith("\n")).toBe(onLine);
    if (framing.startsWith("content-length")) expect(announced(raw)).toBeGreaterThan(raw.body.length);
    if (fault === "close") expect(raw.head).not.toMatch(/content-length|transfer-encoding/);
  });

  it("is cut at about half when nothing else is said, once, and then no more", async () => {
    await using sandbox = await started("end");
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT / 2);
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT);
  });

  it("reads as a failure to a client that watches its connection", async () => {
    for (const fault of ["reset", "fin", "length", "length-reset"]) {
      await using sandbox = await started(fault);
      await expect(stream(sandbox)).rejects.toThrow();
    }
  });
});

describe("a gzip body that is cut", () => {
  it.each([
    ["close-gzip:after=30", "connection: close", "fin"],
    ["gzip-cut:after=30", CHUNKED, "open"],
    ["length-gzip:after=30", "content-length:", "fin"],
    ["gzip-trailer", CHUNKED, "open"],
    ["fin:after=30", CHUNKED, "fin"],
    ["reset:after=30", CHUNKED, "reset"],
  ])("%s shows on the wire and only a strict reader notices", async (fault, framing, ended) => {
    await using sandbox = await started(fault);
    const raw = await rawGet(sandbox, STREAM, GZIP);
    expect(raw.head).toContain("content-encoding: gzip");
    expect(raw).toMatchObject({ ended, head: expect.stringContaining(framing) });
    const { content, complete } =
      framing === CHUNKED ? dechunk(raw.body) : { content: raw.body, complete: false };
    expect(complete).toBe(ended === "open");
    expect(() => gunzipSync(content)).toThrow("unexpected end of file");
    const text = gunzipSync(content, forgiving).toString();
    expect(wholeLines(text)).toBeGreaterThan(20);
    expect(wholeLines(text)).toBeLessThanOrEqual(fault === "gzip-trailer" ? PEOPLE_COUNT : 30);
    if (framing.startsWith("content-length")) expect(announced(raw)).toBeGreaterThan(raw.body.length);
  });

  it("lacks nothing but its last eight bytes with gzip-trailer", async () => {
    await using sandbox = await started("gzip-trailer");
    const cut = dechunk((await rawGet(sandbox, STREAM, GZIP)).body).content;
    const whole = dechunk((await rawGet(sandbox, STREAM, GZIP)).body).content;
    expect(cut).toEqual(whole.subarray(0, -8));
    expect(wholeLines(gunzipSync(cut, forgiving).toString())).toBe(PEOPLE_COUNT);
  });

  it("waits for a client that takes gzip", async () => {
    await using sandbox = await started("gzip-cut");
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT);
    const raw = await rawGet(sandbox, STREAM, GZIP);
    expect(() => gunzipSync(dechunk(raw.body).content)).toThrow();
  });

  it("may also end properly though rows are missing", async () => {
    await using sandbox = await started("end:after=11");
    const raw = await rawGet(sandbox, STREAM, GZIP);
    expect(wholeLines(gunzipSync(dechunk(raw.body).content).toString())).toBe(11);
  });
});

describe("a slow body", () => {
  it("drips in small pieces and is whole", async () => {
    await using sandbox = await started("drip=11");
    const raw = await rawGet(sandbox, STREAM);
    const { content, complete } = dechunk(raw.body);
    expect(raw.body.subarray(0, 3).toString()).toBe("b\r\n");
    expect(complete).toBe(true);
    expect(wholeLines(content.toString())).toBe(PEOPLE_COUNT);
  });

  it("never answers with stall-headers", async () => {
    await using sandbox = await started("stall-headers");
    const raw = await rawGet(sandbox, STREAM);
    expect([raw.ended, raw.head, sandbox.requests[0]?.status]).toEqual(["open", "", 0]);
  });
});

describe("a stream that fails", () => {
  async function failed(fault: string): Promise<string[]> {
    await using sandbox = await started(fault);
    const raw = await rawGet(sandbox, STREAM);
    expect(raw.ended).toBe("fin");
    const { content, complete } = dechunk(raw.body);
    expect(complete).toBe(true);
    return linesOf(content.toString());
  }

  it("says so in its last line and closes the connection", async () => {
    const lines = await failed("stream-failed:after=4");
    expect(lines).toHaveLength(5);
    expect(JSON.parse(lines.at(-1) ?? "")).toEqual({
      success: false,
      error: { code: "STREAM_FAILED", message: expect.any(String) },
    });
  });

  it("can do so in its first line, or after its last row", async () => {
    expect(await failed("stream-failed:after=0")).toHaveLength(1);
    expect(await failed("stream-failed:after=all")).toHaveLength(PEOPLE_COUNT + 1);
  });
});

describe("a stream with odd lines", () => {
  async function bytesOf(fault: string): Promise<Buffer> {
    await using sandbox = await started(fault);
    return dechunk((await rawGet(sandbox, STREAM)).body).content;
  }

  it.each([
    ["garbage:after=3", 3, 1, /^(?!\{"id".*\}$)/s, 1],
    ["no-key:after=3", 3, 1, /^\{(?!"id")/, 0],
    ["blank-lines", 1, PEOPLE_COUNT, /^$/, PEOPLE_COUNT],
    ["crlf", 0, PEOPLE_COUNT, /\}\r$/, 0],
    ["bom", 0, 1, /^\ufeff\{/, 0],
    ["not-object:after=3", 3, 1, /^null$/, 1],
    ["not-object=42:after=all", PEOPLE_COUNT, 1, /^42$/, 1],
    ["long-line=3000000:after=3", 3, 1, /^.{3000000}$/, 1],
    ["surrogate:after=3", 3, 1, /"firstName":"\\ud83d"/, 0],
    ["nul:after=3", 3, 1, /"firstName":"a\\u0000b"/, 0],
    ["big-int:after=3", 3, 1, /"externalId":9007199254740993\}$/, 0],
    ["wrong-type:after=3", 3, 1, /"companySize":"many"/, 0],
    ["new-field:after=30", 30, 10, /"engagement":/, 0],
  ])("%s: from line %i on, on %i lines", async (fault, nth, count, pattern, added) => {
    const lines = linesOf((await bytesOf(fault)).toString());
    const odd = lines.map((line) => pattern.test(line));
    expect([odd.indexOf(true), odd.filter(Boolean).length]).toEqual([nth, count]);
    expect(lines).toHaveLength(PEOPLE_COUNT + added);
  });

  it("has bytes that are no UTF-8", async () => {
    const bytes = await bytesOf("bad-utf8:after=3");
    expect(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes)).toThrow();
    const lines = bytes.toString("latin1").split("\n");
    expect(JSON.parse(lines[3] ?? "").firstName).toBe("caf\xe9 \xff");
  });
});

describe("a service that is wrong about its rows", () => {
  it("leaves the same people out of every stream, whatever the window", async () => {
    await using sandbox = await started("omit=3");
    const everyone = ids(sandbox.people());
    const shown = ids(await stream(sandbox));
    expect(shown).toHaveLength(PEOPLE_COUNT - 3);
    expect(ids(await stream(sandbox))).toEqual(shown);
    const middle = sandbox.people()[20]?.discoveredAt?.slice(0, 10) ?? "";
    const recent = await stream(sandbox, `?discovered_from=${middle}`);
    const older = await stream(sandbox, `?discovered_to=${middle}`);
    expect(new Set(ids([...recent, ...older]))).toEqual(new Set(shown));
    const page = await list(sandbox);
    expect([ids(page.data), page.pagination.total]).toEqual([everyone, PEOPLE_COUNT]);
  });

  it("leaves them out of lists too when told so, but still counts them", async () => {
    await using sandbox = await started("omit=3:lists=too");
    const shown = ids(await stream(sandbox));
    const pages = await fourPages(sandbox);
    expect(sizesOf(pages)).toEqual([10, 10, 10, 7]);
    expect(pages.flatMap(({ data }) => ids(data))).toEqual(shown);
    expect(pages[0]?.pagination.total).toBe(PEOPLE_COUNT);
  });

  it("repeats people, and can hide others behind them", async () => {
    await using sandbox = await started("duplicate=3");
    const repeated = ids(await stream(sandbox));
    expect([repeated.length, new Set(repeated).size]).toEqual([PEOPLE_COUNT + 3, PEOPLE_COUNT]);
    sandbox.fault("duplicate-omit=3");
    const hiding = ids(await stream(sandbox));
    expect([hiding.length, new Set(hiding).size]).toEqual([PEOPLE_COUNT, PEOPLE_COUNT - 3]);
  });

  it("is wrong about totals", async () => {
    await using sandbox = await started();
    const totals: unknown[] = [];
    for (const fault of ["count=5", "count=-5", "count=-500", "cap=7", "null-total"]) {
      sandbox.fault(fault);
      totals.push((await list(sandbox, "?limit=10")).pagination.total);
    }
    sandbox.fault("count=5", "cap=42");
    totals.push((await list(sandbox, "?limit=10")).pagination.total);
    expect(totals).toEqual([45, 35, 0, 7, null, 42]);
  });

  it("fails to count, and only that", async () => {
    await using sandbox = await started("count-fails");
    expect(codeOf(await get(sandbox, `${PEOPLE}?limit=1`))).toBe("INTERNAL_ERROR");
    expect((await get(sandbox, `${PEOPLE}?limit=2`)).status).toBe(200);
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT);
  });

  it("repeats its first page", async () => {
    await using sandbox = await started("page-repeats");
    const [one, two] = [await list(sandbox, "?limit=10"), await list(sandbox, "?limit=10&page=2")];
    expect([two.pagination.page, ids(two.data)]).toEqual([2, ids(one.data)]);
  });

  it("serves a page in the middle short", async () => {
    await using sandbox = await started("short-page");
    expect(sizesOf(await fourPages(sandbox, "&skip_count=1"))).toEqual([10, 5, 10, 10]);
  });

  it("ignores its filters", async () => {
    await using sandbox = await started("filters-ignored");
    expect((await list(sandbox, "?discovered_to=1970-01-01&is_user=true")).pagination.total).toBe(
      PEOPLE_COUNT,
    );
    expect(await stream(sandbox, "?discovered_to=1970-01-01")).toHaveLength(PEOPLE_COUNT);
  });
});

describe("answers in the place of the endpoint", () => {
  it.each([
    ["status=500", 500, '"INTERNAL_ERROR"'],
    ["status=503", 503, '"ORG_KIND_UNAVAILABLE"'],
    ["status=423", 423, '"SOURCE_UNAVAILABLE"'],
    ["status=404:code=JOB_NOT_FOUND", 404, '"JOB_NOT_FOUND"'],
    ["status=502", 502, "<h1>502</h1>"],
    ["status=500:body=oops: at=once:times=1", 500, "oops: at=once"],
    ["status=500:body=out of order", 500, "out of order"],
    ["html", 200, "<!doctype html>"],
    ["wrong-content", 200, "{}"],
    ["leak:times=1", 500, "svc_00000000_00000000000000000000000000000001"],
  ])("%s has the status %i, and says %s, once", async (fault, status, words) => {
    const key = "svc_00000000_00000000000000000000000000000001";
    await using sandbox = await startSandbox({ people: 2, key, faults: [fault] });
    const [got, after] = [await get(sandbox, PEOPLE), await get(sandbox, PEOPLE)];
    expect([got.status, got.text]).toEqual([status, expect.stringContaining(words)]);
    expect([after.status, after.text]).toEqual([200, expect.stringContaining('"data":[')]);
  });

  it.each([
    ["429=7", 429, "retry-after", "7"],
    ["429:header=none", 429, "retry-after", undefined],
    ["redirect=http://127.0.0.1:9/elsewhere:times=1", 302, "location", "http://127.0.0.1:9/elsewhere"],
    ["html", 200, "content-type", "text/html; charset=utf-8"],
  ])("%s has the status %i and a header %s: %s", async (fault, status, name, value) => {
    await using sandbox = await started(fault);
    const got = await get(sandbox, PEOPLE);
    expect([got.status, got.header(name)]).toEqual([status, value]);
    if (status === 429) expect(codeOf(got)).toBe("RATE_LIMIT_EXCEEDED");
  });

  it("429=60:date=1 asks to wait until a date", async () => {
    await using sandbox = await started("429=60:date=1");
    const date = Date.parse((await get(sandbox, PEOPLE)).header("retry-after") ?? "");
    expect(Math.abs(date - Date.now() - 60_000)).toBeLessThan(30_000);
  });
});

describe("which requests a fault strikes", () => {
  const statuses = async (sandbox: Sandbox, paths: readonly string[]): Promise<number[]> => {
    const seen: number[] = [];
    for (const path of paths) seen.push((await get(sandbox, path)).status);
    return seen;
  };

  it("follows path, times and skip", async () => {
    await using sandbox = await started("status=500:path=people/stream:times=2:skip=1");
    expect(await statuses(sandbox, [STREAM, PEOPLE, STREAM, STREAM, STREAM])).toEqual([
      200, 200, 500, 500, 200,
    ]);
    sandbox.fault("status=500:path=/people$:times=always");
    expect(await statuses(sandbox, [STREAM, PEOPLE, PEOPLE])).toEqual([200, 500, 500]);
  });

  it("follows the days that are asked for", async () => {
    await using sandbox = await started("status=500:from=2020-01-01:to=none:times=always");
    const days = ["", "?discovered_from=2020-01-01", "?discovered_from=2020-01-01&discovered_to=2020-01-02"];
    const asked = days.map((query) => `${PEOPLE}${query}`);
    expect(await statuses(sandbox, asked)).toEqual([200, 500, 200]);
    sandbox.fault("status=500:from=none:times=always");
    expect(await statuses(sandbox, asked)).toEqual([500, 200, 200]);
  });

  it("may be asked for by a request itself, for that request alone", async () => {
    await using sandbox = await started();
    const struck = await get(sandbox, STREAM, { "x-sandbox-fault": "status=503" });
    expect([struck.status, (await get(sandbox, STREAM)).status]).toEqual([503, 200]);
    const unknown = await get(sandbox, STREAM, { "x-sandbox-fault": "nonsense" });
    expect([unknown.status, codeOf(unknown)]).toEqual([400, "INVALID_PARAMETER"]);
  });

  it("is the first of those that exclude each other, with the others left for later", async () => {
    await using sandbox = await started("status=500", "end:after=3", "omit=10");
    expect((await get(sandbox, STREAM)).status).toBe(500);
    expect(await stream(sandbox)).toHaveLength(3);
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT - 10);
  });

  it("may come with another one where it changes every row", async () => {
    await using sandbox = await started("escaped:times=always", "end:after=3:times=always");
    const { text } = await get(sandbox, STREAM);
    expect(linesOf(text)).toHaveLength(3);
    expect(text).toMatch(/^[\x20-\x7e\n]+$/);
  });

  it("includes pages only where a cut names them", async () => {
    await using sandbox = await started("fin:path=/people$");
    expect(await stream(sandbox)).toHaveLength(PEOPLE_COUNT);
    const raw = await rawGet(sandbox, PEOPLE);
    expect([raw.ended, dechunk(raw.body).complete]).toEqual(["fin", false]);
  });
});

describe("fault expressions", () => {
  it("are refused with the reason and the list of known faults", async () => {
    for (const [fault, why] of [
      ["explode", /Cannot read the fault "explode".*known are reset, .*recheck, /],
      ["omit", "write it as omit=K"],
      ["omit=many", "K must be an integer"],
      ["reset=3", '"reset" takes no value'],
      ["reset:after=soon", "after must be a number"],
      ["reset:lists=too", '"reset" has no "lists"'],
      ["dates=roman", "SPELLING must be short-offset, "],
    ] as const) {
      expect(() => parseFault(fault)).toThrow(why);
    }
    await expect(startSandbox({ faults: ["explode"] })).rejects.toThrow("explode");
  });

  it("exist for everything in the table, each with a description", () => {
    for (const [name, { description, argument }] of FAULTS) {
      expect(description).not.toBe("");
      const value = argument?.choices?.[0] ?? "3";
      expect(parseFault(argument === undefined ? name : `${name}=${value}`).name).toBe(name);
    }
  });
});

const announced = ({ head }: Raw): number => Number(/content-length: (\d+)/.exec(head)?.[1]);

describe("a fault of=rows", () => {
  const PAGE = "/api/v1/public/people?limit=10";
  const struckBy = async (sandbox: Sandbox, path: string): Promise<number | undefined> => {
    await rawGet(sandbox, path);
    return sandbox.strikes()[0];
  };

  it.each(["end:times=always", "drain=1:every=5", "status=500:times=always"])(
    "%s strikes exports and pages, and no count",
    async (fault) => {
      await using sandbox = await started(`${fault}:of=rows`);
      expect(await struckBy(sandbox, `${PEOPLE}?limit=1`)).toBe(0);
      expect(await struckBy(sandbox, PAGE)).toBe(1);
      expect(await struckBy(sandbox, STREAM)).toBe(2);
    },
  );

  it("moves people while a page is sent", async () => {
    await using sandbox = await started("drain=1:every=5:of=rows");
    const before = sandbox.people().map(({ discoveredAt }) => discoveredAt);
    await list(sandbox, "?limit=10");
    const after = sandbox.people().map(({ discoveredAt }) => discoveredAt);
    expect(after.filter((date) => !before.includes(date))).toHaveLength(2);
  });

  it("takes nothing else than rows", () => {
    expect(() => parseFault("end:of=counts")).toThrow("of must be rows");
  });
});

describe("gateway", () => {
  it("sends so many bytes of a body, and a shorter one completely", async () => {
    await using sandbox = await started("gateway=2000:of=rows:times=always");
    const cut = await rawGet(sandbox, STREAM, GZIP);
    expect(dechunk(cut.body)).toMatchObject({ complete: false });
    expect(dechunk(cut.body).content).toHaveLength(2000);
    expect(await list(sandbox, "?limit=2")).toMatchObject({ pagination: { limit: 2 } });
  });
});

describe("the option newest", () => {
  it("says before which moment people were checked", async () => {
    const newest = "2026-02-01T00:00:00Z";
    await using sandbox = await startSandbox({ people: 20, days: 10, undated: 0, newest });
    const dates = sandbox.people().map(({ discoveredAt }) => discoveredAt ?? "");
    expect(dates.every((date) => date < newest)).toBe(true);
    expect(dates.every((date) => date > "2026-01-22")).toBe(true);
  });
});
