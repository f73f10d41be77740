import { type Clock, systemClock } from "../../src/base/clock.ts";
import { runProgram } from "../../src/main.ts";
import { systemProcesses } from "../../src/output/files/processes.ts";
import type { Ended } from "./run.ts";
import { Kept, testProcess } from "./terminal.ts";

/** A clock that runs faster than the machine's: a wait before a retry takes a fraction of its time. */
export function hurriedClock(speed = 50): Clock {
  const [start, began] = [Date.now(), performance.now()];
  const passed = (): number => (performance.now() - began) * speed;
  return {
    now: () => start + passed(),
    monotonic: () => began + passed(),
    sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
  };
}

const PARSERS = {
  connector: async () => (await import("../../src/cli.ts")).parseCommand,
  tap: async () => (await import("../../src/tap-cli.ts")).parseTapCommand,
};

export type Program = keyof typeof PARSERS;

/** Runs a command line within this process, as the program runs it. */
export async function runInProcess(
  program: Program,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  clock = systemClock,
): Promise<Ended> {
  const { pid } = process;
  const [stdout, stderr] = [new Kept(), new Kept()];
  const runtime = testProcess({ clock, environment, stdout, stderr, pid, processes: systemProcesses(pid) });
  const code = await runProgram(PARSERS[program], args, runtime);
  return { code, signal: null, stdout: stdout.text, stderr: stderr.text };
}
