import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readJobs } from "../../../src/jobs/run.ts";
import { CAPS, DAY, JobService, runOnce, Tape } from "../../support/job-model.ts";
import { runs } from "../../support/runs.ts";

const ITEMS = ["a.example", "b.example", "c.example", "d.example", "e.example", "f.example", "g.example"];
const tape = fc.array(fc.nat(1000), { maxLength: 60 });

/** Where a run dies, how the clock jumps after it, and whether the platform loses its state. */
type Death = { readonly diesAt: number; readonly jump: number; readonly loses: boolean };
const jump = fc.integer({ min: -2 * DAY, max: 10 * DAY });
const lives = fc.array(fc.record({ diesAt: fc.nat(40), jump, loses: fc.boolean() }), { maxLength: 8 });
const CALM_RUNS = 30;

type Memory = "both" | "state lost" | "receipts lost";

/** Runs that die, then runs that do not, a week apart, until nothing is left to be done. */
async function live(service: JobService, many: readonly Death[], memory: Memory): Promise<void> {
  const hasReceipts = memory !== "receipts lost";
  let state: unknown;
  const lost = memory === "state lost";
  for (const { diesAt, jump, loses } of many) {
    state = await runOnce(service, ITEMS, lost && loses ? undefined : state, { diesAt, hasReceipts });
    service.now += jump;
  }
  for (let run = 0; run < CALM_RUNS; run++) {
    state = await runOnce(service, ITEMS, lost && run === 0 ? undefined : state, { hasReceipts });
    service.now += 8 * DAY;
  }
}

/** How often an item may have been bought: once, and once more for each result that said that it failed. */
function boughtTooOften({ bought, failed }: JobService): readonly string[] {
  const count = (list: readonly string[], item: string): number => list.filter((one) => one === item).length;
  return ITEMS.filter((item) => count(bought, item) > 1 + count(failed, item));
}

describe("readJobs()", { timeout: 60_000 }, () => {
  it.each<Memory>(["both", "state lost", "receipts lost"])(
    "buys nothing twice, whatever dies when: %s",
    async (memory) => {
      await fc.assert(
        fc.asyncProperty(tape, lives, async (numbers, many) => {
          const service = new JobService(new Tape(numbers));
          await live(service, many, memory);
          expect(boughtTooOften(service)).toEqual([]);
        }),
        { numRuns: runs(8, 25) },
      );
    },
  );

  it("delivers every answer whose job is known, with state and receipts kept", async () => {
    await fc.assert(
      fc.asyncProperty(tape, lives, async (numbers, many) => {
        const service = new JobService(new Tape(numbers));
        await live(service, many, "both");
        const { untold, failed, delivered } = service;
        const settled = new Set([...untold, ...failed, ...delivered]);
        expect(service.bought.filter((item) => !settled.has(item))).toEqual([]);
      }),
      { numRuns: runs(8, 25) },
    );
  });

  it("buys nothing twice when a run dies before any event, and the next before any other", async () => {
    for (let first = 0; first < 14; first++) {
      for (let second = 0; second < 14; second += 3) {
        const service = new JobService(new Tape([]));
        const state = await runOnce(service, ITEMS.slice(0, 2), undefined, { diesAt: first });
        await runOnce(service, ITEMS.slice(0, 2), undefined, { diesAt: second });
        await runOnce(service, ITEMS.slice(0, 2), state);
        expect(new Set(service.bought).size, `killed at ${first} and ${second}`).toBe(service.bought.length);
      }
    }
  });

  it("buys nothing in a full refresh, and delivers again what the receipts know", async () => {
    const service = new JobService(new Tape([]));
    const state = await runOnce(service, ITEMS.slice(0, 3), undefined);
    expect(service.delivered).toHaveLength(3);
    await runOnce(service, ITEMS, state, { isFullRefresh: true });
    expect(service.delivered).toHaveLength(6);
    expect(service.bought).toHaveLength(3);
  });

  it.each(["the disk", "the program"])(
    "buys nothing again that was submitted before %s failed, whichever memory is left",
    async (what) => {
      const service = new JobService(new Tape([]));
      let writes = 0;
      const disk = async (): Promise<void> => {
        writes += 1;
        if (writes === 2 && what === "the disk") throw new Error("It failed");
      };
      const context = service.context(ITEMS.slice(0, 1), undefined, { disk });
      const client = {
        ...context.client,
        submit: async (item: string) => {
          const submission = await context.client.submit(item);
          if (what === "the program") throw new Error("It failed");
          return submission;
        },
      };
      const states: unknown[] = [];
      const failed = (async () => {
        for await (const event of readJobs({ ...context, client }))
          if (event.kind === "checkpoint") states.push(event.state);
      })();
      await expect(failed).rejects.toThrow("It failed");
      for (const [state, hasReceipts] of [[undefined, true] as const, [states.at(-1), false] as const]) {
        await runOnce(service, ITEMS.slice(0, 1), state, { hasReceipts });
        expect(service.bought).toEqual(["a.example"]);
      }
    },
  );

  it("lets no record leave before its answer is on the disk", async () => {
    const service = new JobService(new Tape([]));
    let onDisk = 0;
    const disk = async (): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      onDisk += 1;
    };
    const seen: number[] = [];
    for await (const event of readJobs(service.context(ITEMS.slice(0, 1), undefined, { disk })))
      if (event.kind === "records") seen.push(onDisk);
    // What is to be submitted, the job, its answer.
    expect(seen).toEqual([3]);
  });

  it.each([
    [31, 150, 130],
    [76, 300, 130],
    [1, 20, 50],
  ])(
    "ends 40 look-ups of %d s each within %d s, by the moments that it plans, and %d polls",
    async (takes, most, polls) => {
      const items = Array.from({ length: 40 }, (_, nth) => `i${nth}.example`);
      const service = new JobService(new Tape([]), [1], takes * 1000);
      const began = service.now;
      let answered = 0;
      for await (const event of readJobs(service.context(items, undefined)))
        if (event.kind === "records") answered += event.lines.length;
      expect(answered).toBe(40);
      expect((service.now - began) / 1000).toBeLessThanOrEqual(most);
      expect(service.polls).toBeLessThanOrEqual(polls);
    },
  );

  it("passes no cap by more than what was open, under any price list", async () => {
    const prices = fc.array(fc.nat(400), { minLength: 1, maxLength: 30 });
    const cap = (max: number) => fc.integer({ min: 1, max });
    const items = Array.from({ length: 30 }, (_, nth) => `i${nth}.example`);
    await fc.assert(
      fc.asyncProperty(prices, cap(500), cap(900), async (list, sync, day) => {
        const service = new JobService(new Tape([]), list);
        const caps = { ...CAPS, credits: { sync, day, month: Number.POSITIVE_INFINITY } };
        // All but those that were open when the cap was reached fit; one alone may always go.
        const knownSince = (first: number): number =>
          service.bought
            .slice(first, -20)
            .reduce((sum, _, nth) => sum + service.price(`job_${first + nth}`), 0);
        let state: unknown;
        for (let run = 0; run < 6; run++) {
          const before = service.bought.length;
          state = await runOnce(service, items, state, { caps });
          expect(knownSince(before)).toBeLessThanOrEqual(sync);
        }
        expect(knownSince(0)).toBeLessThanOrEqual(day);
      }),
      { numRuns: runs(15, 40) },
    );
  });
});
