import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONNECTOR, file, run } from "../support/cli.ts";
import { CountingService, envelope } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { jobConfig } from "../support/job-stage.ts";
import { tempDir } from "../support/temp-dir.ts";

describe("--summary", { timeout: 60_000 }, () => {
  it("says what each stream of jobs bought, in each sync, also when it failed", async () => {
    await using service = await CountingService.start();
    const folder = await tempDir();
    const summary = join(folder, "summary.json");
    const settings = {
      receipts_file: join(folder, "receipts.jsonl"),
      company_lookup: { domains: ["a.example", "b.example", "lost.example"] },
      email_verification: { emails: ["a@x.example", "b@x.example"] },
    };
    const config = await file("config.json", jobConfig(service, settings));
    const streams = ["company_lookups", "company_lookup_contacts", "email_verifications"];
    const spent = async (): Promise<unknown> => {
      const named = streams.flatMap((name) => ["--stream", name]);
      const args = ["read", "--config", config, ...named, "--state-file", join(folder, "state.json")];
      await run(CONNECTOR, [...args, "--summary", summary], { clock: hurriedClock() });
      const said = JSON.parse(await readFile(summary, "utf8"));
      return said.streams.map((one: Record<string, unknown>) => [
        one["stream"],
        one["outcome"],
        one["spent"],
      ]);
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
