import { ConfigError, OutputError, TransientError, UsageError } from "../base/errors.ts";
import { objectOf, printableLines } from "../base/json.ts";
import { type Config, privacyOf, secretsOf } from "../config/config.ts";
import type { Language } from "../protocol/language.ts";
import { isDebug, type LogFormat, type LogLevel, log, logLevelOf } from "../protocol/log.ts";
import { Mask } from "../protocol/mask.ts";
import { OutputClosed, Writer } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";
import type { Usage } from "../service/usage.ts";
import { type Event, info, warning } from "../sync/event.ts";
import { metricsOf } from "./metrics.ts";
import { canRedraw, type Display, openDisplay, progressText } from "./progress.ts";
import { type Destination, openSink, type Sink, stdoutSink } from "./sink.ts";
import { RunStats, type RunSummary, type StreamSummary } from "./stats.ts";
import { endText, savedText, streamText, summaryText, windowText, writeSummary } from "./summary.ts";

export type OutputOptions = {
  /** The user of the program. `airbyte`: logs on stdout; `singer`: metrics; `person`: exit code 2, and no state on stdout. */
  readonly audience: "airbyte" | "singer" | "person";
  /** The language of stdout; undefined: no text on stdout. */
  readonly format?: Language | undefined;
  /** Whether the run saves no state, and writes one answer to stdout at its end. */
  readonly flushBeforeAnswer?: boolean;
  readonly logLevel?: LogLevel | undefined;
  /** Undefined: JSON for Singer's platforms, unless stderr is a terminal; otherwise text. */
  readonly logFormat?: LogFormat | undefined;
  readonly summary?: string | undefined;
};

const OLDER_FILES =
  "The privacy settings have changed since the last run into this folder. Its older files keep fields and people as " +
  "they were. To write them again, see docs/privacy.md#settings-that-come-later";

/** The time (ms) between two lines of progress in a log. */
const PROGRESS_EVERY_MS = 30_000;

/** Sends records and state to the sink, logs to stderr, and progress to a terminal. */
class Output {
  readonly mask = new Mask();
  /** Stdout, until `open` returns. */
  sink: Sink;
  readonly #options: OutputOptions;
  readonly #runtime: Runtime;
  readonly #stats: RunStats;
  readonly #log: Writer | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  #display: Display | undefined;
  #config: Config | undefined;

  constructor(options: OutputOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#stats = new RunStats(runtime.clock);
    this.#log = logWriter(options, runtime, this.mask, () => this.#display);
    this.sink = stdoutSink(options.format, this.mask, runtime);
    const tick = (): void => void this.#inform(progressText(this.#stats)).catch(() => undefined);
    this.#heartbeat = setInterval(tick, PROGRESS_EVERY_MS).unref();
  }

