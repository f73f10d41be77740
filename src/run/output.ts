import { TransientError } from "../errors.ts";
import type { Language } from "../protocol/language.ts";
import { type LogLevel, log, logLevelOf } from "../protocol/log.ts";
import { OutputClosed, Writer } from "../protocol/writer.ts";
import { stateKey } from "../state/envelopes.ts";
import type { Event } from "../streams/event.ts";
import type { FolderOutput } from "./folder-output.ts";
import { metricsOf } from "./metrics.ts";
import { type Display, openDisplay, progressLog } from "./progress.ts";
import type { Runtime } from "./runtime.ts";
import type { StateFile } from "./state-file.ts";
import { RunStats } from "./stats.ts";
import {
  checkSummaryPath,
  type RunSummary,
  runText,
  streamText,
  summaryText,
  timeLimitText,
  toSummary,
  writeSummary,
} from "./summary.ts";

export type OutputOptions = {
  /** By which this program is known in its logs. */
  readonly name: string;
  /** Whether the language has no words for logs, so that they go to stderr. */
  readonly logs: boolean;
  /** Whether stdout has no words for state either. */
  readonly bare?: boolean;
  /** Whether the log takes the metrics of each stream. */
  readonly metrics?: boolean;
  /** Whether records go to files, so that stdout gets nothing. */
  readonly files?: boolean;
  readonly logLevel?: LogLevel | undefined;
  /** File that takes the summary of the run. */
  readonly summary?: string | undefined;
};

/** How often (ms) a log says how far a run is. */
const PROGRESS_MS = 30_000;

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
  /** Takes the records and the state in place of stdout and of a state file. */
  folder: FolderOutput | undefined;
  readonly stats: RunStats;
  readonly #options: OutputOptions;
  readonly #runtime: Runtime;
  readonly #startedAt: number;
  readonly #messages: Writer;
  readonly #logs: Writer | undefined;
  readonly #display: Display | undefined;
  readonly #heartbeat: NodeJS.Timeout;

  private constructor(
    options: OutputOptions,
    runtime: Runtime,
    stats: RunStats,
    display: Display | undefined,
  ) {
    const mask = (text: string): string => this.mask(text);
    this.stats = stats;
    this.#options = options;
    this.#runtime = runtime;
    this.#startedAt = runtime.clock.now();
    this.#messages = new Writer(
      (event) => this.say(event),
      runtime.stdout,
      (event) => this.#save(event),
      { mask },
    );
    this.#logs = logWriter(options, runtime, mask, display !== undefined);
    this.#display = display;
    this.#heartbeat = setInterval(() => void this.#sayProgress(), PROGRESS_MS).unref();
  }

  /** Throws ConfigError if the summary cannot be written where it should be. */
  static async open(options: OutputOptions, runtime: Runtime): Promise<Output> {
    if (options.summary !== undefined) await checkSummaryPath(options.summary);
    const stats = new RunStats(runtime.clock.monotonic);
    return new Output(options, runtime, stats, await openDisplay(stats, runtime, options.files === true));
  }

  async emit(event: Event): Promise<void> {
    const { outcome } = this.stats.current ?? {};
    this.stats.note(event);
    if (event.kind === "log" && event.endOf !== undefined) return;
    this.#display?.show();
    if (outcome === "reading" && (event.kind === "close" || event.kind === "failed"))
      await this.#sayMetrics();
    if (event.kind === "end") await this.#sayEnd();
    await this.#pass(event);
    if (event.kind === "close") await this.#sayClose(event.stream);
  }

  /** Returns when all has left, the summary too. */
  async close(): Promise<void> {
    await this.#messages.close();
    clearInterval(this.#heartbeat);
    this.#display?.stop();
    await unlessClosed(this.#logs?.close());
    const { stderr } = this.#runtime;
    const summary = this.#summary();
    if (stderr.isTTY === true) stderr.write(this.mask(summaryText(summary)));
    const { summary: path } = this.#options;
    if (path !== undefined) await writeSummary(path, summary, this.mask);
  }

  /** Tells the log. */
  readonly notify = (text: string): void => {
    void this.emit({ kind: "log", level: "info", text }).catch(() => undefined);
  };

  /** Where the state is saved, if the run saves any. */
  get statePath(): string | undefined {
    return (this.folder?.state ?? this.stateFile)?.path;
  }

  /** Throws TransientError if another run has taken over the state that this one saves. */
  async checkLock(): Promise<void> {
    await (this.folder?.state ?? this.stateFile)?.check();
  }

  /** Leaves the terminal as it was and gives the locks back, even if nothing more can be written. */
  async release(): Promise<void> {
    clearInterval(this.#heartbeat);
    this.#display?.stop();
    await this.folder?.release();
    await this.stateFile?.release();
  }

  /** What of an interrupted run is saved, and where. */
  get saved(): string {
    const stdout = this.#options.bare === true ? undefined : "the last STATE message on stdout";
    const place = this.statePath === undefined ? stdout : `"${this.statePath}"`;
    if (place === undefined) return "no state is saved. Add --state-file FILE or --output DIR to save it";
    const streams = this.#summary().streams.filter((stream) => stream.state_after !== null);
    if (streams.length === 0)
      return "nothing new was ready to be saved. Run again to start where this run did";
    const named = streams.map(
      ({ stream, saved_up_to: until }) => `${stream}${until === null ? "" : ` up to ${until}`}`,
    );
    return `saved ${named.join(", ")} in ${place}. Run again to continue`;
  }

  #summary(): RunSummary {
    const { clock, signal } = this.#runtime;
    return toSummary(this.stats, {
      startedAt: this.#startedAt,
      endedAt: clock.now(),
      interrupted: signal.aborted,
      savedTo: this.statePath,
    });
  }

  async #pass(event: Event): Promise<void> {
    if (event.kind !== "records" && event.kind !== "checkpoint") await unlessClosed(this.#logs?.emit(event));
    if (this.folder === undefined) return await this.#messages.emit(event);
    await this.folder.emit(event);
    const { published, state } = this.folder;
    this.stats.noteFolder(published, state.streams);
  }

  async #inform(text: string): Promise<void> {
    await this.#pass({ kind: "log", level: "info", text });
  }

  async #sayProgress(): Promise<void> {
    const text = progressLog(this.stats);
    if (text !== undefined) await this.#inform(text).catch(() => undefined);
  }

  async #sayMetrics(): Promise<void> {
    const { current } = this.stats;
    if (this.#options.metrics !== true || current === undefined) return;
    for (const point of metricsOf(current, this.#runtime.pid)) await this.#pass(point);
  }

  async #sayClose(name: string): Promise<void> {
    const stream = this.#summary().streams.at(-1);
    if (stream?.stream !== name) return;
    await this.#inform([`Stream "${name}": ${streamText(stream)}`, ...this.stats.takeEndings()].join("; "));
    const limit = timeLimitText(stream);
    if (limit !== undefined) await this.#inform(limit);
  }

  async #sayEnd(): Promise<void> {
    for (const text of this.stats.takeEndings()) await this.#inform(text);
    const summary = this.#summary();
    if (summary.streams.length > 0) await this.#inform(runText(summary));
  }

  async #save(event: Event): Promise<void> {
    if (event.kind !== "checkpoint") return;
    await this.stateFile?.save(stateKey(event.stream, event.namespace), event.state);
    this.stats.noteSaved(event.stream, event.state);
  }
}

