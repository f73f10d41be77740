import { describe, expect, it } from "vitest";
import { type CatalogStream, errorsOf } from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";

async function discover(config: string): Promise<readonly CatalogStream[]> {
  const { code, stderr, messages } = await connector(["discover", "--config", config]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(messages.map(({ type }) => type)).toEqual(["CATALOG"]);
  return messages[0]?.catalog?.streams ?? [];
}

/** A stream as a person reads it: a line for each part, and for each field. */
function shown({ json_schema: schema, ...stream }: CatalogStream): string {
  const { properties = {}, ...rest } = schema;
  const lines = (value: object): string[] =>
    Object.entries(value).map(([name, part]) => `  ${name}: ${JSON.stringify(part)}\n`);
  return [
    ...lines(stream),
    ...lines(rest),
    "  fields\n",
    ...lines(properties).map((line) => `  ${line}`),
  ].join("");
}

describe("discover", () => {
  it("learns the fields of companies and sources from live records", async () => {
    const { sandbox, config } = await sandboxWith({ people: 20, seed: 3 });
    const streams = await discover(config);
    await expect(streams.map(shown).join("\n")).toMatchFileSnapshot("../golden/catalog.txt");
    const fields = (name: string): string[] =>
      Object.keys(streams.find((stream) => stream.name === name)?.json_schema.properties ?? {}).sort();
    const live = (records: readonly object[]): string[] =>
      [...new Set(records.flatMap((record) => Object.keys(record)))].sort();
    expect(fields("companies")).toEqual(live(sandbox.companies()));
    expect(fields("sources")).toEqual(live(sandbox.sources()));
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

  it.each([
    ["has a wrong setting", () => sandboxWith({}, { num_workers: 0 }).then(({ config }) => config)],
    ["is no JSON", () => file("config.txt", "no")],
  ])("fails with a trace for a config that %s", async (_what, configFile) => {
    const { code, stderr, messages } = await connector(["discover", "--config", await configFile()]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(errorsOf(messages)).toMatchObject([{ failure_type: "config_error" }]);
  });
});
