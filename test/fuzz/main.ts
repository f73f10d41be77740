import { Dice } from "./dice.ts";
import { TARGETS, type Target } from "./targets.ts";

/** Milliseconds for which one target is played before the next. */
const TURN_MS = 2_000;

const USAGE = "Usage: npm run fuzz -- --minutes N [--target NAME] | --target NAME --seed N";

/** Plays targets for some minutes, or one case again. Returns the exit code. */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
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
    await playOnce(target, Number(seed));
    print(`${target} ${seed}: nothing found`);
    return 0;
  }
  return await playFor(minutes * 60_000, names, print);
}

async function playFor(ms: number, names: readonly string[], print: (text: string) => void): Promise<number> {
  const ends = performance.now() + ms;
  const played = new Map(names.map((name) => [name, { cases: 0, units: 0, unit: "" }]));
  let failures = 0;
  while (performance.now() < ends) {
    for (const name of names) {
      const target = await open(name);
      const so = played.get(name) ?? { cases: 0, units: 0, unit: "" };
      for (const turnEnds = performance.now() + TURN_MS; performance.now() < turnEnds; ) {
        const seed = Math.floor(Math.random() * 4_294_967_296);
        try {
          so.units += await target.play(new Dice(seed));
        } catch (error) {
          failures += 1;
          print(`FAILED ${name}: npm run fuzz -- --target ${name} --seed ${seed}\n${describe(error)}`);
        }
        so.cases += 1;
      }
      played.set(name, { ...so, unit: target.unit });
      await target.close();
    }
  }
  const counts = [...played.values()].map(({ units, unit }) => `${units.toLocaleString("en-US")} ${unit}`);
  print(`${counts.join(", ")}; ${failures} failures`);
  return failures === 0 ? 0 : 1;
}

/** Plays the case of a seed. Throws what it finds. */
export async function playOnce(name: string, seed: number): Promise<void> {
  const target = await open(name);
  try {
    await target.play(new Dice(seed));
  } finally {
    await target.close();
  }
}

async function open(name: string): Promise<Target> {
  const target = TARGETS[name];
  if (target === undefined) throw new Error(`There is no target "${name}"`);
  return await target();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`;
  return `${(error.stack ?? error.message).slice(0, 2_000)}${cause}`;
}
