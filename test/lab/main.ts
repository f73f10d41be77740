import { inspect, parseArgs } from "node:util";
import { removeTempDirs } from "../support/temp-dir.ts";
import { allScenarios } from "./faultlab/fault-matrix.ts";
import { runScenario } from "./faultlab/run-scenario.ts";
import { playPipeline } from "./faultlab/soak.ts";
import { Dice } from "./fuzz/dice.ts";
import { playOne, TARGETS } from "./fuzz/main.ts";

/** Minutes of soak and fuzz when nobody says how many. */
const USUAL_MINUTES = 4;
/** The share of the minutes that the faults have when there are not enough for all of them. */
const FAULTS_SHARE = 1 / 3;
/** How long one player plays seeds before the next. */
const TURN_MS = 2_000;
const AT_ONCE = 2;
/** The exit code where a promise was broken. An error that nobody caught ends the process with 1. */
const FAILED = 3;

const options = { minutes: { type: "string" }, seed: { type: "string" }, only: { type: "string" } } as const;
const { minutes, seed: given, only } = parseArgs({ args: process.argv.slice(2), options }).values;
const seed = Number(given ?? Math.floor(Math.random() * 1_000_000));
let failures = 0;

/** `--only`: faults, soak, fuzz, an input of the fuzz, or a part of the name of a fault. */
async function main(): Promise<void> {
  if (![seed, Number(minutes ?? 1)].every((number) => number >= 0))
    throw new Error("Minutes and seed are numbers");
  print(`seed ${seed}`);
  const players = ["soak", ...Object.keys(TARGETS)].filter(
    (name) => only === undefined || only === name || (only === "fuzz" && name !== "soak"),
  );
  const most = Number(minutes ?? USUAL_MINUTES) * 60_000;
  const began = performance.now();
  if (only === undefined || players.length === 0)
    await playFaults(
      minutes === undefined
        ? Number.POSITIVE_INFINITY
        : began + most * (players.length > 0 ? FAULTS_SHARE : 1),
    );
  // One thing with a seed and without minutes is that seed alone.
  const isOne = players.length === 1 && given !== undefined && minutes === undefined;
  if (players.length > 0)
    await playSeeds(players, isOne ? 0 : (minutes === undefined ? performance.now() : began) + most);
  await removeTempDirs();
  print(failures === 0 ? "Every promise was kept" : `${failures} failures`);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

/** Plays something, and says how to play it again if it fails. Whoever watches is told, who can name it if it never ends. */
async function attempt<Value>(
  name: string,
  nth: number,
  play: () => Promise<Value>,
): Promise<Value | undefined> {
  process.send?.([name, nth]);
  try {
    return await play();
  } catch (error) {
    failures += 1;
    print(`FAILED ${name}: ${inspect(error).slice(0, 5_000)}`);
    print(`  play it again: npm run test:lab -- --only "${name}" --seed ${nth}`);
    return undefined;
  }
}

/** Plays the faults in an order that the seed decides, and says what happened. */
async function playFaults(ends: number): Promise<void> {
  const all = await allScenarios();
  const chosen = all.filter(({ name }) => [undefined, "faults"].includes(only) || name.includes(only ?? ""));
  if (chosen.length === 0) throw new Error(`Nothing is called "${only}"`);
  const dice = new Dice(seed);
  const todo = chosen.map((scenario) => ({ scenario, place: dice.next() }));
  todo.sort((one, other) => one.place - other.place);
  let played = 0;
  const worker = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined && performance.now() < ends; next = todo.shift()) {
      const { scenario } = next;
      played += 1;
      await attempt(scenario.name, seed, async () => {
        const { happened, violations } = await runScenario(scenario);
        print(`| ${scenario.name.replaceAll("|", "\\|")} | ${happened} |`);
        refuse(violations);
      });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  print(`${played} of ${chosen.length} faults`);
}

/** Plays one seed after the other of each player, in turns, until the time is up: each has played one then. */
async function playSeeds(players: readonly string[], ends: number): Promise<void> {
  const counts = new Map(players.map((name) => [name, { seeds: 0, things: 0 }]));
  do {
    for (const [name, count] of counts) {
      const target = await TARGETS[name]?.open();
      const turn = Math.min(ends, performance.now() + TURN_MS);
      do {
        const nth = seed + count.seeds;
        const play = async () =>
          target === undefined ? refuse(await playPipeline(nth)) : await playOne(target, nth);
        count.things += (await attempt(name, nth, play)) ?? 0;
        count.seeds += 1;
      } while (performance.now() < turn);
      await target?.close();
    }
  } while (performance.now() < ends);
  for (const [name, { seeds, things }] of counts)
    print(`${name}: ${seeds} seeds from ${seed}, ${things} things`);
}

/** Throws the promises that were broken. Returns that one thing was played. */
function refuse(violations: readonly string[]): number {
  if (violations.length > 0) throw new Error(violations.slice(0, 20).join("\n"));
  return 1;
}

// The work is done while this module loads, because commands import what they need when they need it.
await main();
process.exitCode = failures === 0 ? 0 : FAILED;
