import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../../sandbox/server.ts";
import { CONNECTOR, file, run, TAP } from "../support/cli.ts";
import { CountingService } from "../support/counting-service.ts";
import { hurriedClock } from "../support/in-process.ts";
import { airbyteCatalogOf, tapCatalogOf } from "../support/job-catalogs.ts";
import { digestsOf, lookedUpState, verifiedState } from "../support/job-states.ts";
import { tempDir } from "../support/temp-dir.ts";

/** What all STATE lines of a run may take together, beside 20 times the last one. */
const BESIDES = 8 * 1024 * 1024;
const names = (count: number, name: string): readonly string[] =>
  Array.from({ length: count }, (_, nth) => `${name}${nth}`);

type Case = {
  readonly name: string;
  readonly streams: readonly string[];
  readonly jobs: object;
  /** The bookmarks that a run is given. */
  readonly states: Readonly<Record<string, object>>;
  readonly bought: number;
};

const EMAILS = names(1_000, "e").map((name) => `${name}@x.example`);
const doneEmails = digestsOf(names(10_000, "done"));
const doneDomains = digestsOf(names(20_000, "done"));
const CASES: readonly Case[] = [
  {
    name: "1,000 new verifications beside 10,000 finished ones",
    streams: ["email_verifications"],
    jobs: { email_verification: { emails: EMAILS } },
    states: { email_verifications: verifiedState(doneEmails) },
    bought: 1_000,
  },
  {
    name: "100 new look-ups beside 10,000 finished ones, for two streams",
    streams: ["company_lookups", "company_lookup_contacts"],
    jobs: {
      company_lookup: {
        domains: names(100, "d").map((name) => `${name}.example`),
        ...{ max_wait_seconds: 80_000, max_lookups_per_sync: 1_000, max_credits_per_sync: 10_000 },
      },
    },
    states: {
      company_lookups: lookedUpState(doneEmails),
      company_lookup_contacts: lookedUpState(doneEmails),
    },
    bought: 100,
  },
  {
    name: "200 new verifications beside 20,000 finished look-ups",
    streams: ["company_lookups", "email_verifications"],
    jobs: {
      company_lookup: { domains: ["done0.example"] },
      email_verification: { emails: EMAILS.slice(0, 200) },
    },
    states: {
      company_lookups: lookedUpState([...doneDomains, ...digestsOf(["done0.example"])]),
      email_verifications: verifiedState([]),
    },
    bought: 200,
  },
];

describe("all STATE of a run that reads people in many windows", { timeout: 120_000 }, () => {
  it("is at most 20 times the last one and 8 MiB in Singer, where each holds the jobs, and the last says all", async () => {
    await using sandbox = await startSandbox({ people: 60_000, requestsPerMinute: 0 });
    const { url } = sandbox;
    const config = await file("config.json", {
      base_url: url,
      api_key: sandbox.key,
      requests_per_minute: 6000,
      max_window_rows: 1_000,
      receipts_file: "",
      external_api: { api_url: url, api_key: sandbox.key },
      email_verification: { emails: ["new@x.example"] },
    });
    const state = { bookmarks: { email_verifications: verifiedState(digestsOf(names(40_000, "done"))) } };
    const streams = ["people", "email_verifications"];
    const words = ["--config", config, "--catalog", await file("catalog.json", tapCatalogOf(streams))];
    const { code, stdout } = await run(TAP, [...words, "--state", await file("state.json", state)], {});
    expect(code).toBe(0);
    const lines = stdout.split("\n").filter((line) => line !== "");
    const states = lines.filter((line) => line.startsWith('{"type":"STATE"'));
    const last = JSON.parse(lines.at(-1) ?? "");
    expect(last.value.bookmarks.people.undated).toMatchObject({ rows: expect.any(Number) });
    const ofPeople = states.filter(
      (line) => JSON.parse(line).value.bookmarks.email_verifications.jobs.length === 0,
    );
    expect(ofPeople.length).toBeGreaterThan(5);
    const all = states.reduce((sum, line) => sum + line.length, 0);
    expect(all).toBeLessThanOrEqual(20 * (states.at(-1)?.length ?? 0) + BESIDES);
  });
});

describe.each(["airbyte", "singer"])("all STATE of one run, %s", { timeout: 120_000 }, (language) => {
  it.each(CASES)(
    "is at most 20 times the last one and 8 MiB: $name",
    async ({ streams, jobs, states, bought }) => {
      await using service = await CountingService.start();
      const { url } = service;
      const config = await file("config.json", {
        base_url: url,
        api_key: "k",
        requests_per_minute: 6000,
        receipts_file: join(await tempDir(), "receipts.jsonl"),
        external_api: { api_url: url, api_key: "k" },
        ...jobs,
      });
      const isTap = language === "singer";
      const catalog = isTap ? tapCatalogOf(streams) : airbyteCatalogOf(streams);
      const args = ["--config", config, "--catalog", await file("catalog.json", catalog)];
      const state = await file("state.json", { bookmarks: states });
      const words = [...(isTap ? [] : ["read"]), ...args, "--state", state];
      const { code, stdout } = await run(isTap ? TAP : CONNECTOR, words, { clock: hurriedClock() });
      expect(code).toBe(0);
      expect(service.orders.length).toBe(bought);
      expect(service.orderedTwice).toEqual([]);
      const sizes = stdout
        .split("\n")
        .flatMap((line) => (line.startsWith('{"type":"STATE"') ? [line.length] : []));
      // In Airbyte each stream has its own state.
      const last = isTap ? (sizes.at(-1) ?? 0) : JSON.stringify(states).length;
      const all = sizes.reduce((sum, size) => sum + size, 0);
      expect(all).toBeLessThanOrEqual(20 * last + BESIDES);
    },
  );
});
