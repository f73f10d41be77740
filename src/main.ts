import { readFileSync } from "node:fs";
import type { Command } from "./cli.ts";
import type { Process } from "./commands/world.ts";
import { UsageError } from "./errors.ts";
import { systemClock } from "./service/clock.ts";

/** How long (ms) an interrupted run may take to write what it has begun; platforms kill after ten seconds. */
const GRACE_MS = 8_000;

/** The signal that ended the run. */
class Interrupted extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}`);
    this.signal = signal;
  }
}

/** Parses a command line; throws UsageError. */
type Parse = (args: readonly string[], version: string) => Promise<Command>;

/** Wires the process: argv, stdio, signals, exit code. The only place that touches `process`. */
export async function main(openParse: () => Promise<Parse>): Promise<void> {
  const abort = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (abort.signal.aborted) return;
      abort.abort(new Interrupted(signal));
      setTimeout(() => endBy(signal), GRACE_MS).unref();
    });
  }
  const world: Process = {
    clock: systemClock,
    signal: abort.signal,
    environment: process.env,
    random: Math.random,
    pid: process.pid,
    stdout: process.stdout,
    stderr: process.stderr,
  };
  try {
    process.exitCode = await obey(await openParse(), world);
  } catch (error) {
    const { reason } = abort.signal;
    if (!(reason instanceof Interrupted)) {
      process.exitCode = await complain(error);
      return;
    }
    await written(process.stdout);
    endBy(reason.signal);
  }
}

async function obey(parse: Parse, world: Process): Promise<number> {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return await run(await parse(process.argv.slice(2), version), world);
}

/** What every run needs is little; the rest is loaded when a command asks for it, so that `spec` is quick. */
async function run(command: Command, world: Process): Promise<number> {
  switch (command.kind) {
    case "spec":
      return (await import("./commands/spec.ts")).spec(world);
    case "check":
      return (await import("./commands/check.ts")).check(command.config, world);
    case "discover":
      return (await import("./commands/discover.ts")).discover(command.config, world);
    case "read":
      return (await import("./commands/read.ts")).read(command, world);
    case "sandbox":
      return (await import("./commands/sandbox.ts")).sandbox(command, world);
    case "demo":
      return (await import("./commands/demo.ts")).demo(world);
    case "tap":
      return (await import("./commands/tap.ts")).tap(command, world);
    case "text":
      process.stdout.write(`${command.text}\n`);
      return 0;
  }
}

/** Resolves when the lines that were begun have left, or never will. */
function written(out: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => out.write("", () => resolve()));
}

/** A closed output is told nothing: nobody reads it. */
async function complain(error: unknown): Promise<number> {
  const { OutputClosed } = await import("./protocol/writer.ts");
  if (error instanceof OutputClosed) return 1;
  const text = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${text}\n`);
  return error instanceof UsageError ? 2 : 1;
}

/** Ends as the signal would have ended us; as PID 1 the kernel ignores a signal sent to ourselves. */
function endBy(signal: NodeJS.Signals): void {
  const numbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
  if (process.pid === 1) process.exit(128 + (numbers[signal] ?? 15));
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
