import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { allContestants, type Contestant, install } from "./contestant.ts";
import { noiseOf, outcomeOf, type Verdict } from "./judge.ts";
import { type Entry, section, toPage, toStable } from "./page.ts";
import { play } from "./play.ts";
import { SITUATIONS, type Situation } from "./situations.ts";

const PAGE = new URL("../docs/storm.md", import.meta.url);
const FOLDERS = fileURLToPath(new URL("../.cache/storm/runs", import.meta.url));
/** What makes a run wait for a minute or more. Many of these fit beside each other on a small machine. */
const SLOW = /^stall|gateway|503:times=always|429=1/;
/** What makes somebody ask for minutes, at the service's limit of requests. */
const SLOWEST = /^end.*always|^count/;
const SLOW_AT_ONCE = 8;
const AT_ONCE = 3;

type Task = { readonly contestant: Contestant; readonly situation: Situation };

/**
 * Plays the storm and returns the exit code. All of it is compared with docs/storm.md; `--write` writes that page instead;
 * `--who ID` and `--only TEXT` play a part of it and print its tables.
 */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
  const { who, only, write } = parseArgs({
    args: [...args],
    options: { who: { type: "string" }, only: { type: "string" }, write: { type: "boolean" } },
  }).values;
  const situations = SITUATIONS.filter(
    ({ name }) => name === "calm" || only === undefined || name.includes(only),
  );
  const contestants = allContestants().filter(({ id }) => who === undefined || id === who);
  const skipped = new Map<string, string>();
  for (const contestant of contestants) {
    const why = await install(contestant);
    if (why !== undefined) skipped.set(contestant.id, why);
    print(`${contestant.name}: ${why === undefined ? "ready" : `skipped, because ${why}`}`);
  }
  const present = contestants.filter(({ id }) => !skipped.has(id));
  const verdicts = await playAll(present, situations, print);
  const entries = contestants.map(
    (contestant): Entry => ({
      contestant,
      verdicts: verdicts.get(contestant.id) ?? new Map(),
      skipped: skipped.get(contestant.id),
    }),
  );
  if (who !== undefined || only !== undefined) {
    for (const situation of situations) print(`\n${section(situation, entries)}`);
    return 0;
  }
  const page = toPage(situations, entries);
  if (write) {
    writeFileSync(PAGE, page);
    return 0;
  }
  return compared(readFileSync(PAGE, "utf8"), page, print);
}

/** Prints in what two pages differ that should be the same; a contestant that was skipped differs in nothing. */
export function compared(written: string, played: string, print: (text: string) => void): number {
  const [before, after] = [written, played].map(keyed);
  const different = [...(after ?? [])].filter(([key, line]) => before?.get(key) !== line);
  for (const [key, line] of different)
    print(`DIFFERENT ${key}\n  page: ${before?.get(key)}\n  now:  ${line}`);
  print(`${after?.size} lines played, ${different.length} differ from docs/storm.md`);
  return different.length === 0 ? 0 : 1;
}

/** The stable lines of a page by situation and contestant. */
function keyed(page: string): ReadonlyMap<string, string> {
  let situation = "";
  return new Map(
    toStable(page).flatMap((line): [string, string][] => {
      if (!line.startsWith("###")) return [[`${situation} ${line.split(" | ")[0]}`, line]];
      situation = line;
      return [];
    }),
  );
}

type Verdicts = ReadonlyMap<string, ReadonlyMap<string, Verdict>>;

async function playAll(
  contestants: readonly Contestant[],
  situations: readonly Situation[],
  print: (text: string) => void,
): Promise<Verdicts> {
  const noise = new Map<string, ReadonlySet<string>>();
  const verdicts = new Map(contestants.map(({ id }) => [id, new Map<string, Verdict>()]));
  const began = performance.now();
  const playOne = async ({ contestant, situation }: Task): Promise<void> => {
    const folder = join(FOLDERS, contestant.id, situation.name.replace(/\W+/g, "-"));
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const known = noise.get(contestant.id);
    const { verdict, output } = await play(contestant, situation, folder, known ?? new Set());
    const told = known === undefined ? verdict.exit !== 0 : verdict.told;
    if (known === undefined) noise.set(contestant.id, noiseOf(output));
    verdicts.get(contestant.id)?.set(situation.name, { ...verdict, told });
    writeFileSync(join(folder, "complaints.txt"), output.complaints.join("\n"));
    rmSync(join(folder, "delivered"), { recursive: true, force: true });
    const seconds = Math.round((performance.now() - began) / 1000);
    print(`${String(seconds).padStart(4)} s  ${contestant.id}, ${situation.name}: ${outcomeOf(verdict)}`);
  };
  const [calm, ...others] = situations;
  if (calm === undefined) return verdicts;
  const each = (situation: Situation): readonly Task[] =>
    contestants.map((contestant) => ({ contestant, situation }));
  await inLanes(each(calm), AT_ONCE, playOne);
  const patience = ({ faults }: Situation): number =>
    Math.max(0, ...faults.map((fault) => (SLOWEST.test(fault) ? 2 : SLOW.test(fault) ? 1 : 0)));
  const waiting = others
    .filter((situation) => patience(situation) > 0)
    .sort((a, b) => patience(b) - patience(a));
  await Promise.all([
    inLanes(waiting.flatMap(each), SLOW_AT_ONCE, playOne),
    inLanes(others.filter((situation) => patience(situation) === 0).flatMap(each), AT_ONCE, playOne),
  ]);
  return verdicts;
}

async function inLanes(
  tasks: readonly Task[],
  lanes: number,
  playOne: (task: Task) => Promise<void>,
): Promise<void> {
  const todo = [...tasks];
  const lane = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift()) await playOne(next);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
