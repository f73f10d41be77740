import { describe, expect, it } from "vitest";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import { COMPANIES, get, linesOf, list, PEOPLE, type Row, STREAM, stream, totalOf } from "./http.ts";

const NOW = "2026-03-15T10:00:00.000Z";
const TODAY = "2026-03-15";

const started = (faults: readonly string[], options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({ people: 60, undated: 2, days: 4, now: NOW, requestsPerMinute: 0, faults, ...options });

const ids = (rows: readonly { readonly id?: string }[]): unknown[] => rows.map(({ id }) => id);
const days = (rows: readonly Row[]): unknown[] => rows.map(({ discoveredAt }) => discoveredAt?.slice(0, 10));
describe("lists that cannot be trusted", () => {
  it("end early, while totals and streams go on", async () => {
    await using sandbox = await started(["list-end=25"]);
    const pages = await Promise.all([1, 2, 3, 4].map((page) => list(sandbox, `?limit=10&page=${page}`)));
    expect(pages.map(({ data }) => data.length)).toEqual([10, 10, 5, 0]);
    expect(pages[0]?.pagination.total).toBe(62);
    expect(await stream(sandbox)).toHaveLength(62);
    expect((await list(sandbox, "?limit=40", COMPANIES)).data).toHaveLength(25);
  });

  it("order equal dates at random, anew for each request", async () => {
    await using sandbox = await started(["random-order"]);
    const [one, two] = [await list(sandbox, "?limit=100"), await list(sandbox, "?limit=100")];
    expect(ids(one.data)).not.toEqual(ids(two.data));
    expect(new Set(ids(one.data))).toEqual(new Set(ids(two.data)));
    expect(days(one.data)).toEqual(days(two.data));
    const halves = [await list(sandbox, "?limit=31"), await list(sandbox, "?limit=31&page=2")];
    expect(new Set(halves.flatMap(({ data }) => ids(data))).size).toBeLessThan(62);
    expect(ids(await stream(sandbox))).toEqual(ids(sandbox.people()));
  });

  it("keep their order where no two dates share a span", async () => {
    await using sandbox = await started(["random-order=1"]);
    expect((await list(sandbox, "?limit=100")).data.slice(0, 60)).toEqual(sandbox.people().slice(0, 60));
  });

  it("break off in the middle of a page's JSON, but count", async () => {
    await using sandbox = await started(["broken-page:times=always"]);
    expect(await totalOf(sandbox)).toBe(62);
    const { status, text } = await get(sandbox, `${PEOPLE}?limit=10`);
    expect(status).toBe(200);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  it("are not there for companies, whose stream is", async () => {
    await using sandbox = await started(["no-company-list"], { companies: 7 });
    expect((await get(sandbox, `${COMPANIES}?limit=1`)).status).toBe(404);
    expect((await get(sandbox, `${COMPANIES}?limit=1`)).status).toBe(404);
    expect(await totalOf(sandbox)).toBe(62);
    expect(await stream(sandbox, "", `${COMPANIES}/stream`)).toHaveLength(7);
  });
});

describe("rows that cannot be trusted", () => {
  it("have no key, the same ones in lists and in streams", async () => {
    await using sandbox = await started(["keyless=3"]);
    const { data } = await list(sandbox, "?limit=100");
    expect(data.filter(({ id }) => id === undefined)).toHaveLength(3);
    expect(ids(await stream(sandbox))).toEqual(ids(data));
  });

  it("lack their key for as many rows as asked", async () => {
    await using sandbox = await started(["no-key=4:after=10"]);
    const rows = await stream(sandbox);
    expect(rows.map(({ id }) => id === undefined)).toEqual(rows.map((_, nth) => nth >= 10 && nth < 14));
  });

  it("are escaped in streams, and not in lists", async () => {
    await using sandbox = await started(["escaped"]);
    const { text } = await get(sandbox, STREAM);
    expect(text).toMatch(/^[\x20-\x7e\n]+$/);
    expect(text).toContain("\\u00e9");
    const rows = linesOf(text).map((line): unknown => JSON.parse(line));
    expect(rows).toEqual(sandbox.people());
    expect((await get(sandbox, `${PEOPLE}?limit=100`)).text).toContain("é");
  });

  it.each([
    ["short-offset", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00$/],
    ["offset", /T\d\d:\d\d:\d\d\.\d{3}\+05:30$/],
    ["comma", /:\d\d,\d{3}Z$/],
    ["space", /^\d{4}-\d\d-\d\d \d\d:/],
    ["lower-case", /t.*z$/],
    ["epoch-ms", /^177\d{10}$/],
    ["epoch-seconds", /^177\d{7}(\.\d{1,3})?$/],
    ["unreadable", /^on \d\d in /],
  ])("spell their dates otherwise: %s", async (spelling, pattern) => {
    await using sandbox = await started([`dates=${spelling}`]);
    const { data } = await list(sandbox, "?limit=60");
    expect(data.every(({ discoveredAt }) => pattern.test(String(discoveredAt)))).toBe(true);
    expect((await stream(sandbox)).slice(0, 60)).toEqual(data);
    const moments = data.map(({ discoveredAt }) => new Date(discoveredAt ?? "").getTime());
    const real = sandbox.people().slice(0, 60);
    if (spelling === "offset")
      expect(moments).toEqual(real.map(({ discoveredAt }) => Date.parse(discoveredAt ?? "")));
  });

  it("have dates of other times, and are counted there", async () => {
    await using sandbox = await started(["redate=0001-01-01:people=3"]);
    expect(await totalOf(sandbox)).toBe(62);
    expect(await totalOf(sandbox, "&discovered_to=1969-12-31")).toBe(3);
    expect(await stream(sandbox, "?discovered_from=0001-01-01&discovered_to=0001-01-01")).toHaveLength(3);
    sandbox.fault("redate=2999-01-01T00:00:00Z");
    expect((await list(sandbox)).data[0]?.discoveredAt).toBe("2999-01-01T00:00:00.000Z");
    expect((await get(sandbox, PEOPLE, { "x-sandbox-fault": "redate=soon" })).status).toBe(400);
  });
});

describe("a clock that cannot be trusted", () => {
  it("is behind the dates of the rows", async () => {
    await using sandbox = await started(["clock-behind=3600"]);
    const date = async (): Promise<number> => Date.parse((await get(sandbox, PEOPLE)).header("date") ?? "");
    expect(new Date(await date()).toISOString().slice(0, 16)).toBe("2026-03-15T09:00");
    sandbox.recheck(1);
    expect(sandbox.people()[0]?.discoveredAt?.slice(0, 13)).toBe("2026-03-15T10");
    sandbox.fault("clock-behind=-86400");
    expect(new Date(await date()).toISOString().slice(0, 10)).toBe("2026-03-16");
  });
});

describe("people without a date", () => {
  it("arrive before an answer", async () => {
    await using sandbox = await started(["arrive-undated=2:skip=1"]);
    const totals = [await totalOf(sandbox), await totalOf(sandbox), await totalOf(sandbox)];
    expect(totals).toEqual([62, 64, 64]);
    expect(await totalOf(sandbox, "&discovered_from=0001-01-01")).toBe(60);
    const undated = (await stream(sandbox)).slice(60);
    expect(undated.map(({ discoveredAt }) => discoveredAt)).toEqual([null, null, null, null]);
    expect((await list(sandbox, "?limit=3&page=21")).data).toEqual(undated.slice(0, 3));
    expect(ids(await stream(sandbox))).toEqual(ids(sandbox.people()));
  });

  it("get one", async () => {
    await using sandbox = await started(["date-undated=2"]);
    sandbox.arrive(1, { undated: true });
    expect(await totalOf(sandbox, `&discovered_from=${TODAY}`)).toBe(
      await totalOf(sandbox, `&discovered_from=${TODAY}`),
    );
    expect(sandbox.people().filter(({ discoveredAt }) => discoveredAt === null)).toHaveLength(1);
    expect(await totalOf(sandbox)).toBe(63);
  });
});

describe("a drain", () => {
  const MANY = { undated: 0, people: 400, days: 40 };

  it("checks the oldest again while a stream is read", async () => {
    await using sandbox = await started(["drain=2:every=10"], MANY);
    const oldest = ids(sandbox.people()).slice(-10);
    const rows = await stream(sandbox, "?discovered_from=2026-03-10");
    expect(rows.length).toBeGreaterThan(40);
    const today = ids(await stream(sandbox, `?discovered_from=${TODAY}`));
    expect(today).toEqual(expect.arrayContaining(oldest.slice(-8)));
    expect(sandbox.people()).toHaveLength(400);
  });

  it("empties a day before it has been read", async () => {
    await using sandbox = await started(["drain=5:every=5"], MANY);
    const first = sandbox.people().at(-1)?.discoveredAt?.slice(0, 10);
    const window = `&discovered_to=${first}`;
    const before = await totalOf(sandbox, window);
    const rows = await stream(sandbox, `?${window}`);
    const left = await totalOf(sandbox, window);
    expect(left).toBeLessThan(before);
    expect(rows.length).toBeGreaterThanOrEqual(left);
  });

  it("may check anyone again", async () => {
    await using sandbox = await started(["drain=1:every=2:order=random"], MANY);
    const oldest = ids(sandbox.people()).slice(-20);
    await stream(sandbox);
    const moved = new Set(ids(sandbox.people()).slice(0, 100));
    expect(oldest.filter((id) => moved.has(id)).length).toBeLessThan(20);
    expect(await totalOf(sandbox, `&discovered_from=${TODAY}`)).toBeGreaterThan(100);
  });
});
