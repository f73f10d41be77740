import { describe, expect, it } from "vitest";
import { type CatalogStream, errorsOf } from "../support/airbyte-messages.ts";
import { CATALOG_RULES } from "../support/catalog-rules.ts";
import { connector, file } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";

async function discover(config: string): Promise<readonly CatalogStream[]> {
  const { code, stderr, messages } = await connector(["discover", "--config", config]);
  expect({ code, stderr, types: messages.map(({ type }) => type) }).toEqual({
    code: 0,
    stderr: "",
    types: ["CATALOG"],
  });
  return messages[0]?.catalog?.streams ?? [];
}

describe("discover", () => {
  it("learns the fields of companies and sources from live records", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20, seed: 3 });
    const streams = await discover(config);
    await expect(`${JSON.stringify({ streams }, null, 2)}\n`).toMatchFileSnapshot("../golden/catalog.json");
    const fields = (name: string): string[] =>
      Object.keys(streams.find((stream) => stream.name === name)?.json_schema.properties ?? {}).sort();
    const live = (records: readonly object[]): string[] =>
      [...new Set(records.flatMap((record) => Object.keys(record)))].sort();
    expect(fields("companies")).toEqual(live(sandbox.companies()));
    expect(fields("sources")).toEqual(live(sandbox.sources()));
    for (const { id, broken } of CATALOG_RULES) expect(broken({ streams }), id).toEqual([]);
  });

  it("takes two requests, whatever the number of rows", async () => {
    const { sandbox, config } = await sandboxWith({ people: 5, companies: 2_000, sources: 40 });
    await discover(config);
    expect(sandbox.requests.map(({ path }) => path)).toEqual([
      "/api/v1/public/companies/stream",
      "/api/v1/public/sources",
    ]);
  });

  it("knows no cursor for companies that carry no date", async () => {
    const { config } = await sandboxWith({ people: 5, companiesDated: false });
    const companies = (await discover(config)).find(({ name }) => name === "companies");
    expect(companies?.supported_sync_modes).toEqual(["full_refresh"]);
  });

  it("keeps every stream whatever the plan of the key", async () => {
    const { config } = await sandboxWith({ people: 5, plan: "agency" });
    expect((await discover(config)).map(({ name }) => name)).toEqual(["people", "companies", "sources"]);
  });

  it("fails with a trace for an invalid config", async () => {
    const { config } = await sandboxWith({ people: 5 }, { num_workers: 0 });
    const { code, stderr, messages } = await connector(["discover", "--config", config]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(errorsOf(messages)).toMatchObject([{ failure_type: "config_error" }]);
  });

  it("fails with a trace for a config that is no JSON", async () => {
    const { code, messages } = await connector(["discover", "--config", await file("config.txt", "no")]);
    expect(code).toBe(1);
    expect(errorsOf(messages)).toMatchObject([{ failure_type: "config_error" }]);
  });
});
