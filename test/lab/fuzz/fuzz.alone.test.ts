import { afterAll, describe, expect, it } from "vitest";
import { playOne, TARGETS } from "./main.ts";

describe.each(Object.entries(TARGETS))("any input: %s", async (name, { open, short }) => {
  const target = await open();
  afterAll(() => target.close());

  // The same cases in each run; `npm run test:lab -- --only fuzz` plays others, for as long as it is told.
  it("ends well or by an error that says what to do", async () => {
    for (let seed = 1; seed <= short; seed++) {
      const failed = `Play it again: npm run test:lab -- --only ${name} --seed ${seed}`;
      await expect(playOne(target, seed), failed).resolves.toBeGreaterThan(0);
    }
  });
});
