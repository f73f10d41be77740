import { ConfigError, OutputError, TransientError } from "../base/errors.ts";
import { type Config, secretsOf } from "../config/config.ts";
import type { Language } from "../protocol/language.ts";
import { type LogLevel, log, logLevelOf } from "../protocol/log.ts";
import { Mask } from "../protocol/mask.ts";
import { OutputClosed, Writer, write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Usage } from "../service/usage.ts";
import type { Event } from "../sync/event.ts";
import { metricsOf } from "./metrics.ts";
import { type Display, openDisplay, progressText } from "./progress.ts";
import { type Destination, openSink, type Sink } from "./sink.ts";
import { type CurrentStream, RunStats, type RunSummary } from "./stats.ts";
import {
  checkSummaryPath,
  runText,
  savedText,
  streamTexts,
  summaryText,
  windowsText,
  writeSummary,
} from "./summary.ts";

/** How a command reports a run. */
export type OutputOptions = {
  /** The name of this program in its logs. */
  readonly name: string;
  /** The language of stdout; undefined: it is silent. */
  readonly format?: Language | undefined;
  /** Whether the language has no words for logs, so that they go to stderr. */
  readonly logs: boolean;
  /** Whether stdout takes one answer after the run, so its terminal can show progress. No state is saved. */
  readonly flushBeforeAnswer?: boolean;
  /** Whether the log takes the metrics of each stream. */
  readonly metrics?: boolean;
  /** A person has exit code 2 for failures that only a person can correct, and stdout without state. Platforms know 0 and 1. */
  readonly reader?: "person" | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** File that takes the summary of the run. */
  readonly summary?: string | undefined;
};

type Parts = {
  readonly options: OutputOptions;
  readonly sink: Sink;
  /** Applied to all text but records. */
  readonly mask: Mask;
  readonly log: Writer | undefined;
  readonly stats: RunStats;
  readonly display: Display | undefined;
  readonly runtime: Runtime;
};

/** How often (ms) a log has the progress of a run. */
const PROGRESS_EVERY_MS = 30_000;

/** Passes records and state to the sink, logs to stderr, and shows progress there if it is a terminal. */
class Output {
  readonly sink: Sink;
  readonly mask: Mask;
  readonly #parts: Parts;
  readonly #heartbeat: NodeJS.Timeout;

  private constructor(parts: Parts) {
    this.sink = parts.sink;
    this.mask = parts.mask;
    this.#parts = parts;
    const tick = (): void => void this.#inform(progressText(parts.stats)).catch(() => undefined);
    this.#heartbeat = setInterval(tick, PROGRESS_EVERY_MS).unref();
  }

  /** Throws ConfigError, and TransientError while another run uses the place that records or state go to. */
  static async open(to: Destination, options: OutputOptions, mask: Mask, runtime: Runtime): Promise<Output> {
    const { format = () => "", flushBeforeAnswer } = options;
    const stats = new RunStats(runtime.clock, to.limit);
    const isFree = to.output !== undefined || flushBeforeAnswer === true;
    const display = await openDisplay(stats, runtime, isFree);
    const log = logWriter(options, runtime, mask, display !== undefined);
    const notify = (text: string): void => {
      const event = { kind: "log", level: "info", text } as const;
      void log?.emit(event);
      if (to.output === undefined)
        void write(runtime.stdout, mask.apply(format(event))).catch(() => undefined);
    };
    try {
      const sink = await openSink(to, format, mask, { ...runtime, stats, notify });
      return new Output({ options, sink, mask, log, stats, display, runtime });
    } catch (error) {
      display?.stop();
      throw error;
    }
  }

  async emit(event: Event): Promise<void> {
    const { stats, display } = this.#parts;
    stats.note(event);
    if (event.kind === "log" && event.endOf !== undefined) return;
    display?.show();
    // Logs take neither, and these are nearly all events.
    if (event.kind === "records" || event.kind === "checkpoint") return await this.sink.emit(event);
    if (event.kind === "end") await this.#inform(...stats.takeFinalLines(), this.#endText);
    await this.#pass(event);
    if (event.kind === "close" && stats.current !== undefined) await this.#report(stats.current);
  }

  /** @param usage of the session with the service */
  measure(usage: () => Usage): void {
    this.#parts.stats.measure(usage);
  }

  /** Returns when all has left, the summary too. */
  async close(): Promise<void> {
    await this.sink.flush();
    const { log, runtime, options } = this.#parts;
    this.#stop();
    await unlessClosed(log?.close());
    const summary = this.#summary;
    const isSilent = options.logLevel === "error" || options.logLevel === "critical";
    const leftover = this.#leftover.map((saved) => `Run ${summary.outcome}: ${saved}\n`);
    const text = [summaryText(summary), ...leftover].join("");
    if (runtime.stderr.isTTY === true && !isSilent) runtime.stderr.write(this.mask.apply(text));
    if (options.summary !== undefined) await writeSummary(options.summary, summary, this.mask.apply);
  }

  /** Leaves the terminal as it was and gives the locks back, even if nothing more can be written. */
  async release(): Promise<void> {
    this.#stop();
    await this.sink.release();
  }

