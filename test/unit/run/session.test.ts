import { describe, expect, it, onTestFinished } from "vitest";
import { incremental } from "../../../src/catalog/airbyte.ts";
import { COMPANIES, PEOPLE, ROW_STREAMS, type RowStreamSpec } from "../../../src/catalog/streams.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { configSpec, type SpecProperty, typeOf } from "../../../src/config/spec.ts";
import { RowReader } from "../../../src/run/row-reader.ts";
import { Session } from "../../../src/run/session.ts";
import { fastClock } from "../../lab/faultlab/read-once.ts";
import { CONNECTOR, file, run } from "../../support/cli.ts";
import { listOf, serve } from "../../support/serve.ts";
import { KEY } from "../../support/session.ts";

it.each([["check"], ["discover"], ["read", "--stream", "sources"]])(
  "%s leaves no connection open, to either API",
  async (...words) => {
    const [publicApi, externalApi] = await Promise.all(
      ["public", "external"].map(() =>
        serve((_, response) => void response.setHeader("keep-alive", "timeout=60").end(listOf(0))),
      ),
    );
    const config = await file("config.json", {
      base_url: publicApi?.url,
      api_key: KEY,
      external_api: { api_url: externalApi?.url, api_key: KEY },
      company_lookup: { domains: ["a.example"] },
    });
    await run(CONNECTOR, [...words, "--config", config]);
    const sockets = [publicApi, externalApi].flatMap(
      (api) => api?.requests.map(({ socket }) => socket) ?? [],
    );
    expect(sockets).not.toEqual([]);
    // The service would keep them for five seconds, the client for longer.
    await expect
      .poll(() => sockets.every(({ destroyed }) => destroyed), { interval: 20, timeout: 4_000 })
      .toBe(true);
  },
);

/** A service that shows one row of each list, and the session with it. */
async function opened(settings: object = {}, answer?: (path: string, query: URLSearchParams) => unknown) {
  const service = await serve(({ url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://x");
    const body = answer?.(pathname, searchParams) ?? listOf(1, [{ id: "p1", discoveredAt: "2026-01-02" }]);
    if (body === NOT_FOUND) response.statusCode = 404;
    response.end(body === NOT_FOUND ? '{"success":false}' : body);
  });
  const config = parseConfig(
    { base_url: service.url, api_key: KEY, requests_per_minute: 6_000, ...settings },
    {},
  );
  const runtime = { clock: fastClock(), signal: new AbortController().signal, environment: {} };
  const session = new Session(config, { ...runtime, random: () => 0 }, () => undefined);
  onTestFinished(() => session.close());
  return { ...service, session, asked: () => service.requests.map(({ url = "" }) => url) };
}

const NOT_FOUND = "no such path";
const SOURCES = ROW_STREAMS.find(({ name }) => name === "sources") as RowStreamSpec;

describe("RowReader.reading()", () => {
  const DATED = [{ domain: "a.example", discoveredAt: "2026-01-02T00:00:00Z" }];
  const before1970 = (body: string) => (query: URLSearchParams) =>
    query.get("discovered_to") === "1969-12-31" ? body : listOf(1, DATED);
  const AS_ONE = { isDated: false, isListed: true };
  const BY_DAYS = { isDated: true, isListed: true };

  it.each([
    ["people, which are documented", PEOPLE, () => listOf(1), BY_DAYS, 0],
    ["sources, which have no days", SOURCES, () => listOf(1), AS_ONE, 0],
    ["companies without a row", COMPANIES, () => listOf(0), AS_ONE, 1],
    ["companies that carry no date", COMPANIES, () => listOf(1, [{ domain: "a" }]), AS_ONE, 1],
    ["companies whose filters are honoured", COMPANIES, before1970(listOf(0)), BY_DAYS, 2],
    ["companies whose filters are ignored", COMPANIES, () => listOf(1, DATED), AS_ONE, 2],
    ["companies that are shown and counted as none", COMPANIES, before1970(listOf(0, DATED)), AS_ONE, 2],
    ["companies without a list", COMPANIES, () => NOT_FOUND, { isDated: false, isListed: false }, 2],
  ] as const)("of %s", async (_, spec, answer, reading, requests) => {
    const { session, asked } = await opened({ verify_counts: false }, (path, query) =>
      path.endsWith(spec.name) ? answer(query) : listOf(1),
    );
    expect([await new RowReader(spec, session).reading(), asked().length]).toEqual([reading, requests]);
  });
});

/** A value that a setting does not have by itself. */
function otherValue(property: SpecProperty & { examples?: unknown[]; minimum?: number }): unknown {
  const { enum: values, default: usual, examples, properties } = property;
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, otherValue(inner)]));
  if (typeOf(property) === "boolean") return usual !== true;
  if (typeOf(property) === "integer") return Number(usual ?? property.minimum) + 1;
  return values?.find((value) => value !== usual) ?? examples?.[0] ?? `${usual ?? "https://x.example"}/x`;
}

it("a state is refused under every other setting that asks for other people", async () => {
  const usual = { hash_salt: "salt", external_api: { api_url: "https://x.example", api_key: KEY } };
  const read = async (settings: object, saved?: unknown) => {
    const { session, asked } = await opened({ ...usual, ...settings }, (path) =>
      path.endsWith("/stream") ? "" : listOf(0),
    );
    let state = {};
    const people = { configured: incremental("people") };
    for await (const event of new RowReader(PEOPLE, session).read(people, { schema: null }, saved))
      if (event.kind === "checkpoint") state = { ...event.state, service: null };
    const queries = asked().filter((path) => path.startsWith(PEOPLE.listPath));
    return { state, queries: queries.sort().join() };
  };
  const { state, queries } = await read({});
  const { base_url: _, api_key: __, ...settings } = configSpec().properties ?? {};
  const keeping: string[] = [];
  for (const [name, property] of Object.entries(settings)) {
    const value = name === "suppress_file" ? await file("x.txt", "x@a.example") : otherValue(property);
    if ((await read({ [name]: value })).queries === queries) continue;
    const refusal = await read({ [name]: value }, state).catch(String);
    if (!String(refusal).includes("Cannot use the state")) keeping.push(name);
  }
  // A state names its days, so that these may differ.
  expect(keeping).toEqual(["start_date", "end_date", "ignore_missing_days"]);
});
