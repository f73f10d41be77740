import { writeFileSync } from "node:fs";
import { allScenarios } from "./fault-matrix.ts";
import { type Result, runScenario, type Scenario } from "./run-scenario.ts";
import { PAGE, toPage, toRow, toTable } from "./table.ts";

const AT_ONCE = 2;
/** What takes longer is named, so that a person who waits knows for what. */
const SLOW_SECONDS = 10;

/** Plays every scenario, or those whose name holds a text; returns the exit code. `--write`, with all: renews fault-lab.md. */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
  const only = args.find((arg) => !arg.startsWith("-"));
  const all = await allScenarios();
  const chosen = all.filter(({ name }) => only === undefined || name.includes(only));
  const results = await playAll(chosen, print);
  print(toTable(results.map(toRow)));
  const broken = results.filter(({ violations }) => violations.length > 0);
  for (const { name, violations } of broken)
    print(`VIOLATED ${name}: ${violations.join("; ")}\n  replay: npm run faultlab -- "${name}"`);
  print(`${results.length} scenarios, ${broken.length} with violations`);
  if (args.includes("--write") && only === undefined) writeFileSync(PAGE, toPage(results.map(toRow)));
  return broken.length === 0 ? 0 : 1;
}

async function playAll(scenarios: readonly Scenario[], print: (text: string) => void): Promise<Result[]> {
  const results: Result[] = [];
  const todo = [...scenarios.entries()];
  const worker = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift()) {
      const [index, scenario] = next;
      const began = performance.now();
      results[index] = await runScenario(scenario);
      const seconds = Math.round((performance.now() - began) / 1000);
      if (seconds >= SLOW_SECONDS) print(`… ${seconds} s for ${scenario.name}`);
      if ((index + 1) % 50 === 0) print(`… ${index + 1} of ${scenarios.length}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
