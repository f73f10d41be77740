import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { codeOf, get, PEOPLE, SOURCES, STREAM, stream } from "./http.ts";

async function answered(sandbox: Sandbox, path: string): Promise<string> {
  const got = await get(sandbox, path);
  return got.status === 200 ? "200" : `${got.status} ${codeOf(got)}`;
}

it("missing, malformed and unknown keys are refused with one and the same body", async () => {
  await using sandbox = await startSandbox({ people: 2 });
  const keys = ["", "nonsense", `svc_00000000_${"0".repeat(32)}`, `${sandbox.key}0`];
  const refused = await Promise.all(keys.map((key) => get(sandbox, PEOPLE, { "x-api-key": key })));
  const without = await fetch(`${sandbox.url}${PEOPLE}`);
  expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  expect(without.status).toBe(401);
  expect(new Set([...refused.map(({ text }) => text), await without.text()]).size).toBe(1);
  expect(refused.map(codeOf)).toContain("INVALID_API_KEY");
});

const MALFORMED = [
  ..."page=0 page=1.5 page=x limit=0 limit=1001 limit= skip_count=yes is_user=TRUE".split(" "),
  ..."discovered_days=0 discovered_days=367 discovered_from=2026-02-30 discovered_from=2026-1-1".split(" "),
  ...["discovered_to=2026-01-01T00:00:00Z", "discovered_days=2&discovered_from=2026-01-01"],
];
const ENDS = "limit=1000 limit=1 discovered_days=1 discovered_days=366 page=999 is_user=all".split(" ");

it("parameters are refused if they are malformed or out of range", async () => {
  await using sandbox = await startSandbox();
  const asked = async (query: string) => [query, await answered(sandbox, `${PEOPLE}?${query}`)];
  for (const query of MALFORMED) expect(await asked(query)).toEqual([query, "400 INVALID_PARAMETER"]);
  for (const query of ENDS) expect(await asked(query)).toEqual([query, "200"]);
  expect(await answered(sandbox, `${STREAM}?discovered_from=2026-02-30`)).toBe("400 INVALID_PARAMETER");
});

describe("the wire", () => {
  it("streams NDJSON, and compresses for those who ask", async () => {
    await using sandbox = await startSandbox({ people: 300 });
    const plain = await get(sandbox, STREAM);
    expect(plain.header("content-type")).toContain("application/x-ndjson");
    expect(plain.header("content-encoding")).toBeUndefined();
    for (const path of [STREAM, PEOPLE])
      expect((await get(sandbox, path, { "accept-encoding": "gzip" })).header("content-encoding")).toBe(
        "gzip",
      );
  });

  it("limits requests over a sliding minute, and a stream counts once", async () => {
    await using sandbox = await startSandbox({ people: 50, requestsPerMinute: 3 });
    expect(await answered(sandbox, STREAM)).toBe("200");
    sandbox.advance(30_000);
    expect(await answered(sandbox, PEOPLE)).toBe("200");
    expect(await answered(sandbox, SOURCES)).toBe("200");
    const refused = await get(sandbox, PEOPLE);
    expect([refused.status, codeOf(refused)]).toEqual([429, "RATE_LIMIT_EXCEEDED"]);
    const seconds = Number(refused.header("retry-after"));
    expect(seconds).toBeGreaterThan(25);
    expect(seconds).toBeLessThanOrEqual(30);
    sandbox.advance(seconds * 1000);
    expect(await answered(sandbox, PEOPLE)).toBe("200");
    expect(await answered(sandbox, PEOPLE)).toBe("429 RATE_LIMIT_EXCEEDED");
  });

  it("logs requests without the key", async () => {
    await using sandbox = await startSandbox({ people: 3 });
    await get(sandbox, `${PEOPLE}?limit=1&api_key=${sandbox.key}`);
    await get(sandbox, "/nowhere");
    expect(sandbox.requests).toMatchObject([
      { method: "GET", path: PEOPLE, status: 200, headersKey: true, query: { limit: "1" } },
      { method: "GET", path: "/nowhere", status: 404, headersKey: true },
    ]);
    expect(JSON.stringify(sandbox.requests)).not.toContain(sandbox.key);
  });

  it("serves under a path of its own", async () => {
    await using sandbox = await startSandbox({ people: 3, basePath: "/crm" });
    expect(sandbox.url.endsWith("/crm")).toBe(true);
    expect(await stream(sandbox)).toHaveLength(6);
    expect((await fetch(`http://127.0.0.1:${sandbox.port}${PEOPLE}`)).status).toBe(404);
  });
});
