import { setTimeout } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";
import {
  COMPANIES,
  codeOf,
  get,
  linesOf,
  list,
  PEOPLE,
  rawGet,
  SOURCES,
  STREAM,
  stream,
  totalOf,
} from "./http.ts";

const NOW = "2026-03-15T10:00:00.000Z";

const PERSON_FIELDS = [
  ..."id firstName lastName email jobTitle seniority department jobFunction company companyDomain".split(" "),
  ..."companySize industry location country linkedinUrl sources discoveredAt".split(" "),
];

async function answered(sandbox: Sandbox, path: string, headers?: Record<string, string>): Promise<string> {
  const got = await get(sandbox, path, headers);
  return got.status === 200 ? "200" : `${got.status} ${codeOf(got)}`;
}

describe("authentication", () => {
  it("takes the key in either header", async () => {
    await using sandbox = await startSandbox({ people: 2 });
    const path = `${sandbox.url}${PEOPLE}`;
    expect((await fetch(path, { headers: { "x-api-key": sandbox.key } })).status).toBe(200);
    expect((await fetch(path, { headers: { authorization: `Bearer ${sandbox.key}` } })).status).toBe(200);
  });

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

  it("refuses a source that exists but is not the organization's", async () => {
    await using sandbox = await startSandbox({ allowedSources: ["signaldesk"] });
    expect(sandbox.sources().map(({ slug }) => slug)).toEqual(["signaldesk"]);
    expect(await answered(sandbox, `${STREAM}?source=harborline-crm`)).toBe("403 SOURCE_NOT_ALLOWED");
    expect(await answered(sandbox, `${STREAM}?source=signaldesk`)).toBe("200");
    expect(new Set(sandbox.people().flatMap(({ sources }) => sources))).toEqual(new Set(["signaldesk"]));
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

  it("ignores page, limit and skip_count in a stream, even malformed ones", async () => {
    await using sandbox = await startSandbox({ people: 20 });
    expect(await stream(sandbox, "?page=x&limit=5&skip_count=nope")).toHaveLength(23);
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

  it("leaves the totals out on skip_count", async () => {
    await using sandbox = await startSandbox({ people: 5 });
    for (const value of ["1", "true"]) {
      const { pagination, data } = await list(sandbox, `?skip_count=${value}`);
      expect(pagination).toEqual({ page: 1, limit: 100, total: null, totalPages: null });
      expect(data).toHaveLength(8);
    }
  });

  it("serves no larger pages than its cap", async () => {
    await using sandbox = await startSandbox({ people: 30, undated: 0, pageCap: 10 });
    const { pagination, data } = await list(sandbox, "?limit=1000&page=2");
    expect(pagination).toEqual({ page: 2, limit: 10, total: 30, totalPages: 3 });
    expect(data).toEqual(sandbox.people().slice(10, 20));
  });

  it("lists sources and companies in the same shape", async () => {
    await using sandbox = await startSandbox({ companies: 12, sources: 9 });
    expect((await list(sandbox, "?limit=5", SOURCES)).pagination.totalPages).toBe(2);
    expect((await list(sandbox, "", SOURCES)).data).toEqual(sandbox.sources());
    expect((await list(sandbox, "", COMPANIES)).data).toEqual(sandbox.companies());
    expect(new Set(sandbox.sources().map(({ slug }) => slug)).size).toBe(9);
  });

  it("has no company list when told so, but still the stream", async () => {
    await using sandbox = await startSandbox({ companyList: false, companies: 12 });
    expect(await answered(sandbox, COMPANIES)).toBe("404 NOT_FOUND");
    expect(await stream(sandbox, "", `${COMPANIES}/stream`)).toHaveLength(12);
  });
});

describe("records", () => {
  it("has exactly the fields of the interface, with nulls and text of every kind", async () => {
    await using sandbox = await startSandbox({ people: 2000 });
    const people = sandbox.people();
    for (const person of people) expect(Object.keys(person)).toEqual(PERSON_FIELDS);
    const nullable = ["id", "sources"];
    const nulls = PERSON_FIELDS.filter((field) => people.some((person) => Object(person)[field] === null));
    expect(nulls).toEqual(PERSON_FIELDS.filter((field) => !nullable.includes(field)));
    const text = JSON.stringify(people);
    for (const sample of ["\u2028", "\u2029", "\u0085", "🚀", "営業", "é", "Łukasz"])
      expect(text).toContain(sample);
    expect(people.every(({ id }) => /^per_[0-9a-f]{16}$/.test(id))).toBe(true);
    expect(people.some(({ sources }) => sources.length === 0)).toBe(true);
    expect(people.some(({ sources }) => sources.length > 1)).toBe(true);
  });

  it("joins people to companies by domain", async () => {
    await using sandbox = await startSandbox({ companies: 200 });
    const companies = new Map(sandbox.companies().map((company) => [company.domain, company]));
    expect(companies.size).toBe(200);
    for (const { companyDomain, company, companySize } of sandbox.people()) {
      if (companyDomain === null) continue;
      expect(companies.get(companyDomain)?.name).toBe(company);
      expect(Math.floor(companies.get(companyDomain)?.employeeCount ?? 0)).toBe(companySize ?? 0);
    }
    const counts = [...companies.values()].map(({ employeeCount }) => employeeCount);
    expect(counts.some((count) => count !== null && !Number.isInteger(count))).toBe(true);
  });

  it("depends on the seed and nothing else", async () => {
    await using one = await startSandbox({ now: NOW, seed: 5 });
    await using same = await startSandbox({ now: NOW, seed: 5 });
    await using other = await startSandbox({ now: NOW, seed: 6 });
    const ids = (sandbox: Sandbox): string[] => sandbox.people().map(({ id }) => id);
    expect(one.people()).toEqual(same.people());
    expect(one.companies()).toEqual(same.companies());
    expect(ids(one)).not.toEqual(ids(other));
  });

  it("can leave the date out of companies, and then ignores the date filters", async () => {
    await using sandbox = await startSandbox({ companiesDated: false, companies: 8 });
    expect(sandbox.companies().some((company) => "discoveredAt" in company)).toBe(false);
    expect(await totalOf(sandbox, "&discovered_to=1970-01-01", COMPANIES)).toBe(8);
    await using dated = await startSandbox({ companies: 8 });
    expect(await totalOf(dated, "&discovered_to=1970-01-01", COMPANIES)).toBe(0);
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

  it("compresses to the same bytes", async () => {
    await using sandbox = await startSandbox({ people: 300, now: NOW });
    const { request } = await import("undici");
    const zipped = await request(`${sandbox.url}${STREAM}`, {
      headers: { "x-api-key": sandbox.key, "accept-encoding": "gzip" },
    });
    const bytes = gunzipSync(Buffer.from(await zipped.body.arrayBuffer()));
    expect(bytes.toString()).toBe((await get(sandbox, STREAM)).text);
    expect(linesOf(bytes.toString()).map((line): unknown => JSON.parse(line))).toEqual(sandbox.people());
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

  it("spends nothing of the limit on requests with a wrong key", async () => {
    await using sandbox = await startSandbox({ requestsPerMinute: 1 });
    expect(await answered(sandbox, PEOPLE, { "x-api-key": "x" })).toBe("401 INVALID_API_KEY");
    expect(await answered(sandbox, PEOPLE)).toBe("200");
  });

  it("waits before it does anything, when told so", async () => {
    await using sandbox = await startSandbox({ people: 0, undated: 0, latencyMs: 60 });
    const answer = get(sandbox, PEOPLE);
    while (sandbox.requests.length === 0) await setTimeout(1);
    sandbox.arrive(2);
    expect(JSON.parse((await answer).text).pagination.total).toBe(2);
  });

  it("sends no more at once than its speed allows", async () => {
    await using sandbox = await startSandbox({ people: 40, bytesPerSecond: 40_000 });
    const { body } = await rawGet(sandbox, STREAM);
    const first = Number.parseInt(body.subarray(0, body.indexOf("\r\n")).toString("latin1"), 16);
    expect(first).toBe(40_000 / 20);
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

  it("refuses to start with a key of another form or a date that is none", async () => {
    await expect(startSandbox({ key: "secret" })).rejects.toThrow("svc_{8 hex}_{32 hex}");
    await expect(startSandbox({ now: "yesterday" })).rejects.toThrow('"yesterday" is not a date-time');
  });
});
