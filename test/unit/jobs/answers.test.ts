import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { answered, DAY, JobService } from "../../support/job-service.ts";
import { runs } from "../../support/runs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const ITEM = "a.example";
let receipts = "";
beforeEach(async () => {
  receipts = join(await tempDir(), "receipts.jsonl");
});

const success = (more: object = {}) => ({ domain: ITEM, status: "success", contacts: [], ...more });
const failure = (code: string, more: object = {}) => ({ status: "error", error_code: code, ...more });

/** Credits that the state says were spent. */
const creditsIn = ({ saved }: JobService): number => {
  const { spent = [] } = (saved["company_lookups"] ?? {}) as { spent?: readonly (readonly unknown[])[] };
  return spent.reduce((sum, entry) => sum + Number(entry.at(-1)), 0);
};

/** No price, and not free either. */
const NO_COSTS = [1e12, "1e400", "0x0", -1, [], "five"];
const ODD_FORMS = [
  ...[[{ credits_used: 7 }], { result: { credits_used: 7 } }, { data: [{ credits_used: "7" }] }],
  ...[{ data: { data: { credits_used: 7 } } }, { credits_used: 7, data: { credits_used: 0 } }],
  ...['{"credits_used":7}', '{"status":"success","credits_used": 7,}'],
];
type Case = [what: string, status: number, value: unknown, rows: number, credits: number, again: boolean];

describe("the result of a look-up", () => {
  it.each<Case>([
    ...NO_COSTS.map((credits_used): Case => {
      const value = failure("INTERNAL_ERROR", { credits_used });
      return [`a failure that cost ${credits_used}`, 200, value, 1, 0, false];
    }),
    ["a success", 200, success({ credits_used: 3 }), 1, 3, false],
    ["more contacts than credits", 200, success({ contacts: [{}, {}], credits_used: 1 }), 1, 2, false],
    ["a cost that is a text", 200, success({ credits_used: "4" }), 1, 4, false],
    ["no cost", 200, success(), 1, 0, false],
    ["a cost below zero", 200, success({ contacts: [{}], credits_used: -5 }), 1, 1, false],
    ["a cost without end", 200, success({ contacts: [{}], credits_used: "1e400" }), 1, 1, false],
    ["a cost that is a list", 200, success({ contacts: [{}], credits_used: [] }), 1, 1, false],
    ["a company that is not found", 200, failure("COMPANY_NOT_FOUND"), 1, 0, false],
    ["a failure that cost something", 200, failure("INTERNAL_ERROR", { credits_used: 2 }), 1, 2, false],
    ["a failure that cost 0", 200, failure("INTERNAL_ERROR", { credits_used: 0 }), 1, 0, true],
    ["a failure that cost nothing", 200, failure("INTERNAL_ERROR"), 1, 0, true],
    ["a failure without a code", 200, { status: "error" }, 1, 0, true],
    ["a failure with status 422", 422, failure("INVALID_DOMAIN"), 1, 0, true],
    [
      "an answer that names the main domain",
      200,
      success({ domain: "b.example", credits_used: 1 }),
      1,
      1,
      false,
    ],
    ...ODD_FORMS.map(
      (value): Case => [`of no known form: ${JSON.stringify(value)}`, 200, value, 0, 7, false],
    ),
    ["of no known form, and costs", 200, { status: "odd", credits_used: 7 }, 0, 7, false],
    ["processing", 202, { status: "processing" }, 0, 0, false],
    ["queued, with status 200", 200, { status: "queued" }, 0, 0, false],
    ["no JSON", 200, "<html>", 0, 0, false],
    ["a list", 200, [], 0, 0, false],
    ["an envelope that failed", 500, { success: false, error: { code: "INTERNAL_ERROR" } }, 0, 0, false],
    ["an unknown job", 404, { success: false, error: { code: "JOB_NOT_FOUND" } }, 0, 0, false],
  ])("that is %s", async (_what, status, value, rows, credits, again) => {
    const service = new JobService(receipts);
    service.result = (_item, job_id) => [
      status,
      typeof value === "object" && !Array.isArray(value) ? { job_id, ...value } : value,
    ];
    const first = await service.sync({ items: [ITEM] });
    expect([first.rows.length, creditsIn(service)]).toEqual([rows, credits]);
    service.now += 2 * DAY;
    await service.sync({ items: [ITEM] });
    expect(service.bought).toHaveLength(again ? 2 : 1);
  });
});

