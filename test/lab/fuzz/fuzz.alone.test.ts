import { afterAll, describe, expect, it } from "vitest";
import { playOne, TARGETS } from "./main.ts";

describe.each(Object.entries(TARGETS))("any input: %s", async (name, { open, short }) => {
  const target = await open();
  afterAll(() => target.close());

  // The same cases in each run; `npm run test:lab -- --only fuzz` plays others, for as long as it is told.
  it.each(
    Array.from({ length: Math.ceil(short / 10) }, (_, nth) => [nth * 10 + 1, Math.min(short, nth * 10 + 10)]),
  )("ends well or by an error that says what to do, cases %i to %i", async (from, to) => {
    for (let seed = from; seed <= to; seed++) {
      const failed = `Play it again: npm run test:lab -- --only ${name} --seed ${seed}`;
      await expect(playOne(target, seed), failed).resolves.toBeGreaterThan(0);
    }
  });
});