/** The output of every Singer command: the language comes later, and has no words for logs. */
export async function openTapOutput(logLevel: LogLevel | undefined, runtime: Runtime): Promise<Output> {
  return await Output.open(
    { name: "tap-contact-intelligence", logs: true, metrics: true, logLevel },
    runtime,
  );
}

/**
 * A person at a terminal is told what is wrong even where the language has its own logs, unless its messages go to a
 * terminal too. The progress and the summary say the rest.
 * @param isDrawn whether progress is shown, which says what the run waits for
 */
function logWriter(
  options: OutputOptions,
  runtime: Runtime,
  mask: (text: string) => string,
  isDrawn: boolean,
): Writer | undefined {
  const { name, logs, logLevel } = options;
  const { stdout, stderr, clock, pid, environment } = runtime;
  const readable = stderr.isTTY === true;
  if (!logs && (!readable || stdout.isTTY === true)) return undefined;
  const level = logLevel ?? logLevelOf(environment, readable ? "warning" : "info");
  return new Writer(
    log({ name, pid, now: clock.now, level, readable, waits: readable && !isDrawn ? "warning" : "info" }),
    stderr,
    undefined,
    { mask },
  );
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
export async function runToEnd(
  output: Output,
  { signal }: Runtime,
  work: () => Promise<boolean>,
): Promise<number> {
  let complete = false;
  try {
    try {
      complete = await work();
    } catch (error) {
      if (error instanceof OutputClosed) throw error;
      await output.emit({ kind: "failed", error: signal.aborted ? interrupted(signal, output) : error });
    }
    await output.emit({ kind: "end" });
    await output.close();
    signal.throwIfAborted();
    return complete ? 0 : 1;
  } finally {
    await output.release();
  }
}

function interrupted({ reason }: AbortSignal, { saved }: Output): TransientError {
  const what = reason instanceof Error ? reason.message : String(reason);
  return new TransientError(`${what}: ${saved}`);
}
