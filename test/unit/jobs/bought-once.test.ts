import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { TransientError } from "../../../src/base/errors.ts";
import type { SelectedJobs } from "../../../src/jobs/jobs.ts";
import { answered, DAY, JobService } from "../../support/job-service.ts";
import { runs } from "../../support/runs.ts";
import { tempDir } from "../../support/temp-dir.ts";

const ITEMS = ["a.example", "b.example", "c.example", "d.example"];
const STREAM = "company_lookups";
const BOTH = [STREAM, "company_lookup_contacts"].map((name) => ({ name, syncMode: "incremental" }) as const);
const ALONE = BOTH.slice(0, 1);
const REFRESH = [{ name: STREAM, syncMode: "full_refresh" }] as const;

let receipts = "";
beforeEach(async () => {
  receipts = join(await tempDir(), "receipts.jsonl");
});

/** Where a sync dies, how the clock jumps after it, which memory is lost, and how it is asked for. */
type Run = { diesAt: number; jump: number; loses: boolean; streams: readonly SelectedJobs[] };
const RUN: fc.Arbitrary<Run> = fc.record({
  diesAt: fc.nat(30),
  jump: fc.integer({ min: -2 * DAY, max: 10 * DAY }),
  loses: fc.boolean(),
  streams: fc.constantFrom<readonly SelectedJobs[]>(ALONE, ALONE, BOTH, REFRESH),
});

/** Syncs that die, then syncs that do not, a week apart, until nothing is left to be done. */
async function live(service: JobService, lives: readonly Run[], losesStates: boolean): Promise<void> {
  for (const { diesAt, jump, loses, streams } of lives) {
    if (loses && losesStates) service.saved = {};
    await service.sync({ items: ITEMS, diesAt, streams });
    service.now += jump;
  }
  if (losesStates) service.saved = {};
  for (let nth = 0; nth < 5; nth++) {
    await service.sync({ items: ITEMS });
    service.now += 8 * DAY;
  }
}

/** Items that were bought more often than once, and once more for each result that said that it failed. */
function boughtTooOften({ bought, failed }: JobService): readonly string[] {
  const count = (list: readonly string[], item: string): number => list.filter((one) => one === item).length;
  return ITEMS.filter((item) => count(bought, item) > 1 + count(failed, item));
}

describe("jobs", { timeout: 300_000 }, () => {
  it.each([
    ["receipts and state are kept", true, false],
    ["the state is lost now and then", true, true],
    ["there are no receipts", false, false],
  ])("buy nothing twice, whatever dies when, where %s", async (_what, hasReceipts, losesStates) => {
    let nth = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(1000), { maxLength: 40 }),
        fc.array(RUN, { maxLength: 5 }),
        async (script, lives) => {
          const service = new JobService(hasReceipts ? `${receipts}-${nth++}` : "", script);
          await live(service, lives, losesStates);
          expect(boughtTooOften(service)).toEqual([]);
          const settled = new Set([...service.failed, ...service.delivered]);
          // A calm service answers each job that the receipts know.
          if (script.length === 0 && hasReceipts)
            expect(service.bought.filter((item) => !settled.has(item))).toEqual([]);
        },
      ),
      { numRuns: runs(12, 200) },
    );
  });

  it("buy nothing twice when a sync dies before any event, and the next before any other", async () => {
    for (let first = 0; first < 8; first++) {
      for (let second = 0; second < 8; second += 3) {
        const service = new JobService(`${receipts}-${first}-${second}`);
        const items = ITEMS.slice(0, 2);
        const { states } = await service.sync({ items, diesAt: first });
        await service.sync({ items, states: {}, diesAt: second });
        await service.sync({ items, states });
        expect(new Set(service.bought).size, `died at ${first} and ${second}`).toBe(service.bought.length);
      }
    }
  });

  it("find a job by the state alone, after every kill except the one before its id was saved", async () => {
    const undelivered: number[] = [];
    for (let diesAt = 0; diesAt < 8; diesAt++) {
      const service = new JobService("");
      service.takes = DAY;
      await service.sync({ items: ITEMS.slice(0, 1), diesAt });
      for (const _sync of [1, 2, 3]) {
        service.now += 2 * DAY;
        await service.sync({ items: ITEMS.slice(0, 1) });
      }
      expect([diesAt, service.bought.length]).toEqual([diesAt, 1]);
      if (service.delivered.length === 0) undelivered.push(diesAt);
    }
    expect(undelivered).toHaveLength(1);
  });

  it("buy in the next run what waited for the rate limit when the process died", async () => {
    for (const path of [receipts, ""]) {
      const service = new JobService(path);
      service.slots = 2;
      await service.sync({ items: ITEMS });
      service.slots = Number.POSITIVE_INFINITY;
      await service.sync({ items: ITEMS });
      expect(service.bought.toSorted()).toEqual(ITEMS);
    }
  });
});

