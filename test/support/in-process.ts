import { Writable } from "node:stream";
import { type Clock, systemClock } from "../../src/api/clock.ts";
import type { ReadOptions } from "../../src/commands/read.ts";
import { systemProcesses } from "../../src/files/processes.ts";
import { runProgram } from "../../src/main.ts";
import { testProcess } from "./terminal.ts";

/** The options of `read` for one stream, with everything else from the environment. */
export const readOptions = (stream: string): ReadOptions => ({
  ...{ config: undefined, catalog: undefined, state: undefined },
  streams: [stream],
  format: "airbyte",
});

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
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const [stdout, stderr] = [new Kept(), new Kept()];
  const runtime = testProcess({ clock, environment, stdout, stderr, pid: process.pid });
  const code = await runProgram(PARSERS[program], args, {
    ...runtime,
    processes: systemProcesses(process.pid),
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** Keeps what is written to it, and says it in an encoding. */
export class Kept extends Writable {
  readonly #chunks: Buffer[] = [];
  readonly #encoding: BufferEncoding;

  constructor(encoding: BufferEncoding = "utf8") {
    super();
    this.#encoding = encoding;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString(this.#encoding);
  }
}
