import { parseArgs } from "node:util";
import { removeTempDirs } from "../support/temp-dir.ts";
import { allScenarios } from "./faultlab/fault-matrix.ts";
import { runScenario, type Scenario } from "./faultlab/run-scenario.ts";
import { playPipeline } from "./faultlab/soak.ts";
import { Dice } from "./fuzz/dice.ts";
import { playOne, TARGETS } from "./fuzz/main.ts";

/** Minutes of soak and fuzz when nobody says how many. */
const USUAL_MINUTES = 4;
/** The share of the minutes that the faults have when there are not enough for all of them. */
const FAULTS_SHARE = 1 / 3;
/** Seeds that one player plays before the next. */
const TURN_MS = 1_500;
const AT_ONCE = 2;

type Lab = {
  readonly seed: number;
  readonly only: string | undefined;
  failures: number;
};

/**
 * `--minutes M`, `--seed S`, `--only NAME`: faults, soak, fuzz, an input of the fuzz, or a part of the name of a fault.
 * Returns the exit code. A seed with one thing and without minutes plays that seed alone.
 */
async function main(args: readonly string[]): Promise<number> {
  const texts = { minutes: { type: "string" }, seed: { type: "string" }, only: { type: "string" } } as const;
  const { minutes, seed: given, only } = parseArgs({ args: [...args], options: texts }).values;
  const seed = Number(given ?? Math.floor(Math.random() * 1_000_000));
  if (![seed, Number(minutes ?? 1)].every((number) => number >= 0))
    throw new Error("Minutes and seed are numbers");
  const lab: Lab = { seed, only, failures: 0 };
  print(`seed ${seed}`);
  const names = ["soak", ...Object.keys(TARGETS)].filter(
    (name) => only === undefined || only === name || (only === "fuzz" && name !== "soak"),
  );
  const began = performance.now();
  const ends = began + Number(minutes ?? USUAL_MINUTES) * 60_000;
  const forFaults = names.length === 0 ? 1 : FAULTS_SHARE;
  if (only === undefined || only === "faults" || names.length === 0)
    await playFaults(
      lab,
      minutes === undefined ? Number.POSITIVE_INFINITY : began + (ends - began) * forFaults,
    );
  if (names.length === 1 && given !== undefined && minutes === undefined) await playSeeds(lab, names, 0);
  else await playSeeds(lab, names, minutes === undefined ? performance.now() + USUAL_MINUTES * 60_000 : ends);
  await removeTempDirs();
  print(lab.failures === 0 ? "Every promise was kept" : `${lab.failures} failures`);
  return lab.failures === 0 ? 0 : 1;
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);
/** Tells whoever watches, who can name it if it never ends. */
const playing = (only: string, seed: number): void => void process.send?.([only, seed]);

function fail(lab: Lab, only: string, seed: number, what: string): void {
  lab.failures += 1;
  print(`FAILED ${only}: ${what}\n  play it again: npm run test:lab -- --only "${only}" --seed ${seed}`);
}

/** Plays the faults in an order that the seed decides, and prints a table in theirs. */
async function playFaults(lab: Lab, ends: number): Promise<void> {
  const all = await allScenarios();
  const chosen = all.filter(
    ({ name }) => [undefined, "faults"].includes(lab.only) || name.includes(lab.only ?? ""),
  );
  if (chosen.length === 0) throw new Error(`Nothing is called "${lab.only}"`);
  const dice = new Dice(lab.seed);
  const places = new Map(chosen.map((scenario) => [scenario, dice.next()]));
  const todo = chosen.toSorted((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
  const rows = new Map<Scenario, string>();
  const worker = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined && performance.now() < ends; next = todo.shift()) {
      playing(next.name, lab.seed);
      const { name } = next;
      const played = await runScenario(next).catch(describe);
      if (typeof played === "string") {
        fail(lab, name, lab.seed, played);
        continue;
      }
      const { happened, served, delivered, repeated, requests, violations } = played;
      const cells = [name.replaceAll("|", "\\|"), happened, served, delivered, repeated, requests];
      rows.set(next, `| ${cells.join(" | ")} |`);
      if (violations.length > 0) fail(lab, name, lab.seed, violations.join("; "));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  print(
    "| fault | what happened | served | delivered | repeated | requests |\n| --- | --- | ---: | ---: | ---: | ---: |",
  );
  for (const scenario of chosen) if (rows.has(scenario)) print(rows.get(scenario) ?? "");
  print(`${rows.size} of ${chosen.length} faults`);
}

/** Plays one seed after the other of each, in turns, until the time is up: each has played one then. */
async function playSeeds(lab: Lab, names: readonly string[], ends: number): Promise<void> {
  const counts = new Map(names.map((name) => [name, { seeds: 0, units: 0 }]));
  do {
    for (const [name, count] of counts) {
      const target = await TARGETS[name]?.open();
      const turn = Math.min(ends, performance.now() + TURN_MS * (target === undefined ? 4 : 1));
      do {
        const seed = lab.seed + count.seeds;
        playing(name, seed);
        const found = await (target === undefined ? soakOne(seed) : playOne(target, seed)).catch(describe);
        count.seeds += 1;
        if (typeof found === "string") fail(lab, name, seed, found);
        else count.units += found;
      } while (performance.now() < turn);
      await target?.close();
    }
  } while (performance.now() < ends);
  for (const [name, { seeds, units }] of counts)
    print(
      `${name}: ${seeds} seeds from ${lab.seed}${units > seeds ? `, ${units.toLocaleString("en-US")} things` : ""}`,
    );
}

async function soakOne(seed: number): Promise<number> {
  const violations = await playPipeline(seed);
  if (violations.length > 0) throw new Error(violations.join("\n"));
  return 1;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`;
  return `${(error.stack ?? error.message).slice(0, 4_000)}${cause}`;
}

// The work is done while this module loads, because commands import what they need when they need it.
process.exitCode = await main(process.argv.slice(2));
