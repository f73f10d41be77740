import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { companyLookups } from "../../../src/jobs/company-lookups.ts";
import type { JobType } from "../../../src/jobs/job-type.ts";

const URL = "https://service.example";
const typeWith = (settings: object): JobType => {
  const external = { external_api: { api_url: URL, api_key: "k" } };
  const { companyLookup } = parseConfig(
    { base_url: URL, api_key: "k", ...external, company_lookup: settings },
    {},
  );
  if (companyLookup === null) throw new Error("There are no look-ups");
  return companyLookups(companyLookup);
};
const LOOKUPS = typeWith({ domains: ["a.example"] });

const result = (fields: object) => {
  const reply = LOOKUPS.result(200, { job_id: "1", status: "success", contacts: [], ...fields });
  if (reply?.kind !== "answered") throw new Error("It is no answer");
  return reply.answer;
};

describe("a company look-up", () => {
  it("is asked for by the interface's rules: after 5 seconds, for 5 minutes", () => {
    expect(LOOKUPS.polling).toEqual({ first: 5_000, longest: 300_000, total: 300_000 });
    expect(LOOKUPS.submit.path).toBe("/api/v1/external/company-lookup");
    expect(LOOKUPS.collect.path).toBe("/api/v1/external/company-lookup/{job}/result");
    expect(LOOKUPS.postsAtOnce).toBe(4);
  });

  it("sends the webhook's address if there is one, and nothing else besides the domain", () => {
    expect(LOOKUPS.bodyOf("a.example")).toEqual({ domain: "a.example" });
    const hooked = typeWith({ domains: ["a.example"], webhook_url: "https://hook.example/x" });
    expect(hooked.bodyOf("a.example")).toEqual({
      domain: "a.example",
      webhook_url: "https://hook.example/x",
    });
  });

  it("has the caps of its settings, and none by day or month unless they are set", () => {
    const none = Number.POSITIVE_INFINITY;
    const most = { max_lookups_per_sync: 7, max_credits_per_sync: 8 };
    expect(typeWith({ domains: ["a.example"], ...most }).caps).toEqual({
      submissions: { sync: 7, day: none },
      credits: { sync: 8, day: none, month: none },
    });
    const capped = { ...most, max_credits_per_day: 9, max_credits_per_month: 10 };
    expect(typeWith({ domains: ["a.example"], ...capped }).caps.credits).toEqual({
      ...{ sync: 8, day: 9, month: 10 },
    });
    expect(typeWith({ from_people: true, max_wait_seconds: 60 })).toMatchObject({
      froms: ["people"],
      maxWait: 60_000,
    });
    expect(typeWith({ from_companies: true, from_people: true }).froms).toEqual(["companies", "people"]);
  });

  it.each<[status: number, body: unknown, kind: string | undefined]>([
    [200, { status: "success" }, "answered"],
    [500, { status: "error", error_code: "X" }, "answered"],
    [202, { status: "processing" }, "pending"],
    [202, {}, "pending"],
    [200, { status: "processing" }, "pending"],
    [200, { status: "queued" }, "pending"],
    [200, {}, undefined],
    [500, { status: "queued" }, undefined],
    [500, {}, undefined],
    [200, { status: "success", success: false }, undefined],
    [202, { success: false, error: { code: "X", message: "?" } }, undefined],
    [202, "soon", undefined],
    [202, undefined, undefined],
  ])("that is answered %i with %j is %s", (status, body, kind) => {
    expect(LOOKUPS.result(status, body)?.kind).toBe(kind);
  });

  it("that is pending may name when to ask again", () => {
    const scheduled_processing_time = "2026-03-02T10:00:00Z";
    const pending = { status: "queued", scheduled_processing_time };
    expect(LOOKUPS.result(202, pending)).toEqual({ kind: "pending", notBefore: Date.UTC(2026, 2, 2, 10) });
    expect(LOOKUPS.result(202, { status: "queued" })).toEqual({ kind: "pending", notBefore: null });
  });

  it.each<[fields: object, cost: number]>([
    [{ credits_used: 3 }, 3],
    [{ credits_used: "3" }, 3],
    [{ credits_used: 3, contacts: [{}] }, 3],
    [{ credits_used: 1, contacts: [{}, {}] }, 2],
    [{ contacts: [{}, {}] }, 2],
    [{ credits_used: null, contacts: [{}] }, 1],
    [{ credits_used: "many" }, 0],
    [{ credits_used: [5] }, 0],
    [{ credits_used: -4 }, 0],
    [{ credits_used: 1e12 }, 1_000_000_000],
    [{ contacts: null }, 0],
  ])("that ends with %j has cost %i credits", (fields, cost) => {
    expect(result(fields).cost).toBe(cost);
  });

  it.each<[fields: object, failed: boolean, code: string | null]>([
    [{}, false, null],
    [{ error_code: "X" }, false, null],
    [{ status: "error", error_code: "X" }, true, "X"],
    [{ status: "error" }, true, "error"],
    [{ status: "error", error_code: 5 }, true, "error"],
    [{ status: "error", error_code: "COMPANY_NOT_FOUND" }, false, "COMPANY_NOT_FOUND"],
    [{ status: "error", error_code: "X", credits_used: 1 }, false, "X"],
    [{ status: "error", error_code: "X", contacts: [{}] }, false, "X"],
  ])("that ends with %j may be bought again: %j", (fields, failed, code) => {
    expect(result(fields)).toMatchObject({ failed, code });
  });

  it("is ordered by when it was made", () => {
    expect(result({ created_at: "2026-03-02T11:00:00+01:00" }).cursor).toBe("2026-03-02T10:00:00.000Z");
    expect(result({ created_at: null }).cursor).toBe(null);
  });

  it("gives one record, and one for each contact", () => {
    const contact = {
      name: "A",
      verifications: [
        { source: "crm", isVerified: true },
        { source: "crm", isVerified: true },
        { source: "ads", isVerified: false },
        { source: 5, isVerified: true },
        null,
      ],
    };
    const contacts = [contact, "odd"];
    const answer = result({ job_id: "9", domain: "a.example", created_at: "2026-03-02", contacts });
    const about = { jobId: "1", isRefresh: false, sources: [] };
    const lookup = { domain: "a.example", created_at: "2026-03-02", job_id: "1" };
    expect(LOOKUPS.records("company_lookups", about, answer)).toEqual([
      { status: "success", contacts, ...lookup },
    ]);
    expect(LOOKUPS.records("company_lookup_contacts", about, answer)).toEqual([
      { ...contact, ...lookup, position: 0, verified_sources: ["crm"] },
      { ...lookup, position: 1, verified_sources: [] },
    ]);
    const bare = result({ contacts: null });
    expect(LOOKUPS.records("company_lookup_contacts", about, bare)).toEqual([]);
    const [first] = LOOKUPS.records("company_lookup_contacts", about, result({ contacts: [{}] }));
    expect(first).toMatchObject({ domain: null, created_at: null });
  });
});
