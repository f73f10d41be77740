import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { get, linesOf, list, PEOPLE, STREAM, stream, totalOf } from "./http.ts";

const PEOPLE_COUNT = 40;

const started = (...faults: string[]): Promise<Sandbox> =>
  startSandbox({ people: PEOPLE_COUNT, undated: 0, faults });

const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);

describe("a stream with odd lines", () => {
  it.each([
    ["garbage:after=3", 3, 1, /^(?!\{"id".*\}$)/s, 1],
    ["no-key:after=3", 3, 1, /^\{(?!"id")/, 0],
    ["blank-lines", 1, PEOPLE_COUNT, /^$/, PEOPLE_COUNT],
    ["crlf", 0, PEOPLE_COUNT, /\}\r$/, 0],
    ["not-object:after=3", 3, 1, /^null$/, 1],
    ["not-object=42:after=all", PEOPLE_COUNT, 1, /^42$/, 1],
    ["surrogate:after=3", 3, 1, /"firstName":"\\ud83d"/, 0],
    ["nul:after=3", 3, 1, /"firstName":"a\\u0000b"/, 0],
    ["big-int:after=3", 3, 1, /"externalId":9007199254740993\}$/, 0],
    ["wrong-type:after=3", 3, 1, /"companySize":"many"/, 0],
    ["new-field:after=30", 30, 10, /"engagement":/, 0],
    ["stream-failed:after=3", 3, 1, /"code":"STREAM_FAILED"/, -36],
  ])("%s: from line %i on, on %i lines", async (fault, nth, count, pattern, added) => {
    await using sandbox = await started(fault);
    const lines = linesOf((await get(sandbox, STREAM)).text);
    const odd = lines.map((line) => pattern.test(line));
    expect([odd.indexOf(true), odd.filter(Boolean).length]).toEqual([nth, count]);
    expect(lines).toHaveLength(PEOPLE_COUNT + added);
  });
});

describe("a service that is wrong about its rows", () => {
  it("leaves the same people out of every stream, whatever the window", async () => {
    await using sandbox = await started("omit=3");
    const shown = ids(await stream(sandbox));
    expect(shown).toHaveLength(PEOPLE_COUNT - 3);
    const middle = sandbox.people()[20]?.discoveredAt?.slice(0, 10) ?? "";
    const recent = await stream(sandbox, `?discovered_from=${middle}`);
    const older = await stream(sandbox, `?discovered_to=${middle}`);
    expect(new Set(ids([...recent, ...older]))).toEqual(new Set(shown));
    const page = await list(sandbox);
    expect([page.data.length, page.pagination.total]).toEqual([PEOPLE_COUNT, PEOPLE_COUNT]);
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
});

it("a stream while people move drops rows that left its window before their turn came", async () => {
  const faults = ["recheck=100:after=500"];
  await using sandbox = await startSandbox({ now: "2026-03-15T10:00:00Z", people: 1000, days: 40, faults });
  const window = "discovered_to=2026-03-14";
  const total = await totalOf(sandbox, `&${window}`);
  const rows = await stream(sandbox, `?${window}`);
  expect(rows.length).toBeLessThan(total - 30);
  expect(rows.length).toBeGreaterThan(total - 100);
  expect(await totalOf(sandbox, `&${window}`)).toBe(total - 100);
  expect(await stream(sandbox, "?discovered_from=2026-03-15")).toHaveLength(1000 - total + 100);
});

it.each([
  ["status=423", 423, '"SOURCE_UNAVAILABLE"'],
  ["status=502", 502, "<h1>502</h1>"],
  ["status=500:body=oops: at=once:times=1", 500, "oops: at=once"],
  ["html", 200, "<!doctype html>"],
  ["wrong-content", 200, "{}"],
  ["leak:times=1", 500, "svc_00000000_00000000000000000000000000000001"],
  ["429=7", 429, '"RATE_LIMIT_EXCEEDED"'],
])("instead of a list %s has the status %i, and says %s, once", async (fault, status, words) => {
  const key = "svc_00000000_00000000000000000000000000000001";
  await using sandbox = await startSandbox({ people: 2, key, faults: [fault] });
  const [got, after] = [await get(sandbox, PEOPLE), await get(sandbox, PEOPLE)];
  expect([got.status, got.text]).toEqual([status, expect.stringContaining(words)]);
  expect(got.header("retry-after")).toBe(status === 429 ? "7" : undefined);
  expect([after.status, after.text]).toEqual([200, expect.stringContaining('"data":[')]);
});

it("a fault strikes the requests that path, times and skip name", async () => {
  await using sandbox = await started("status=500:path=people/stream:times=2:skip=1");
  const seen: number[] = [];
  for (const path of [STREAM, PEOPLE, STREAM, STREAM, STREAM]) seen.push((await get(sandbox, path)).status);
  expect(seen).toEqual([200, 200, 500, 500, 200]);
});

it.each([
  ["explode", /Cannot read the fault "explode".*known are reset, .*recheck, /],
  ["omit", "write it as omit=K"],
  ["omit=many", "K must be an integer"],
  ["reset=3", '"reset" takes no value'],
  ["reset:after=soon", "after must be a number"],
  ["reset:lists=too", '"reset" has no "lists"'],
  ["dates=roman", "SPELLING must be short-offset, "],
])("the fault %s is refused with the reason", async (fault, why) => {
  await expect(startSandbox({ faults: [fault] })).rejects.toThrow(why);
});
