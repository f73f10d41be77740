import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import { COMPANIES, codeOf, get, list, PEOPLE, rawGet, SOURCES, STREAM, stream } from "./http.ts";

const NOW = "2026-03-15T10:00:00.000Z";

async function answered(sandbox: Sandbox, path: string, headers?: Record<string, string>): Promise<string> {
  const got = await get(sandbox, path, headers);
  return got.status === 200 ? "200" : `${got.status} ${codeOf(got)}`;
}

describe("authentication", () => {
  it("refuses missing, malformed and unknown keys with one and the same body", async () => {
    await using sandbox = await startSandbox({ people: 2 });
    const keys = ["", "nonsense", `svc_00000000_${"0".repeat(32)}`, `${sandbox.key}0`];
    const refused = await Promise.all(keys.map((key) => get(sandbox, PEOPLE, { "x-api-key": key })));
    const without = await fetch(`${sandbox.url}${PEOPLE}`);
    expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    expect(without.status).toBe(401);
    expect(new Set([...refused.map(({ text }) => text), await without.text()]).size).toBe(1);
    expect(refused.map(codeOf)).toContain("INVALID_API_KEY");
  });

  it("gates by plan, and lets any plan list the sources", async () => {
    await using agency = await startSandbox({ plan: "agency" });
    await using inactive = await startSandbox({ plan: "inactive" });
    for (const path of [PEOPLE, STREAM, COMPANIES, `${COMPANIES}/stream`]) {
      expect(await answered(agency, path)).toBe("403 ENDPOINT_NOT_ON_PLAN");
      expect(await answered(inactive, path)).toBe("403 SUBSCRIPTION_INACTIVE");
    }
    expect(await answered(agency, SOURCES)).toBe("200");
    expect(await answered(inactive, SOURCES)).toBe("403 SUBSCRIPTION_INACTIVE");
  });

  it("checks the key, then the plan, then the parameters, then the source", async () => {
    await using agency = await startSandbox({ plan: "agency" });
    await using enterprise = await startSandbox();
    expect(await answered(agency, `${PEOPLE}?limit=0`, { "x-api-key": "x" })).toBe("401 INVALID_API_KEY");
    expect(await answered(agency, `${PEOPLE}?limit=0`)).toBe("403 ENDPOINT_NOT_ON_PLAN");
    expect(await answered(enterprise, `${PEOPLE}?limit=0&source=nope`)).toBe("400 INVALID_PARAMETER");
    expect(await answered(enterprise, `${PEOPLE}?source=nope`)).toBe("403 SOURCE_NOT_ALLOWED");
  });
});

describe("parameters", () => {
  const days = "discovered_days=2&discovered";
  const malformed = [
    ..."page=0 page=-1 page=1.5 page=x limit=0 limit=1001 limit= skip_count=yes is_user=TRUE".split(" "),
    ..."discovered_days=0 discovered_days=367 discovered_from=2026-02-30 discovered_from=2026-1-1".split(" "),
    ...["discovered_to=2026-01-01T00:00:00Z", `${days}_from=2026-01-01`, `${days}_to=2026-01-01`],
  ];
  const ENDS = "limit=1000 limit=1 discovered_days=1 discovered_days=366 page=999 is_user=all".split(" ");
  const streamed = malformed.filter((query) => !/^(page|limit|skip)/.test(query));

  it.each([
    ["refuses what is malformed or out of range", PEOPLE, malformed, "400 INVALID_PARAMETER"],
    ["refuses what is malformed in a stream, too", STREAM, streamed, "400 INVALID_PARAMETER"],
    ["takes the ends of every range", PEOPLE, ENDS, "200"],
  ])("%s", async (_, path, queries, answer) => {
    await using sandbox = await startSandbox({ requestsPerMinute: 0 });
    for (const query of queries) expect(await answered(sandbox, `${path}?${query}`), query).toBe(answer);
  });

  it("answers 404 for unknown paths and 405 for other methods", async () => {
    await using sandbox = await startSandbox();
    expect(await answered(sandbox, "/api/v1/public/nothing")).toBe("404 NOT_FOUND");
    const posted = await fetch(`${sandbox.url}${PEOPLE}`, {
      method: "POST",
      headers: { "x-api-key": sandbox.key },
    });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"]);
  });
});

