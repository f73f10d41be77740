import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limiter } from "../../../src/service/limiter.ts";
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

describe("requests per minute", () => {
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

  it("lets nothing start before the longest block ends, not even who waits already", async () => {
    const { clock, limiter } = open(60);
    limiter.block(5_000);
    const first = limiter.take();
    limiter.block(9_000);
    limiter.block(1_000);
    await first;
    expect(clock.time).toBe(9_000);
  });

  it("continues with the next request when a waiting one gives up", async () => {
    const { clock, limiter } = open(60);
    limiter.block(1_000);
    const gone = limiter.take(AbortSignal.abort(new Error("gone")));
    const next = limiter.take();
    await expect(gone).rejects.toThrow("gone");
    await next;
    expect(clock.time).toBeGreaterThanOrEqual(1_000);
  });
});
