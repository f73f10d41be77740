import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CATALOG_RULES } from "../support/catalog-rules.ts";
import { connector, file } from "../support/cli.ts";
import { configFor } from "../support/configs.ts";

type Catalog = { streams: { name: string; json_schema: { properties: Record<string, object> } }[] };

async function discover(config: string): Promise<Catalog> {
  const { code, stderr, messages } = await connector(["discover", "--config", config]);
  expect({ code, stderr, types: messages.map(({ type }) => type) }).toEqual({
    code: 0,
    stderr: "",
    types: ["CATALOG"],
  });
  return (messages[0] as unknown as { catalog: Catalog }).catalog;
}

describe("discover", () => {
  it("learns the fields of companies and sources from live records", async () => {
    await using sandbox = await startSandbox({ people: 20, seed: 3 });
    const catalog = await discover(await configFor(sandbox));
    await expect(`${JSON.stringify(catalog, null, 2)}\n`).toMatchFileSnapshot("../golden/catalog.json");
    const fields = (name: string): string[] => {
      const stream = catalog.streams.find((candidate) => candidate.name === name);
      return Object.keys(stream?.json_schema.properties ?? {}).sort();
    };
    const live = (records: readonly object[]): string[] =>
      [...new Set(records.flatMap((record) => Object.keys(record)))].sort();
    expect(fields("companies")).toEqual(live(sandbox.companies()));
    expect(fields("sources")).toEqual(live(sandbox.sources()));
    for (const { id, broken } of CATALOG_RULES) expect(broken(catalog), id).toEqual([]);
  });

  it("takes two requests, whatever the number of rows", async () => {
    await using sandbox = await startSandbox({ people: 5, companies: 2_000, sources: 40 });
    await discover(await configFor(sandbox));
    expect(sandbox.requests.map(({ path }) => path)).toEqual([
      "/api/v1/public/companies/stream",
      "/api/v1/public/sources",
    ]);
  });

  it("knows no cursor for companies that carry no date", async () => {
    await using sandbox = await startSandbox({ people: 5, companiesDated: false });
    const catalog = await discover(await configFor(sandbox));
    expect(catalog.streams.find(({ name }) => name === "companies")).toMatchObject({
      supported_sync_modes: ["full_refresh"],
    });
  });

  it("keeps every stream whatever the plan of the key", async () => {
    await using sandbox = await startSandbox({ people: 5, plan: "agency" });
    const catalog = await discover(await configFor(sandbox));
    expect(catalog.streams.map(({ name }) => name)).toEqual(["people", "companies", "sources"]);
  });

  it.each([
    ["an invalid config", { num_workers: 0 }, "config_error"],
    ["a wrong key", { api_key: "svc_00000000_00000000000000000000000000000000" }, "config_error"],
  ])("fails with a trace for %s", async (_what, settings, failureType) => {
    await using sandbox = await startSandbox({ people: 5 });
    const { code, stderr, messages } = await connector([
      "discover",
      "--config",
      await configFor(sandbox, settings),
    ]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(messages.map(({ trace }) => trace?.error?.failure_type)).toEqual([failureType]);
  });

  it("fails with a trace for a config that is no JSON", async () => {
    const { code, messages } = await connector(["discover", "--config", await file("config.txt", "no")]);
    expect(code).toBe(1);
    expect(messages.map(({ trace }) => trace?.error?.failure_type)).toEqual(["config_error"]);
  });
});