describe("lists", () => {
  it("pages through everyone, newest first, the undated last", async () => {
    await using sandbox = await startSandbox({ people: 250, undated: 4 });
    const pages = await Promise.all([1, 2, 3, 4].map((page) => list(sandbox, `?page=${page}`)));
    expect(pages.map(({ data }) => data.length)).toEqual([100, 100, 54, 0]);
    expect(pages[0]?.pagination).toEqual({ page: 1, limit: 100, total: 254, totalPages: 3 });
    const rows = pages.flatMap(({ data }) => data);
    expect(rows).toEqual(sandbox.people());
    expect(new Set(rows.map(({ id }) => id)).size).toBe(254);
    const dates = rows.map(({ discoveredAt }) => discoveredAt ?? "");
    expect(dates).toEqual([...dates].sort().reverse());
    expect(dates.slice(-5).map((date) => date === "")).toEqual([false, true, true, true, true]);
  });
});

describe("records", () => {
  it("depends on the seed and nothing else", async () => {
    await using one = await startSandbox({ now: NOW, seed: 5 });
    await using same = await startSandbox({ now: NOW, seed: 5 });
    await using other = await startSandbox({ now: NOW, seed: 6 });
    const ids = (sandbox: Sandbox): string[] => sandbox.people().map(({ id }) => id);
    expect(one.people()).toEqual(same.people());
    expect(one.companies()).toEqual(same.companies());
    expect(ids(one)).not.toEqual(ids(other));
  });
});

describe("the wire", () => {
  it("tells the time of its own clock", async () => {
    await using sandbox = await startSandbox({ now: NOW });
    const now = await get(sandbox, PEOPLE);
    expect(Math.abs(Date.parse(now.header("date") ?? "") - Date.parse(NOW))).toBeLessThan(5000);
    sandbox.advance(86_400_000);
    const later = await get(sandbox, PEOPLE);
    expect(later.header("date")).toContain("16 Mar 2026");
  });

  it("streams NDJSON in chunks, and compresses for those who ask", async () => {
    await using sandbox = await startSandbox({ people: 300 });
    const plain = await rawGet(sandbox, STREAM);
    expect(plain.head).toContain("content-type: application/x-ndjson");
    expect(plain.head).toContain("transfer-encoding: chunked");
    expect(plain.head).not.toContain("content-encoding");
    for (const path of [STREAM, PEOPLE]) {
      const answer = await fetch(`${sandbox.url}${path}`, {
        headers: { "x-api-key": sandbox.key, "accept-encoding": "gzip" },
      });
      expect(answer.headers.get("content-encoding")).toBe("gzip");
    }
    const refused = await rawGet(sandbox, STREAM, { "accept-encoding": "gzip;q=0" });
    expect(refused.head).not.toContain("content-encoding");
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
    expect(
      sandbox.requests.map(({ method, path, status, headersKey }) => ({ method, path, status, headersKey })),
    ).toEqual([
      { method: "GET", path: PEOPLE, status: 200, headersKey: true },
      { method: "GET", path: "/nowhere", status: 404, headersKey: true },
    ]);
    expect(sandbox.requests[0]?.query).toMatchObject({ limit: "1" });
    expect(JSON.stringify(sandbox.requests)).not.toContain(sandbox.key);
  });

  it("serves under a path of its own", async () => {
    await using sandbox = await startSandbox({ people: 3, basePath: "/crm" });
    expect(sandbox.url.endsWith("/crm")).toBe(true);
    expect(await stream(sandbox)).toHaveLength(6);
    expect((await fetch(`http://127.0.0.1:${sandbox.port}${PEOPLE}`)).status).toBe(404);
  });
});
