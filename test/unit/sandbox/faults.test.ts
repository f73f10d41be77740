import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { get, linesOf, PEOPLE, STREAM } from "./http.ts";

const PEOPLE_COUNT = 40;

const started = (...faults: string[]): Promise<Sandbox> =>
  startSandbox({ people: PEOPLE_COUNT, undated: 0, faults });

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

/** How many people a list says that there are. */
const totalIn = async (sandbox: Sandbox): Promise<unknown> =>
  JSON.parse((await get(sandbox, `${PEOPLE}?limit=10`)).text).pagination.total;

describe("a service that is wrong about its rows", () => {
  it("is wrong about totals", async () => {
    await using sandbox = await started();
    const totals: unknown[] = [];
    for (const fault of ["count=5", "count=-5", "count=-500", "cap=7", "null-total"]) {
      sandbox.fault(fault);
      totals.push(await totalIn(sandbox));
    }
    sandbox.fault("count=5", "cap=42");
    totals.push(await totalIn(sandbox));
    expect(totals).toEqual([45, 35, 0, 7, null, 42]);
  });
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
