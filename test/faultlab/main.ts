import { readFileSync, writeFileSync } from "node:fs";
import { play, type Result, type Scenario } from "./scenario.ts";
import { allScenarios } from "./scenarios.ts";
import { toTable, withTable } from "./table.ts";

const AT_ONCE = 4;

/** Plays every scenario; returns the exit code. `--write`: puts the table into docs/reliability.md. */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
  const only = args.find((arg) => !arg.startsWith("-"));
  const all = await allScenarios();
  const chosen = all.filter(({ name }) => only === undefined || name.includes(only));
  const results = await playAll(chosen, print);
  print(toTable(results));
  const broken = results.filter(({ violations }) => violations.length > 0);
  for (const { name, violations } of broken) print(`VIOLATED ${name}: ${violations.join("; ")}`);
  print(`${results.length} scenarios, ${broken.length} with violations`);
  if (args.includes("--write") && only === undefined) {
    const file = new URL("../../docs/reliability.md", import.meta.url);
    writeFileSync(file, withTable(readFileSync(file, "utf8"), toTable(results)));
  }
  return broken.length === 0 ? 0 : 1;
}

async function playAll(scenarios: readonly Scenario[], print: (text: string) => void): Promise<Result[]> {
  const results: Result[] = [];
  const todo = [...scenarios.entries()];
  const worker = async (): Promise<void> => {
    for (let next = todo.shift(); next !== undefined; next = todo.shift()) {
      const [index, scenario] = next;
      results[index] = await play(scenario);
      if ((index + 1) % 50 === 0) print(`… ${index + 1} of ${scenarios.length}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
