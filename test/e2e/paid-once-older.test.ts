import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { countingStage } from "../support/job-stage.ts";

it("a look-up that version 0.1.0 bought by the spelling of a later entry is not bought again", async () => {
  const item = createHash("sha256").update("bücher.example").digest().toString("base64url", 0, 12);
  const at = "2026-03-02T10:00:00.000Z";
  const job = { item, step: "submitted", at, job_id: "job_1", not_before: null, tries: 0, resent: 0 };
  const state = { company_lookups: { version: 1, created_at: null, jobs: [job] } };
  const domains = ["xn--bcher-kva.example", "bücher.example", "b.example"];
  const stage = await countingStage("company_lookup", { domains, max_wait_seconds: 0 });
  await stage.runtime.readStream("company_lookups", { state });
  expect(stage.bought).toEqual(["b.example"]);
});
