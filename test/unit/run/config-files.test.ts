import { describe, expect, it } from "vitest";
import { openConfig, readConfigs } from "../../../src/run/config-files.ts";
import { file } from "../../support/cli.ts";

const account = { base_url: "https://contacts.example.com", api_key: "svc_key" };

async function openConfigs(names: readonly string[], environment: Record<string, string>) {
  return (await readConfigs(names, environment))();
}

describe("openConfig()", () => {
  it("names the file, or the environment, in what is wrong and in where settings come from", async () => {
    const good = await file("good.json", account);
    expect((await openConfig(good, {})).origins.get("api_key")).toBe(`the config file "${good}"`);
    await expect(openConfig(undefined, {})).rejects.toThrow(
      "Cannot use the environment (no file is named with --config, and there is no config.json here): base_url is missing",
    );
  });
});

describe("readConfigs()", () => {
  it("lets a later file win, property by property", async () => {
    const first = await file("a.json", { ...account, external_api: { api_url: "https://x", api_key: "a" } });
    const second = await file("b.json", { num_workers: 4, external_api: { api_key: "b" } });
    const config = await openConfigs([first, second], {});
    expect(config).toMatchObject({ numWorkers: 4, externalApi: { apiKey: "b" } });
    expect(config.externalApi?.apiUrl.host).toBe("x");
    expect(config.origins.get("num_workers")).toBe(`the config files "${first}", "${second}"`);
  });

  it("blames a wrong value on its line in the file, or on its variable", async () => {
    const settings = { ...account, external_api: { api_url: "https://x", api_key: "k" }, num_workers: 99 };
    const name = await file("lines.json", JSON.stringify(settings, null, 2));
    const variables = {
      CONTACT_INTELLIGENCE_START_DATE: "tomorrow",
      CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL: "x",
    };
    await expect(openConfig(name, variables)).rejects.toThrow(
      `Cannot use the config file "${name}": num_workers must be at most 8, not 99 (line 8). ` +
        "Cannot use the environment variable CONTACT_INTELLIGENCE_START_DATE: start_date must be a date",
    );
    await expect(openConfig(name, variables)).rejects.toThrow(
      /Cannot use the environment variable CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL: external_api.api_url must/,
    );
    await expect(openConfigs([name], {})).rejects.toThrow("not 99 (line 8)");
    // Of several files nobody knows which has the line.
    await expect(openConfigs([name, name], {})).rejects.toThrow(/not 99(?! \(line)/);
  });
});
