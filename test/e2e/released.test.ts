import { readFile } from "node:fs/promises";
import { Ajv } from "ajv";
import { expect, it } from "vitest";
import { catalogBreaks, specBreaks } from "../support/airbyte-rules.ts";
import { CONNECTOR, run } from "../support/cli.ts";
import { sandboxWith } from "../support/configs.ts";
import { ROOT } from "../support/run.ts";

// test/released holds the last released forms. A config or a connection that was made with them may never break.

const released = async (name: string) =>
  JSON.parse(await readFile(`${ROOT}test/released/${name}.json`, "utf8"));

it("CS18: a config of the released version is still valid: no setting is gone, narrower or newly required", async () => {
  const before = (await released("spec")).connectionSpecification;
  const { stdout } = await run(CONNECTOR, ["spec"]);
  const now = JSON.parse(stdout).spec.connectionSpecification;
  expect(specBreaks(before, now)).toEqual([]);
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(now);
  const config = {
    ...{ base_url: "https://contacts.example.com", api_key: "k", start_date: "2026-01-02", is_user: "all" },
    ...{ num_workers: 8, max_window_rows: 1_000, ignore_missing_days: ["2026-01-02"], endpoints: {} },
    external_api: { api_url: "https://external.example.com", api_key: "k" },
    company_lookup: { domains: ["a.example"], from_companies: false, max_wait_seconds: null },
  };
  expect([isValid(config), isValid.errors]).toEqual([true, null]);
});

it("CD9: a connection of the released version still has its streams, fields, types, keys and cursors", async () => {
  const { config } = await sandboxWith({ people: 20, requestsPerMinute: 0 });
  const { stdout } = await run(CONNECTOR, ["discover", "--config", config]);
  const now = JSON.parse(stdout).catalog;
  const before = await released("catalog");
  expect(before.streams.length).toBeGreaterThan(2);
  expect(catalogBreaks(before, now)).toEqual([]);
});
