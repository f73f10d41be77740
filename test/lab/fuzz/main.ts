import { Dice } from "./dice.ts";
import type { Target } from "./target.ts";
import { answers } from "./targets/answers.ts";
import { catalogs } from "./targets/catalogs.ts";
import { configs } from "./targets/configs.ts";
import { cuts } from "./targets/cuts.ts";
import { heldBack } from "./targets/held-back.ts";
import { lines } from "./targets/lines.ts";
import { states } from "./targets/states.ts";

/** Milliseconds for which one target is played before another. */
const TURN_MS = 10_000;
/** How often (ms) the figures are said. */
const REPORT_MS = 300_000;

type Entry = { readonly open: () => Promise<Target>; readonly goal: number; readonly short: number };

/**
 * Everything that can be thrown at. Open targets are closed by their user.
 * `goal`: how many things are enough; `short`: how many cases each run of the tests plays.
 */
export const TARGETS: Readonly<Record<string, Entry>> = {
  configs: { open: configs, goal: 100_000, short: 50 },
  catalogs: { open: catalogs, goal: 100_000, short: 30 },
  states: { open: states, goal: 100_000, short: 50 },
  answers: { open: answers, goal: 100_000, short: 12 },
  lines: { open: lines, goal: 5_000_000, short: 4 },
  drops: { open: cuts("drop"), goal: 2_000_000, short: 3 },
  hashes: { open: cuts("hash"), goal: 2_000_000, short: 3 },
  onlys: { open: cuts("only"), goal: 2_000_000, short: 3 },
  suppressed: { open: heldBack("suppress_file"), goal: 10_000, short: 20 },
  unnamed: { open: heldBack("only_fields"), goal: 10_000, short: 10 },
  selections: { open: cuts("select"), goal: 2_000_000, short: 3 },
};

const USAGE = "Usage: npm run fuzz -- --minutes N [--target NAME] | --target NAME --seed N";

/** What was thrown so far, by target, and how much of it failed. */
export type Figures = { readonly units: Readonly<Record<string, number>>; readonly failures: number };

/** Whoever watches over the run: told of each case before it begins, so that it can name one that never ends. */
export type Watch = (target: string, seed: number, figures: Figures) => void;

/** Plays targets until the minutes are over or the goals are reached, or plays one case again. Returns the exit code. */
export async function main(
  args: readonly string[],
  print: (text: string) => void,
  watch: Watch = () => {},
): Promise<number> {
  const option = (name: string): string | undefined => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? undefined : args[at + 1];
  };
  const [target, seed, minutes] = [option("target"), option("seed"), Number(option("minutes") ?? "0")];
  const names = target === undefined ? Object.keys(TARGETS) : [target];
  if (!names.every((name) => Object.hasOwn(TARGETS, name)) || (seed === undefined && !(minutes > 0))) {
    print(USAGE);
    return 2;
  }
  if (seed !== undefined && target !== undefined) {
    const opened = await open(target);
    await playOne(opened, Number(seed)).finally(() => opened.close());
    print(`${target} ${seed}: nothing found`);
    return 0;
  }
  const earlier = JSON.parse(option("earlier") ?? '{"units":{},"failures":0}') as Figures;
  const units = new Map(names.map((name) => [name, earlier.units[name] ?? 0]));
  return await playOn({ units, failures: earlier.failures, print, watch }, minutes * 60_000);
}

type Played = {
  readonly units: Map<string, number>;
  failures: number;
  readonly print: (text: string) => void;
  readonly watch: Watch;
};

async function playOn(played: Played, ms: number): Promise<number> {
  const ends = performance.now() + ms;
  const report = (): void => {
    const counts = [...played.units].map(([name, units]) => `${units.toLocaleString("en-US")} ${name}`);
    played.print(`${counts.join(", ")}; ${played.failures} failures`);
  };
  let reported = performance.now();
  for (let next = furthest(played); next !== undefined; next = furthest(played)) {
    if (performance.now() >= ends) break;
    await playTurn(played, next, Math.min(ends, performance.now() + TURN_MS));
    if (performance.now() - reported <= REPORT_MS) continue;
    report();
    reported = performance.now();
  }
  report();
  return played.failures === 0 ? 0 : 1;
}

/** The target that is furthest from its goal; undefined if all goals are reached. */
function furthest({ units }: Played): string | undefined {
  const share = (name: string): number => (units.get(name) ?? 0) / (TARGETS[name]?.goal ?? 1);
  const [first] = [...units.keys()].toSorted((one, other) => share(one) - share(other));
  return first !== undefined && share(first) < 1 ? first : undefined;
}

async function playTurn(played: Played, name: string, ends: number): Promise<void> {
  const target = await open(name);
  const { units } = played;
  while (performance.now() < ends) {
    const seed = Math.floor(Math.random() * 4_294_967_296);
    played.watch(name, seed, { units: Object.fromEntries(units), failures: played.failures });
    try {
      units.set(name, (units.get(name) ?? 0) + (await playOne(target, seed)));
    } catch (error) {
      played.failures += 1;
      played.print(`FAILED ${name}: npm run fuzz -- --target ${name} --seed ${seed}\n${describe(error)}`);
    }
  }
  await target.close();
}

/** Plays the case of a seed; returns how many things it threw. Throws what it finds, errors that nobody caught too. */
export async function playOne(target: Target, seed: number): Promise<number> {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on("uncaughtException", note).on("unhandledRejection", note);
  try {
    const units = await target.play(new Dice(seed));
    // What nobody catches is told when the work of this moment is done.
    await new Promise((resolve) => setImmediate(resolve));
    if (uncaught.length > 0) throw new Error("Nobody caught an error", { cause: uncaught[0] });
    return units;
  } finally {
    process.off("uncaughtException", note).off("unhandledRejection", note);
  }
}

async function open(name: string): Promise<Target> {
  const target = TARGETS[name];
  if (target === undefined) throw new Error(`There is no target "${name}"`);
  return await target.open();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`;
  return `${(error.stack ?? error.message).slice(0, 4_000)}${cause}`;
}