  /** Writes a first summary with the outcome `interrupted`. It remains if the run is killed. Throws UsageError. */
  async begin(): Promise<void> {
    const { summary: path } = this.#options;
    if (path === undefined) return;
    await writeSummary(path, this.#stats.summary(true, null), this.mask.apply).catch((error: unknown) => {
      throw isWrongSetting(error) ? new UsageError(error.message) : error;
    });
  }

  /** Opens the place for records and state, and masks secrets. Throws ConfigError, and TransientError during another run. */
  async open(to: Destination, config?: Config): Promise<this> {
    const { format, flushBeforeAnswer } = this.#options;
    if (config !== undefined) this.mask.hide(secretsOf(config));
    this.#config = config;
    this.#stats.destination = to;
    const isFree = to.output !== undefined || flushBeforeAnswer === true;
    this.#display = openDisplay(this.#stats, this.#runtime, isFree);
    const notify = (text: string): void => void this.#inform(text);
    const privacy = config && privacyOf(config);
    this.sink = await openSink({ ...to, privacy }, format, this.mask, { ...this.#runtime, notify });
    const { privacy: before } = objectOf(this.sink.saved.rest["output"]);
    const hasChanged = before !== undefined && JSON.stringify(before) !== JSON.stringify(privacy);
    if (to.output !== undefined && hasChanged) await this.#pass(warning(OLDER_FILES));
    return this;
  }

  async emit(event: Event): Promise<void> {
    this.#stats.note(event);
    // Logs do not contain records and checkpoints, which are nearly all events.
    if (event.kind === "records" || event.kind === "checkpoint") return await this.#toSink(event);
    if (event.kind === "end") await this.#inform(this.#endText);
    await this.#pass(event);
    const current = event.kind === "close" ? this.#stats.current : undefined;
    if (current !== undefined) await this.#report(current);
  }

  measure(usage: () => Usage): void {
    this.#stats.measure(usage);
  }

  /** Returns when all text has left the program and the summary is written. */
  async close(): Promise<void> {
    await this.sink.close();
    this.#stop();
    await unlessClosed(this.#log?.close());
    const { logLevel = "info", summary: path } = this.#options;
    const { stderr } = this.#runtime;
    const summary = this.#summary;
    const text = printableLines(summaryText(summary, this.#endText));
    if (stderr.isTTY === true && !/error|critical/.test(logLevel)) stderr.write(this.mask.apply(text));
    if (path !== undefined) await writeSummary(path, summary, this.mask.apply);
  }

  /** Clears the progress and releases the locks, even after the output broke. */
  async release(): Promise<void> {
    this.#stop();
    await this.sink.release();
  }

  /** Whether only a person can correct the failures. Then another attempt cannot succeed. */
  get needsPerson(): boolean {
    return this.#stats.failures.every(isWrongSetting);
  }

  /** Saves the covered rows. Returns the error that ends the run. After a signal, the error names the place of the state. */
  async settle(error: unknown): Promise<unknown> {
    const { signal } = this.#runtime;
    try {
      this.#stats.noteSaved(await this.sink.settle());
    } catch (failure) {
      return failure;
    }
    if (!signal.aborted) return error;
    const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
    return new TransientError(`${reason}. ${this.#savedText}`);
  }

  async #report(stream: StreamSummary): Promise<void> {
    const { audience, logLevel } = this.#options;
    const { pid, environment } = this.#runtime;
    const points = audience === "singer" ? metricsOf(stream, pid) : [];
    for (const point of points) await this.#pass(point);
    for (const window of isDebug(logLevel, environment) ? stream.windows : [])
      await this.#pass({ kind: "log", level: "debug", text: windowText(stream.stream, window) });
    await this.#inform(`Stream "${stream.stream}": ${streamText(stream)}`);
  }

  #stop(): void {
    clearInterval(this.#heartbeat);
    this.#display?.stop();
  }

  get #savedText(): string {
    if (this.#options.flushBeforeAnswer === true) return "There is no answer. Run again";
    return savedText(this.#summary, this.#ending);
  }

  /** The text at the end of the run; undefined: the run read no stream, or its answer follows. */
  get #endText(): string | undefined {
    if (this.#stats.current === undefined || this.#options.flushBeforeAnswer === true) return undefined;
    return endText(this.#summary, this.#ending);
  }

  get #ending() {
    const { failures } = this.#stats;
    return {
      folder: this.#stats.destination.output,
      isCounted: this.#config?.verifyCounts !== false,
      isIgnoring: (this.#config?.ignoreMissingDays ?? []).length > 0,
      isOpen: (this.#config?.endDate ?? null) === null,
      isForPerson: this.#options.audience === "person",
      mustAct:
        failures.length > 0 && (this.needsPerson || failures.some((error) => error instanceof OutputError)),
    };
  }

  get #summary(): RunSummary {
    return this.#stats.summary(this.#runtime.signal.aborted, this.sink.place);
  }

  async #pass(event: Event): Promise<void> {
    await unlessClosed(this.#log?.emit(event));
    await this.#toSink(event);
  }

  async #toSink(event: Event): Promise<void> {
    this.#stats.noteSaved(await this.sink.emit(event));
  }

  async #inform(text: string | undefined): Promise<void> {
    if (text !== undefined) await this.#pass(info(text));
  }
}

/** Whether the operator must correct a setting. After an OutputError, the place may be writable later without a change. */
const isWrongSetting = (error: unknown): error is ConfigError =>
  error instanceof ConfigError && !(error instanceof OutputError);

/**
 * Opens the log on stderr; undefined: Airbyte's logs on stdout already reach the platform or the person.
 * @param display the progress at the terminal, which also shows waits
 */
function logWriter(options: OutputOptions, runtime: Runtime, mask: Mask, display: () => Display | undefined) {
  const { audience, logLevel } = options;
  const name = audience === "singer" ? "tap-contact-intelligence" : "source-contact-intelligence";
  const { stdout, stderr, clock, pid, environment } = runtime;
  const isTerminal = stderr.isTTY === true;
  if (audience === "airbyte" && (!isTerminal || stdout.isTTY === true)) return undefined;
  const level = logLevel ?? logLevelOf(environment, isTerminal ? "warning" : "info");
  const format = options.logFormat ?? (audience === "singer" && !isTerminal ? "json" : "text");
  const hasColour = isTerminal && canRedraw(environment) && !environment["NO_COLOR"];
  const language = log({ name, pid, now: clock.now, level, format, isTerminal, hasColour });
  const drawn: Language = (event) => {
    const progress = display();
    const text = progress !== undefined && event.kind === "limited" ? "" : language(event);
    return text === "" ? "" : (progress?.above(text) ?? text);
  };
  return new Writer(drawn, stderr, mask.apply);
}

/** Ignores the error of a log that broke, or whose reader has ended. */
async function unlessClosed(written: Promise<unknown> | undefined): Promise<void> {
  try {
    await written;
  } catch (error) {
    if (!(error instanceof OutputClosed)) throw error;
  }
}

/** Opens the output of a run. A run calls it at most once. */
export type OpenOutput = Output["open"];

/**
 * Does a run's work and reports its end, also after a failure or a signal.
 * @param work returns whether the run has delivered everything
 * @returns the exit code
 * @throws the reason of a signal, and OutputClosed
 */
export async function runToEnd(
  options: OutputOptions,
  runtime: Runtime,
  work: (open: OpenOutput) => Promise<boolean>,
): Promise<number> {
  const output = new Output(options, runtime);
  try {
    await output.begin();
    let complete = false;
    try {
      complete = await work(output.open.bind(output));
    } catch (error) {
      if (error instanceof OutputClosed) throw error;
      await output.emit({ kind: "failed", error: await output.settle(error) });
    }
    await output.emit({ kind: "end" });
    await output.close();
    runtime.signal.throwIfAborted();
    if (complete) return 0;
    return options.audience === "person" && output.needsPerson ? 2 : 1;
  } finally {
    await output.release();
  }
}