  /** Whether only a person can correct what went wrong, so that another try is of no use. */
  get isForPerson(): boolean {
    const { failures } = this.#parts.stats;
    return failures.every((error) => error instanceof ConfigError && !(error instanceof OutputError));
  }

  /** Saves all that can still be saved. Returns the reason for the end; after a signal it names the place of the state. */
  async settle(error: unknown): Promise<unknown> {
    const { signal } = this.#parts.runtime;
    try {
      await this.sink.flush();
    } catch (failure) {
      if (failure instanceof OutputClosed) throw failure;
      return failure;
    }
    if (!signal.aborted) return error;
    const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
    return new TransientError(`${reason}: ${this.#savedText}`);
  }

  /** Reports a stream that has ended. */
  async #report(stream: CurrentStream): Promise<void> {
    const { stats, options, runtime } = this.#parts;
    if (options.metrics === true) for (const point of metricsOf(stream, runtime.pid)) await this.#pass(point);
    const [end, ...more] = streamTexts(stream);
    await this.#inform([`Stream "${stream.stream}": ${end}`, ...stats.takeFinalLines()].join("; "), ...more);
  }

  #stop(): void {
    clearInterval(this.#heartbeat);
    this.#parts.display?.stop();
  }

  get #savedText(): string {
    const { reader, flushBeforeAnswer } = this.#parts.options;
    if (flushBeforeAnswer === true) return "there is no answer. Run again";
    return savedText(this.#summary, reader !== "person");
  }

  /** The saved part of a run that has failed. The error of an interrupted run has it already. */
  get #leftover(): readonly string[] {
    const { outcome, streams } = this.#summary;
    const isFailure = outcome === "failed" || outcome === "incomplete";
    const hasState = streams.length > 0 && this.#parts.options.flushBeforeAnswer !== true;
    return isFailure && hasState ? [this.#savedText] : [];
  }

  /** The last log message; undefined: no stream was read. */
  get #endText(): string | undefined {
    const summary = this.#summary;
    if (summary.streams.length === 0) return undefined;
    const windows = this.#parts.runtime.stderr.isTTY === true ? "" : windowsText(summary);
    const end = [runText(summary), ...this.#leftover].join("; ");
    return windows === "" ? end : `${end}. Windows: ${windows}`;
  }

  get #summary(): RunSummary {
    return this.#parts.stats.summary(this.#parts.runtime.signal.aborted, this.sink.place);
  }

  async #pass(event: Event): Promise<void> {
    await unlessClosed(this.#parts.log?.emit(event));
    await this.sink.emit(event);
  }

  async #inform(...texts: readonly (string | undefined)[]): Promise<void> {
    for (const text of texts) if (text !== undefined) await this.#pass({ kind: "log", level: "info", text });
  }
}

/** The output of every Singer command. The language has no words for logs. */
export const tapOutput = (logLevel: LogLevel | undefined, format?: Language): OutputOptions => ({
  ...{ name: "tap-contact-intelligence", logs: true, metrics: true, logLevel, format },
});

/**
 * Opens the log on stderr. A person at a terminal sees failures even if the language has its own logs, unless stdout is a
 * terminal too. Progress and summary show the rest.
 * @param isDrawn whether progress is shown
 */
function logWriter(
  options: OutputOptions,
  runtime: Runtime,
  mask: Mask,
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
    mask.apply,
  );
}

/** A closed log does not end a run. */
async function unlessClosed(written: Promise<void> | undefined): Promise<void> {
  try {
    await written;
  } catch (error) {
    if (!(error instanceof OutputClosed)) throw error;
  }
}

/** Opens the output of a run, at most once. @param config its secrets are masked from now on */
export type OpenOutput = (to: Destination, config?: Config) => Promise<Output>;

/**
 * Does a run's work and reports its end, also after a failure or a signal. A failure before the output is open goes to
 * stdout and the log.
 * @param work returns whether everything was delivered
 * @returns the exit code; throws after a signal, and for an output that is closed
 */
export async function runToEnd(
  options: OutputOptions,
  runtime: Runtime,
  work: (open: OpenOutput) => Promise<boolean>,
): Promise<number> {
  if (options.summary !== undefined) await checkSummaryPath(options.summary);
  const { signal } = runtime;
  const mask = new Mask();
  let opened: Output | undefined;
  const open: OpenOutput = async (to, config) => {
    if (config !== undefined) mask.hide(secretsOf(config));
    opened = await Output.open(to, options, mask, runtime);
    return opened;
  };
  try {
    let complete = false;
    try {
      complete = await work(open);
    } catch (error) {
      if (error instanceof OutputClosed) throw error;
      const output = opened ?? (await open({}));
      await output.emit({ kind: "failed", error: await output.settle(error) });
    }
    const output = opened ?? (await open({}));
    await output.emit({ kind: "end" });
    await output.close();
    signal.throwIfAborted();
    if (complete) return 0;
    return options.reader === "person" && output.isForPerson ? 2 : 1;
  } finally {
    await opened?.release();
  }
}
