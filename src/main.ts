import { constants } from "node:os";
import { setFlagsFromString } from "node:v8";
import { systemClock } from "./base/clock.ts";
import { ConfigError, OutputError, UsageError } from "./base/errors.ts";
import { readPackageFile } from "./base/package-file.ts";
import type { Command } from "./cli.ts";
import { systemProcesses } from "./output/files/processes.ts";
import { wholeOutput } from "./output/files/stdout.ts";
import type { Runtime } from "./run/runtime.ts";

/** How long (ms) an interrupted run may take to write what it has begun; platforms kill after ten seconds. */
const GRACE_MS = 8_000;

/** Keeps V8 from optimizing undici's WebAssembly parser, which costs a short sync 35 MiB and a quarter of its processor time. */
const BASELINE_WASM = "--liftoff-only --no-wasm-dynamic-tiering --no-wasm-tier-up";
/** Functions that see each row are short. Optimizing longer ones (bytes of bytecode) costs a tenth of a read's time. */
const SHORT_FUNCTIONS = "--max-optimized-bytecode-size=1000";

/** Parses a command line; throws UsageError. */
type Parse = (args: readonly string[], version: string) => Promise<Command>;

/** Wires the process: argv, stdio, signals, exit code. The only place that touches `process`. */
export async function main(openParse: () => Promise<Parse>): Promise<void> {
  setFlagsFromString(BASELINE_WASM);
  setFlagsFromString(SHORT_FUNCTIONS);
  const isAdrift = lacksFolder();
  const abort = new AbortController();
  const lastActs: (() => void)[] = [];
  let interruptedBy: NodeJS.Signals | undefined;
  const endByForce = (signal: NodeJS.Signals): void => {
    for (const act of lastActs) act();
    endBy(signal);
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interruptedBy !== undefined) return;
      interruptedBy = signal;
      abort.abort(new Error(`Interrupted by ${signal}`));
      setTimeout(() => endByForce(signal), GRACE_MS).unref();
    });
  }
  const runtime: Runtime = {
    clock: systemClock,
    signal: abort.signal,
    environment: process.env,
    random: Math.random,
    pid: process.pid,
    processes: systemProcesses(process.pid),
    atEnd: (act) => void lastActs.push(act),
    stdout: wholeOutput(process.stdout),
    stderr: process.stderr,
    stdin: () => process.stdin,
  };
  try {
    process.exitCode = await runProgram(openParse, process.argv.slice(2), runtime);
    if (isAdrift && process.exitCode !== 0) runtime.stderr.write(ADRIFT);
  } catch (error) {
    if (interruptedBy === undefined) throw error;
    await written(runtime.stdout);
    endBy(interruptedBy);
  }
}

const ADRIFT =
  "The folder in which this program was started is gone. Use absolute paths, or start it in another folder\n";

/** Libraries ask for the working folder although every path is absolute. In one that was removed, relative ones lead nowhere. */
function lacksFolder(): boolean {
  try {
    process.cwd();
    return false;
  } catch {
    process.cwd = () => ".";
    return true;
  }
}

/** Runs a command line and writes an error to stderr. Returns the exit code. After a signal it throws what the command throws. */
export async function runProgram(
  openParse: () => Promise<Parse>,
  args: readonly string[],
  runtime: Runtime,
): Promise<number> {
  let command: Command | undefined;
  try {
    const { version } = readPackageFile("package.json") as { version: string };
    // Scripts ask for it alone: loading the parser would take most of the time.
    if (args.length === 1 && /^(?:--version|-v)$/.test(args[0] ?? "")) {
      runtime.stdout.write(`${version}\n`);
      return 0;
    }
    const parse = await openParse();
    command = await parse(args, version);
    return await command.run(runtime);
  } catch (error) {
    if (runtime.signal.aborted) throw error;
    return await reportError(error, command, runtime.stderr);
  }
}

/** Resolves when the lines that were begun have left, or never will. */
function written(out: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => out.write("", () => resolve()));
}

/** Writes an error to stderr. A reader that stops early, such as `head`, is an error only on a platform. Returns the exit code. */
async function reportError(
  error: unknown,
  command: Command | undefined,
  stderr: NodeJS.WritableStream,
): Promise<number> {
  const { fitText } = await import("./protocol/error-text.ts");
  const { OutputClosed } = await import("./protocol/writer.ts");
  if (error instanceof OutputClosed && error.isUnread) return command?.isForPlatform === true ? 1 : 0;
  const text = error instanceof Error ? error.message : String(error);
  stderr.write(`${fitText(text)}\n`);
  const isForPerson =
    error instanceof ConfigError && !(error instanceof OutputError) && command?.isForPlatform !== true;
  return error instanceof UsageError || isForPerson ? 2 : 1;
}

/** Ends as the signal would have ended us; as PID 1 the kernel ignores a signal sent to ourselves. */
function endBy(signal: NodeJS.Signals): void {
  if (process.pid === 1) process.exit(128 + constants.signals[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
