import { describe, expect, it } from "vitest";
import { Dice } from "./dice.ts";
import { TARGETS } from "./targets.ts";

/** Few enough for every run of the tests; `npm run fuzz` plays for as long as it is told. */
const CASES: Readonly<Record<string, number>> = {
  config: 250,
  catalog: 100,
  state: 500,
  answers: 200,
  lines: 150,
};

describe("any input", () => {
  it.each(Object.keys(TARGETS))("%s: ends well or by an error that says what to do", async (name) => {
    const target = await TARGETS[name]?.();
    const first = Math.floor(Math.random() * 4_000_000_000);
    for (let seed = first; seed < first + (CASES[name] ?? 100); seed++) {
      try {
        await target?.play(new Dice(seed));
      } catch (error) {
        throw new Error(`Play it again: npm run fuzz -- --target ${name} --seed ${seed}`, { cause: error });
      }
    }
    await target?.close();
    expect(target).toBeDefined();
  });
});

describe("Dice", () => {
  it("throws the same for the same seed", () => {
    const thrown = (seed: number): number[] => {
      const dice = new Dice(seed);
      return Array.from({ length: 20 }, () => dice.below(1_000));
    };
    expect(thrown(7)).toEqual(thrown(7));
    expect(thrown(7)).not.toEqual(thrown(8));
  });
});
