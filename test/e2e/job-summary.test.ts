import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService, envelope } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { tempDir } from "../support/temp-dir.ts";

describe("--summary", { timeout: 60_000 }, () => {
  it("says what each stream of jobs bought, in each sync, also when it failed", async () => {
    await using service = await CountingService.start();
    const { url } = service;
    const folder = await tempDir();
    const summary = join(folder, "summary.json");
    const config = await file("config.json", {
      base_url: url,
      api_key: "k",
      requests_per_minute: 6000,
      receipts_file: join(folder, "receipts.jsonl"),
      external_api: { api_url: url, api_key: "k" },
      company_lookup: { domains: ["a.example", "b.example", "lost.example"] },
      email_verification: { emails: ["a@x.example", "b@x.example"] },
    });
    const streams = ["company_lookups", "company_lookup_contacts", "email_verifications"];
    const spent = async (): Promise<unknown> => {
      const named = streams.flatMap((name) => ["--stream", name]);
      const args = ["read", "--config", config, ...named, "--state-file", join(folder, "state.json")];
      await run(CONNECTOR, [...args, "--summary", summary], { clock: hurriedClock() });
      const { streams: declaredSchema } = JSON.parse(await readFile(summary, "utf8")) as {
        streams: { stream: string; outcome: string; spent: unknown }[];
      };
      return declaredSchema.map(({ stream, outcome, spent: bought }) => [stream, outcome, bought]);
    };
    service.behaviour = {
      losesAnswer: (item) => item === "lost.example",
      price: () => 3,
      result: (_, item) =>
        item === "b.example" ? { status: 202, body: { status: "processing" } } : undefined,
      refuse: (item) => (item === "b@x.example" ? envelope(401, "INVALID_API_KEY") : undefined),
    };
    expect(await spent()).toEqual([
      ["company_lookups", "complete", { submissions: 3, credits: 3 }],
      ["company_lookup_contacts", "complete", { submissions: 0, credits: 0 }],
      ["email_verifications", "incomplete", { submissions: 1, credits: 0 }],
    ]);
    // What an earlier sync submitted is paid for when its answer comes.
    service.behaviour = { price: () => 4 };
    expect(await spent()).toEqual([
      ["company_lookups", "complete", { submissions: 0, credits: 4 }],
      ["company_lookup_contacts", "complete", { submissions: 0, credits: 0 }],
      ["email_verifications", "complete", { submissions: 1, credits: 0 }],
    ]);
    expect(service.orderedTwice).toEqual([]);
  });
});