const LOOKUPS = (more: object) => ({ company_lookup: { domains: manyItems(8), ...more } });
const VERIFIES = (more: object) => ({
  email_verification: { emails: manyItems(8).map((domain) => `a@${domain}`), ...more },
});
const manyItems = (count: number): string[] => Array.from({ length: count }, (_, nth) => `i${nth}.example`);

describe("a cap", { timeout: 300_000 }, () => {
  it.each<[cap: object, stream: string, costs: number, bySync: readonly number[]]>([
    [{ max_credits_per_day: 4 }, "company_lookups", 2, [2, 2]],
    [{ max_credits_per_month: 4 }, "company_lookups", 2, [2, 2]],
    [{ max_per_sync: 3 }, "email_verifications", 0, [3, 6, 8]],
    [{ max_per_day: 5 }, "email_verifications", 0, [5, 5]],
  ])("%j of %s limits each sync of a day", async (cap, stream, cost, bySync) => {
    const settings = stream === "email_verifications" ? VERIFIES(cap) : LOOKUPS(cap);
    const service = new JobService(receipts);
    service.cost = cost;
    if (stream === "email_verifications")
      service.answer = (item) => {
        service.bought.push(item);
        return answered(service.now, 200, { email: item, status: "valid" });
      };
    for (const bought of bySync) {
      await service.sync({ settings, streams: [{ name: stream, syncMode: "incremental" }] });
      expect(service.bought).toHaveLength(bought);
    }
  });

  it.each([
    ["a day", "max_credits_per_day", 1],
    ["a month", "max_credits_per_month", 30],
  ])("of credits for %s is free again in the next", async (_what, name, days) => {
    const service = new JobService(receipts);
    const settings = LOOKUPS({ [name]: 4 });
    await service.sync({ settings });
    service.now += (days - 1) * DAY;
    await service.sync({ settings });
    const before = service.bought.length;
    service.now += DAY;
    await service.sync({ settings });
    expect([before, service.bought.length]).toEqual([2, 4]);
  });

  it("of credits is passed by at most one answer where prices are steady, whatever is lost, late, free or killed", async () => {
    let nth = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 60 }),
        fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
        fc.array(fc.nat(1000), { maxLength: 20 }),
        fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 0, max: DAY / 8 })), { maxLength: 4 }),
        async (price, cap, isFree, script, lives) => {
          const service = new JobService(`${receipts}-${nth++}`, script);
          /** By item: an answer may be delivered twice where a run dies. */
          const costs = new Map<unknown, number>();
          service.result = (item, job_id) => {
            const cost = isFree[manyItems(8).indexOf(item)] === true ? 0 : price;
            return [200, { job_id, domain: item, status: "success", contacts: [], credits_used: cost }];
          };
          service.onRow = ({ domain, credits_used }) => costs.set(domain, Number(credits_used));
          const settings = LOOKUPS({ max_credits_per_sync: 1e6, max_credits_per_month: cap });
          for (const [diesAt, takes] of lives) {
            service.takes = takes;
            await service.sync({ settings, diesAt });
          }
          service.takes = 0;
          for (let sync = 0; sync < 3; sync++) await service.sync({ settings });
          const credits = [...costs.values()].reduce((sum, cost) => sum + cost, 0);
          expect(credits).toBeLessThan(cap + price);
        },
      ),
      { numRuns: runs(60, 1_000) },
    );
  });
});
