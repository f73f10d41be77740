import { describe, expect, it } from "vitest";
import { runProgram } from "../../src/main.ts";
import { parseTapCommand } from "../../src/tap-cli.ts";
import { type CatalogStream, errorsOf } from "../support/airbyte-messages.ts";
import { connector, file } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { Kept } from "../support/in-process.ts";
import { testProcess } from "../support/terminal.ts";

async function discover(config: string): Promise<readonly CatalogStream[]> {
  const { code, stderr, messages } = await connector(["discover", "--config", config]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(messages.map(({ type }) => type)).toEqual(["CATALOG"]);
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

it("a sync without a catalog that is interrupted while it asks for rows says nothing of their fields", async () => {
  const { sandbox, config } = await sandboxWith({
    ...{ people: 5, companies: 2, sources: 1, requestsPerMinute: 0 },
    faults: ["stall-headers:skip=3:times=always"],
  });
  const stop = new AbortController();
  const [stdout, stderr] = [new Kept(), new Kept()];
  const runtime = testProcess({ stdout, stderr, signal: stop.signal });
  const ended = runProgram(async () => parseTapCommand, ["--config", config], runtime);
  await expect.poll(() => sandbox.requests.length, { timeout: 20_000, interval: 5 }).toBe(4);
  stop.abort(new Error("Interrupted by SIGTERM"));
  await expect(ended).rejects.toThrow("Interrupted by SIGTERM");
  expect([stdout.text, stderr.text]).toEqual(["", expect.stringContaining("Interrupted by SIGTERM: ")]);
  expect(stderr.text).not.toContain("has only the declared fields");
});
