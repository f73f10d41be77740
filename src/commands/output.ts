import { TransientError } from "../errors.ts";
import type { Language } from "../protocol/language.ts";
import { type LogLevel, log, logLevelOf } from "../protocol/log.ts";
import { OutputClosed, Writer } from "../protocol/writer.ts";
import type { Event } from "../sync/event.ts";
import { type Display, openDisplay } from "./display.ts";
import type { StateFile } from "./state-file.ts";
import type { Process } from "./world.ts";

export type OutputOptions = {
  /** By which this program is known in its logs. */
  readonly name: string;
  /** Whether the language has no words for logs, so that they go to stderr. */
  readonly logs: boolean;
  readonly logLevel?: LogLevel | undefined;
};

/**
 * Where the events of a run go: messages to stdout, logs and, at a terminal, progress to stderr, checkpoints into the
 * state file once their bytes have left.
 */
export class Output {
  /** What stdout speaks. Some languages are known only when it is known what is asked for. */
  say: Language = () => "";
  /** Applied to all text but records. */
  mask: (text: string) => string = (text) => text;
  stateFile: StateFile | undefined;
  readonly #messages: Writer;
  readonly #logs: Writer | undefined;
  readonly #display: Display | undefined;

  private constructor(options: OutputOptions, world: Process, display: Display | undefined) {
    const mask = (text: string): string => this.mask(text);
    this.#messages = new Writer(
      (event) => this.say(event),
      world.stdout,
      (event) => this.#save(event),
      { mask },
    );
    this.#logs = logWriter(options, world, mask);
    this.#display = display;
  }

  static async open(options: OutputOptions, world: Process): Promise<Output> {
    return new Output(options, world, await openDisplay(world));
  }

  async emit(event: Event): Promise<void> {
    if (event.kind !== "records" && event.kind !== "checkpoint") await unlessClosed(this.#logs?.emit(event));
    this.#display?.show(event);
    await this.#messages.emit(event);
  }

  /** Returns when all has left. */
  async close(): Promise<void> {
    await this.#messages.close();
    this.#display?.stop();
    await unlessClosed(this.#logs?.close());
    this.#display?.summarize();
  }

  /** Leaves the terminal as it was, even if nothing more can be written. */
  release(): void {
    this.#display?.stop();
  }

  async #save(event: Event): Promise<void> {
    if (event.kind === "checkpoint") await this.stateFile?.save(event.stream, event.state);
  }
}

/** The output of every Singer command: the language comes later, and has no words for logs. */
export async function openTapOutput(logLevel: LogLevel | undefined, world: Process): Promise<Output> {
  return await Output.open({ name: "tap-contact-intelligence", logs: true, logLevel }, world);
}

/** A person at a terminal is told what is wrong even where the language has its own logs. */
function logWriter(
  options: OutputOptions,
  world: Process,
  mask: (text: string) => string,
): Writer | undefined {
  const { name, logs, logLevel } = options;
  const { stderr, clock, pid, environment } = world;
  const readable = stderr.isTTY === true;
  if (!logs && !readable) return undefined;
  const level = logLevel ?? (logs ? logLevelOf(environment) : "warning");
  return new Writer(log({ name, pid, now: clock.now, level, readable }), stderr, undefined, { mask });
}

/** A log that nobody reads is no reason to stop. */
async function unlessClosed(written: Promise<void> | undefined): Promise<void> {
  try {
    await written;
  } catch (error) {
    if (!(error instanceof OutputClosed)) throw error;
  }
}

/**
 * Does a run's work and says how it ended, so that the output is whole whatever happens, a signal included.
 * @param work whether all that was asked for was delivered
 * @returns the exit code; throws for a signal, and for an output that nobody reads
 */
export async function conclude(
  output: Output,
  { signal }: Process,
  work: () => Promise<boolean>,
): Promise<number> {
  try {
    const complete = await outcome(output, signal, work);
    await output.emit({ kind: "end" });
    await output.close();
    signal.throwIfAborted();
    return complete ? 0 : 1;
  } finally {
    output.release();
  }
}

async function outcome(output: Output, signal: AbortSignal, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OutputClosed) throw error;
    await output.emit({ kind: "failed", error: signal.aborted ? interrupted(signal) : error });
    return false;
  }
}

function interrupted({ reason }: AbortSignal): TransientError {
  const what = reason instanceof Error ? reason.message : String(reason);
  return new TransientError(`${what}: what was delivered is kept, the next run goes on from the last state`);
}
