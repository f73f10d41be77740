import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limiter } from "../../../src/api/limiter.ts";
import { retryAfterMs } from "../../../src/api/retry-after.ts";
import { type SleepyClock, sleepyClock } from "../../support/session.ts";

const SPAN = 61_000;

function mostInSpan(starts: readonly number[]): number {
  return Math.max(
    0,
    ...starts.map((start) => starts.filter((other) => other >= start && other < start + SPAN).length),
  );
}

function open(perMinute: number): { readonly clock: SleepyClock; readonly limiter: Limiter } {
  const clock = sleepyClock();
  return { clock, limiter: new Limiter(perMinute, clock) };
}

describe("Limiter", () => {
  it("starts no more than its share in any 61 seconds, whenever it is asked", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 120 }),
        fc.array(fc.constantFrom(0, 0, 0, 10, 900, 30_000, 61_000), { maxLength: 200 }),
        async (perMinute, pauses) => {
          const { clock, limiter } = open(perMinute);
          const starts: number[] = [];
          for (const pause of pauses) {
            clock.time += pause;
            await limiter.take();
            starts.push(clock.time);
          }
          expect(mostInSpan(starts)).toBeLessThanOrEqual(perMinute);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("lets a small burst start at once, then goes on evenly", async () => {
    const { clock, limiter } = open(60);
    const starts: number[] = [];
    for (let nth = 0; nth < 40; nth++) {
      await limiter.take();
      starts.push(clock.time);
    }
    expect(starts.filter((start) => start === 0)).toHaveLength(15);
    expect((starts[39] ?? 0) / 1_000).toBeCloseTo((25 * 61) / 60, 0);
  });

  it("starts each alone where there is to be no burst", async () => {
    const clock = sleepyClock();
    const limiter = new Limiter(60, clock, undefined, 1);
    for (let nth = 0; nth < 4; nth++) await limiter.take();
    expect(clock.time / 1_000).toBeCloseTo((3 * 61) / 60, 1);
  });

  it("does not starve a limit of one a minute", async () => {
    const { clock, limiter } = open(1);
    for (let nth = 0; nth < 3; nth++) await limiter.take();
    expect(clock.time).toBe(2 * SPAN);
  });

  it("lets the next start 61 seconds after the first of as many as there are in a minute", async () => {
    const clock = sleepyClock();
    const limiter = new Limiter(2, clock);
    await limiter.take();
    clock.time = 30_000;
    await limiter.take();
    await limiter.take();
    expect(clock.time).toBe(61_000);
  });

  it("starts nothing a part of a millisecond too soon", async () => {
    const { clock, limiter } = open(1);
    clock.time = 0.5;
    await limiter.take();
    clock.time = 1.25;
    await limiter.take();
    expect(clock.time).toBeGreaterThanOrEqual(0.5 + SPAN);
  });

  it("serves first come, first", async () => {
    const { limiter } = open(1);
    const served: number[] = [];
    await Promise.all([0, 1, 2, 3].map(async (nth) => await limiter.take().then(() => served.push(nth))));
    expect(served).toEqual([0, 1, 2, 3]);
  });

  it("lets nothing start while it is blocked, not even who waits already", async () => {
    const { clock, limiter } = open(60);
    limiter.block(5_000);
    const first = limiter.take();
    limiter.block(9_000);
    await first;
    expect(clock.time).toBeGreaterThanOrEqual(9_000);
  });

  it.each([
    [5_000, 1_000],
    [1_000, 5_000],
  ])("keeps to the longer of two blocks: %i, %i", async (...blocks) => {
    const { clock, limiter } = open(60);
    for (const ms of blocks) limiter.block(ms);
    await limiter.take();
    expect(clock.time).toBe(5_000);
  });

  it("takes a later turn where its own has passed before it was known", async () => {
    const clock = sleepyClock();
    const asked: number[] = [];
    const limiter = new Limiter(60, clock, async (ahead) => {
      asked.push(ahead);
      clock.time += 2_000;
      return ahead - 2_000;
    });
    await limiter.take();
    expect(asked).toEqual([0, 2_000]);
  });

  it.each([
    [0, 0, 1],
    [300, 0, 1],
    [300.2, 0, 1],
    [300, 500, 1],
    [300, 501, 2],
    [-500, 0, 1],
    [-501, 0, 2],
  ])(
    "starts at a turn in %i ms that is slept through by %i ms, or else takes another: %i",
    async (turn, over, turns) => {
      const clock = sleepyClock();
      const { sleep } = clock;
      const slept: number[] = [];
      clock.sleep = async (ms, signal) => {
        slept.push(ms);
        await sleep(ms + over, signal);
      };
      const asked: number[] = [];
      const limiter = new Limiter(60, clock, async (ahead) => {
        asked.push(ahead);
        return asked.length === 1 ? turn : 0;
      });
      await limiter.take();
      expect(asked).toHaveLength(turns);
      if (turns === 2) expect(asked[1]).toBe(Math.max(over, -turn));
      expect(slept).toEqual(turn > 0 ? [Math.ceil(turn)] : []);
    },
  );

  it("goes on with the next when one who waits gives up", async () => {
    const { clock, limiter } = open(60);
    limiter.block(1_000);
    const gone = limiter.take(AbortSignal.abort(new Error("gone")));
    const next = limiter.take();
    await expect(gone).rejects.toThrow("gone");
    await next;
    expect(clock.time).toBeGreaterThanOrEqual(1_000);
  });
});

describe("retryAfterMs()", () => {
  const NOW = Date.parse("2026-03-20T10:00:00Z");

  it.each<[string | undefined, number]>([
    ["7", 7_000],
    [" 7 ", 7_000],
    ["1.5", 1_500],
    ["0", 1_000],
    ["99999999", 300_000],
    ["Fri, 20 Mar 2026 10:00:30 GMT", 30_000],
    ["Fri, 20 Mar 2026 09:00:00 GMT", 1_000],
    ["Sat, 20 Mar 2027 10:00:30 GMT", 300_000],
    ["-5", 10_000],
    ["soon", 10_000],
    ["", 10_000],
    [undefined, 10_000],
  ])("reads %j as %i ms", (value, ms) => expect(retryAfterMs(value, NOW, 10_000)).toBe(ms));
});
