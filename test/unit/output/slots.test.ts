import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Slots } from "../../../src/output/files/slots.ts";
import { Limiter, SPAN_MS } from "../../../src/service/limiter.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { SimulatedClock } from "./simulated-clock.ts";

/** When the requests of several runs start that share a folder. @param asked how many requests each run makes */
async function startsOf(folder: string, perMinute: number, asked: readonly number[]): Promise<number[]> {
  const simulated = new SimulatedClock();
  const clock = simulated.of();
  const starts: number[] = [];
  const run = async (requests: number): Promise<void> => {
    const slots = new Slots(folder, SPAN_MS / perMinute, clock.now);
    const limiter = new Limiter(perMinute, clock, (ahead) => slots.take(ahead));
    for (let nth = 0; nth < requests; nth++) {
      await limiter.take();
      starts.push(clock.now());
    }
  };
  await Promise.all(asked.map(run));
  simulated.stop();
  return starts;
}

const mostInSpan = (starts: readonly number[]): number =>
  Math.max(...starts.map((from) => starts.filter((at) => at >= from && at < from + SPAN_MS - 1_000).length));

describe("Slots", () => {
  it("let runs of one folder start no more than their key allows, and give all of it to those that are left", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 4, max: 60 }),
        fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 6 }),
        async (perMinute, asked) => {
          const starts = await startsOf(await tempDir(), perMinute, [...asked, 40]);
          expect(mostInSpan(starts)).toBeLessThanOrEqual(perMinute);
          const needed = (starts.length * SPAN_MS) / perMinute;
          expect(Math.max(...starts) - Math.min(...starts)).toBeLessThanOrEqual(needed);
        },
      ),
      { numRuns: 2, seed: 27 },
    );
  });
});