const lost = () => ({ kind: "unanswered", error: new TransientError("no answer") }) as const;

describe("a submission", () => {
  it.each<[what: string, answer: () => unknown, again: boolean]>([
    ["is lost", lost, false],
    ["did not leave", () => ({ kind: "unsent", error: new TransientError("no connection") }), true],
    ["has no job id", () => answered(0, 202, { status: "processing" }), false],
    ["is empty", () => answered(0, 200, undefined), false],
    [
      "is 400 with a code of the form",
      () => answered(0, 400, { success: false, error: { code: "INVALID_BODY" } }),
      true,
    ],
    [
      "is that of a result that failed",
      () => answered(0, 200, { status: "error", error_code: "INSUFFICIENT_CREDITS" }),
      true,
    ],
    ["is 401", () => answered(0, 401, { success: false, error: { code: "INVALID_API_KEY" } }), true],
    ["is 408", () => answered(0, 408, {}), false],
    ["is 500", () => answered(0, 500, { success: false, error: { code: "INTERNAL_ERROR" } }), false],
    ["is 502", () => answered(0, 502, "<html>"), false],
    ["is 503", () => answered(0, 503, "<html>"), false],
    ["is 504", () => answered(0, 504, "<html>"), false],
    ["is 418", () => answered(0, 418, {}), false],
  ])(
    "whose answer %s is sent again by a later sync only if it bought nothing",
    async (_what, answer, again) => {
      const service = new JobService(receipts);
      service.answer = () => answer() as ReturnType<typeof lost>;
      await service.sync({ items: ITEMS.slice(0, 1) });
      const first = service.submissions;
      service.now += 40 * DAY;
      service.saved = {};
      await service.sync({ items: ITEMS.slice(0, 1) });
      expect([service.submissions > first, again || first === 1]).toEqual([again, true]);
    },
  );

  it("whose program breaks after it left counts as one that may have been paid for", async () => {
    for (const losesReceipts of [false, true]) {
      const path = losesReceipts ? "" : receipts;
      const service = new JobService(path);
      service.answer = () => {
        throw new Error("It broke");
      };
      const { error, states } = await service.sync({ items: ITEMS.slice(0, 1) });
      expect(error?.message).toBe("It broke");
      service.answer = undefined;
      await service.sync({ items: ITEMS.slice(0, 1), states: losesReceipts ? states : {} });
      expect(service.bought).toEqual([]);
    }
  });

  it("that was announced before a key was refused is bought by the next sync", async () => {
    for (const path of [receipts, ""]) {
      const service = new JobService(path);
      // Where states take long, one announces many submissions.
      service.stateMs = 1_000;
      const items = Array.from({ length: 20 }, (_, nth) => `i${nth + 10}.example`);
      const refusal = answered(0, 401, { success: false, error: { code: "INVALID_API_KEY" } });
      service.answer = () => (service.bought.length < 6 ? undefined : refusal);
      await service.sync({ items });
      service.answer = undefined;
      await service.sync({ items });
      expect(service.bought.toSorted()).toEqual(items);
    }
  });

  it("that was announced and did not leave is bought by the next sync", async () => {
    const service = new JobService(receipts);
    const checkState = async (): Promise<void> => {
      throw new TransientError("Another run has the state");
    };
    await service.sync({ items: ITEMS, checkState });
    expect(service.bought).toEqual([]);
    await service.sync({ items: ITEMS });
    expect(service.bought.toSorted()).toEqual(ITEMS);
  });
});

describe("an item", () => {
  it.each([[30, [29, 1, 1], [1, 1, 2]]])(
    "is bought again only as refresh_after_days says: %s, after %j days: %j",
    async (refresh_after_days, days, bought) => {
      const service = new JobService(receipts);
      const settings = { company_lookup: { domains: ["a.example"], refresh_after_days } };
      await service.sync({ settings });
      const counts: number[] = [];
      for (const day of days) {
        service.now += day * DAY;
        await service.sync({ settings });
        counts.push(service.bought.length);
      }
      expect(counts).toEqual(bought);
    },
  );

  it("whose job failed without a cost is tried after an hour, a day and a week, and then never", async () => {
    const service = new JobService(receipts);
    service.result = (item) => [200, { domain: item, status: "error", error_code: "INTERNAL_ERROR" }];
    const bought: number[] = [];
    for (const hours of [0.5, 1, 12, 24, 24, 24 * 7, 24 * 60]) {
      await service.sync({ items: ITEMS.slice(0, 1) });
      bought.push(service.bought.length);
      service.now += hours * 3_600_000;
    }
    await service.sync({ items: ITEMS.slice(0, 1) });
    expect([...bought, service.bought.length]).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });
});
