import { removeTempDirs } from "../support/temp-dir.ts";
import { soak } from "./soak.ts";

/** `--minutes N` or `--pipelines N`, and `--seed S`; returns the exit code. */
export async function main(args: readonly string[], print: (text: string) => void): Promise<number> {
  const pipelines = numberOf(args, "--pipelines");
  const seed = numberOf(args, "--seed") ?? Math.floor(Math.random() * 1_000_000);
  print(`seed ${seed}`);
  const figures = await soak({
    minutes: numberOf(args, "--minutes") ?? 5,
    seed,
    print,
    ...(pipelines !== undefined && { pipelines }),
  });
  await removeTempDirs();
  return figures.violations === 0 ? 0 : 1;
}

function numberOf(args: readonly string[], name: string): number | undefined {
  const at = args.indexOf(name);
  return at < 0 ? undefined : Number(args[at + 1]);
}
