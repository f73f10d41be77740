import { parseArgs } from "node:util";
import { removeTempDirs } from "../../support/temp-dir.ts";
import { soak } from "./soak.ts";

const options = {
  minutes: { type: "string" },
  pipelines: { type: "string" },
  seed: { type: "string" },
} as const;

/** `--minutes N` or `--pipelines N`, and `--seed S`; returns the exit code. */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
  const { minutes = 5, pipelines, seed: given } = parseArgs({ args: [...args], options }).values;
  const seed = Number(given ?? Math.floor(Math.random() * 1_000_000));
  print(`seed ${seed}`);
  const most = pipelines === undefined ? {} : { pipelines: Number(pipelines) };
  const figures = await soak({ minutes: Number(minutes), seed, print, ...most });
  await removeTempDirs();
  return figures.violations === 0 ? 0 : 1;
}
