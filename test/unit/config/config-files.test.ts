import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { openConfig, readConfigs } from "../../../src/config/config-files.ts";
import { file } from "../../support/cli.ts";

const account = { base_url: "https://contacts.example.com", api_key: "svc_key" };

async function openConfigs(names: readonly string[], environment: Record<string, string>) {
  return (await readConfigs(names, environment))();
}

describe("a relative path", () => {
  const settings = {
    ...account,
    receipts_file: "receipts.jsonl",
    email_check: { emails: ["a@b.example"], emails_file: "../emails.csv" },
  };

  it("begins in the folder of a config file; of a variable and for the tap, in the working folder", async () => {
    const name = await file("paths.json", settings);
    const folder = dirname(name);
    const config = await openConfig(name, {});
    expect(config.receiptsFile).toBe(join(folder, "receipts.jsonl"));
    expect(config.emailCheck?.emailsFile).toBe(join(dirname(folder), "emails.csv"));
    const variables = { CONTACT_INTELLIGENCE_RECEIPTS_FILE: "mine.jsonl" };
    expect((await openConfig(name, variables)).receiptsFile).toBe(resolve("mine.jsonl"));
    const tap = await openConfigs([name], { CONTACT_INTELLIGENCE_RECEIPTS_FILE: "/mine.jsonl" });
    expect(tap.emailCheck?.emailsFile).toBe(resolve("../emails.csv"));
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
    const wrong = openConfig(name, variables);
    await expect(wrong).rejects.toThrow(
      `Cannot use the config file "${name}": CONTACT_INTELLIGENCE_EXTERNAL_API__API_URL is "x": it must be https`,
    );
    await expect(wrong).rejects.toThrow(
      "; num_workers is 99: it must be a whole number from 1 to 8 (line 8)",
    );
    await expect(wrong).rejects.toThrow('; CONTACT_INTELLIGENCE_START_DATE is "tomorrow": it must be');
    await expect(openConfigs([name], {})).rejects.toThrow("from 1 to 8 (line 8)");
    // Any of several files may have the line.
    await expect(openConfigs([name, name], {})).rejects.toThrow(/from 1 to 8(?! \(line)/);
  });
});
