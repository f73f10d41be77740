import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Limiter, SPAN_MS } from "../../../src/api/limiter.ts";
import { OutputError } from "../../../src/errors.ts";
import { Slots } from "../../../src/files/slots.ts";
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
      { numRuns: 12, seed: 27 },
    );
  });

  it("pass over what a killed run took, and forget it in time", async () => {
    const folder = await tempDir();
    const now = Date.UTC(2026, 0, 1);
    for (const slot of [now / 1_000, now / 1_000 + 1, now / 1_000 - 700])
      writeFileSync(join(folder, `${slot}`), "");
    const waits: number[] = [];
    const slots = new Slots(folder, 1_000, () => now);
    for (let nth = 0; nth < 100; nth++) waits.push(await slots.take());
    expect(waits.slice(0, 2)).toEqual([2_000, 3_000]);
    expect(readdirSync(folder)).toHaveLength(102);
  });

  it("are nobody else's to see or take", async () => {
    const folder = join(await tempDir(), "shared", "slots");
    await new Slots(folder, 1_000, () => 0).take();
    const paths = [join(folder, ".."), folder, ...readdirSync(folder).map((name) => join(folder, name))];
    expect(paths.map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700, 0o600]);
  });

  it("begin where the clock says, or further on, and say in how many ms", async () => {
    const folder = await tempDir();
    const takenAt = async (ahead: number, ...times: number[]): Promise<number> =>
      new Slots(folder, 1_000, () => times.shift() ?? 0).take(ahead);
    expect(await takenAt(0, 10_500, 10_500)).toBe(500);
    expect(await takenAt(0, 12_000, 12_000)).toBe(0);
    expect(await takenAt(1_000, 12_000, 12_000)).toBe(1_000);
    expect(await takenAt(1_001, 12_000, 12_000)).toBe(2_000);
    expect(await takenAt(0, 20_001, 23_000)).toBe(-2_000);
    expect(readdirSync(folder).sort()).toEqual(["11", "12", "13", "14", "21"]);
  });

  it("are forgotten ten minutes after they have passed, each hundredth time, and nothing else is", async () => {
    const folder = await tempDir();
    const slots = new Slots(folder, 1_000, () => 1_000_000);
    for (const name of ["399", "400", "401", "0", "notes.txt"]) writeFileSync(join(folder, name), "");
    await slots.take(1_000);
    expect(readdirSync(folder).sort()).toEqual(["0", "1001", "399", "400", "401", "notes.txt"]);
    await slots.take();
    expect(readdirSync(folder).sort()).toEqual(["1000", "1001", "400", "401", "notes.txt"]);
  });

  it("say which folder cannot be shared", async () => {
    const path = join(await tempDir(), "plain");
    writeFileSync(path, "");
    await expect(new Slots(path, 1_000, () => 0).take()).rejects.toThrow(
      `Cannot share requests in the folder "${path}": it is there already`,
    );
    await expect(new Slots(join(path, "x"), 1_000, () => 0).take()).rejects.toThrow(OutputError);
  });
});
