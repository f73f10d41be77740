import { expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../../../sandbox/server.ts";

const PEOPLE = "/api/v1/public/people";
const STREAM = "/api/v1/public/people/stream";
const SOURCES = "/api/v1/public/sources";

const get = (sandbox: Sandbox, path: string): Promise<Response> =>
  fetch(`${sandbox.url}${path}`, { headers: { "x-api-key": sandbox.key } });

async function answered(sandbox: Sandbox, path: string): Promise<string> {
  const got = await get(sandbox, path);
  const text = await got.text();
  return got.status === 200 ? "200" : `${got.status} ${JSON.parse(text).error.code}`;
}

const MALFORMED = [
  ..."page=0 page=1.5 page=x limit=0 limit=1001 limit= skip_count=yes is_user=TRUE".split(" "),
  ..."discovered_days=0 discovered_days=367 discovered_from=2026-02-30 discovered_from=2026-1-1".split(" "),
  ...["discovered_to=2026-01-01T00:00:00Z", "discovered_days=2&discovered_from=2026-01-01"],
];
const ENDS = "limit=1000 limit=1 discovered_days=1 discovered_days=366 page=999 is_user=all".split(" ");

it("the sandbox refuses parameters that are malformed or out of range", async () => {
  await using sandbox = await startSandbox();
  const asked = async (query: string) => [query, await answered(sandbox, `${PEOPLE}?${query}`)];
  for (const query of MALFORMED) expect(await asked(query)).toEqual([query, "400 INVALID_PARAMETER"]);
  for (const query of ENDS) expect(await asked(query)).toEqual([query, "200"]);
  expect(await answered(sandbox, `${STREAM}?discovered_from=2026-02-30`)).toBe("400 INVALID_PARAMETER");
});

it("the sandbox limits requests over a sliding minute, and an export counts once", async () => {
  await using sandbox = await startSandbox({ people: 50, requestsPerMinute: 3 });
  expect(await answered(sandbox, STREAM)).toBe("200");
  sandbox.advance(30_000);
  expect(await answered(sandbox, PEOPLE)).toBe("200");
  expect(await answered(sandbox, SOURCES)).toBe("200");
  const refused = await get(sandbox, PEOPLE);
  expect(refused.status).toBe(429);
  expect(await refused.json()).toMatchObject({ error: { code: "RATE_LIMIT_EXCEEDED" } });
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(25);
  expect(seconds).toBeLessThanOrEqual(30);
  sandbox.advance(seconds * 1000);
  expect(await answered(sandbox, PEOPLE)).toBe("200");
  expect(await answered(sandbox, PEOPLE)).toBe("429 RATE_LIMIT_EXCEEDED");
});
