/** Chances that follow from a seed, so that what they led to can be played again. */
export type Roll = {
  /** A whole number from 0 up to, but not including, `sides`. */
  below(sides: number): number;
  pick<Value>(from: readonly Value[]): Value;
};

export function dice(seed: number): Roll {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (sides: number): number => Math.floor(next() * sides);
  return {
    below,
    pick: (from) => {
      const picked = from[below(from.length)];
      if (picked === undefined) throw new RangeError("Nothing to pick from");
      return picked;
    },
  };
}
