import { constants } from "node:os";
import { setFlagsFromString } from "node:v8";
import { systemClock } from "./base/clock.ts";
import { ConfigError, OutputError, UsageError } from "./base/errors.ts";
import { readPackageFile } from "./base/package-file.ts";
import type { Command } from "./cli.ts";
import { systemProcesses } from "./output/files/processes.ts";
import { wholeOutput } from "./output/files/stdout.ts";
import type { Runtime } from "./run/runtime.ts";

/** The time (ms) in which an interrupted run may finish its writes. Platforms kill a process after ten seconds. */
const GRACE_MS = 8_000;

/** V8 does not optimize undici's WebAssembly parser. To optimize it costs a short sync 35 MiB and a quarter of its time. */
const BASELINE_WASM = "--liftoff-only --no-wasm-dynamic-tiering --no-wasm-tier-up";
/** V8 does not optimize functions above this size (bytes of bytecode). To optimize them costs a tenth of the time of a read. */
const SHORT_FUNCTIONS = "--max-optimized-bytecode-size=1000";

/** Parses a command line. @throws UsageError */
type Parse = (args: readonly string[], version: string) => Promise<Command>;

/** Connects the program with `process`: arguments, streams, signals, exit code. */
export async function main(openParse: () => Promise<Parse>): Promise<void> {
  setFlagsFromString(BASELINE_WASM);
  setFlagsFromString(SHORT_FUNCTIONS);
  const isAdrift = lacksFolder();
  const abort = new AbortController();
  const lastActs: (() => void)[] = [];
  let interruptedBy: NodeJS.Signals | undefined;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interruptedBy !== undefined) return;
      interruptedBy = signal;
      abort.abort(new Error(`Interrupted by ${signal}`));
      const endByForce = (): void => {
        for (const act of lastActs) act();
        endBy(signal);
      };
      setTimeout(endByForce, GRACE_MS).unref();
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
    // Waits until stdout has sent all lines that are already written.
    await new Promise<void>((resolve) => runtime.stdout.write("", () => resolve()));
    endBy(interruptedBy);
  }
}

const ADRIFT =
  "The folder in which this program was started is gone. Use absolute paths, or start it in another folder\n";

/** Whether the working folder was removed. Replaces `cwd`, because libraries call it even for absolute paths. */
function lacksFolder(): boolean {
  try {
    process.cwd();
    return false;
  } catch {
    process.cwd = () => ".";
    return true;
  }
}

/** Runs a command line and writes an error to stderr. Returns the exit code. @throws the command's error after a signal */
export async function runProgram(
  openParse: () => Promise<Parse>,
  args: readonly string[],
  runtime: Runtime,
): Promise<number> {
  let command: Command | undefined;
  try {
    const { version } = readPackageFile("package.json") as { version: string };
    // Answers scripts without the parser, because loading it would take most of the time.
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

/** Writes an error to stderr and returns the exit code. If a reader such as `head` stops early, only a platform gets 1. */
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

/** Ends the process by a signal. As PID 1 it exits, because the kernel ignores its own signals. */
function endBy(signal: NodeJS.Signals): void {
  if (process.pid === 1) process.exit(128 + constants.signals[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
