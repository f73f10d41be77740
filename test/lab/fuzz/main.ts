import { Dice } from "./dice.ts";
import type { Target } from "./service.ts";
import { answers } from "./targets/answers.ts";
import { catalogs, configs, states } from "./targets/files.ts";
import { lines } from "./targets/lines.ts";

/** Everything that can be thrown at. Open targets are closed by their user. `short`: how many cases `npm test` plays. */
export const TARGETS: Readonly<
  Record<string, { readonly open: () => Promise<Target>; readonly short: number }>
> = {
  configs: { open: configs, short: 50 },
  catalogs: { open: catalogs, short: 40 },
  states: { open: states, short: 50 },
  answers: { open: answers, short: 25 },
  lines: { open: lines, short: 12 },
};

/** Plays the case of a seed; returns how many things it threw. Throws what it finds. */
export const playOne = (target: Target, seed: number): Promise<number> => target.play(new Dice(seed));
