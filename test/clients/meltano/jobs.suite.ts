import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Sandbox } from "../../../sandbox/server.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { shareProject } from "./project.ts";

const TAP = "tap-contact-intelligence";
const ITEMS = ["1.example", "2.example", "a@x.example"];

const shared = shareProject({ people: 20, companies: 5, requestsPerMinute: 0 });

const environment = async ({ url, key }: Sandbox): Promise<Readonly<Record<string, string>>> => ({
  TAP_CONTACT_INTELLIGENCE_EXTERNAL_API_API_URL: url,
  TAP_CONTACT_INTELLIGENCE_EXTERNAL_API_API_KEY: key,
  TAP_CONTACT_INTELLIGENCE_COMPANY_LOOKUP_DOMAINS: '["1.example", "2.example"]',
  TAP_CONTACT_INTELLIGENCE_EMAIL_VERIFICATION_EMAILS: '["a@x.example"]',
  TAP_CONTACT_INTELLIGENCE_RECEIPTS_FILE: join(await tempDir(), "receipts.jsonl"),
});

const bought = (): readonly string[] => shared.sandbox.submissions.map(({ item }) => item).toSorted();
const domainsIn = (lines: readonly string[]): readonly unknown[] =>
  lines.map((line) => (JSON.parse(line) as { domain: unknown }).domain).toSorted();

describe("Meltano, with look-ups and verifications", { timeout: 600_000 }, () => {
  it("buys nothing twice with --full-refresh, and loads again what was bought", async () => {
    await using mine = await shared.project.copy(shared.sandbox, await environment(shared.sandbox));
    for (const stream of ["company_lookups", "company_lookup_contacts", "email_verifications", "sources"])
      expect(await mine.meltano(["select", TAP, stream, "*"])).toMatchObject({ code: 0 });
    await mine.sync("target-jsonl");
    expect(bought()).toEqual(ITEMS);
    expect(domainsIn(await mine.lines("company_lookups.jsonl"))).toEqual(["1.example", "2.example"]);

    const refreshed = await mine.meltano(["run", "--full-refresh", TAP, "target-jsonl"]);
    expect(refreshed.code, refreshed.stderr).toBe(0);
    expect(bought()).toEqual(ITEMS);
    const twice = ["1.example", "1.example", "2.example", "2.example"];
    expect(domainsIn(await mine.lines("company_lookups.jsonl"))).toEqual(twice);
    expect(await mine.lines("email_verifications.jsonl")).toHaveLength(2);

    await mine.sync("target-jsonl");
    expect(bought()).toEqual(ITEMS);
    expect(domainsIn(await mine.lines("company_lookups.jsonl"))).toEqual(twice);

    const more = { TAP_CONTACT_INTELLIGENCE_COMPANY_LOOKUP_DOMAINS: '["3.example", "2.example"]' };
    const third = await mine.meltano(["run", "--full-refresh", TAP, "target-jsonl"], more);
    expect(third.code, third.stderr).toBe(0);
    expect(bought()).toEqual([...ITEMS, "3.example"].toSorted());
  });
});
