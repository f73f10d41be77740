import { ConfigError, OutputError } from "../base/errors.ts";
import type { Event } from "../sync/event.ts";
import { writeFailure } from "./files/reason.ts";
import { makeFolder } from "./files/replace.ts";
import { type FileForm, fileName, finish, fullName, recover, startName } from "./folder-state.ts";
import { isNewestFolder } from "./known-rows.ts";
import type { Destination, SinkRuntime } from "./sink.ts";
import type { StateFile } from "./state-file.ts";
import { StreamFiles } from "./stream-files.ts";

/** A commit is due after this many bytes of covered rows, or this long (ms) after the one before. */
const COMMIT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

type FolderRuntime = Pick<SinkRuntime, "clock" | "stats">;

/**
 * Writes the records of a run into files in one folder, and its state into `state.json` in it.
 *
 * Records go to parts, which have hidden names. A commit has three steps:
 * 1. `state.json` names the parts and the next state.
 * 2. The parts become visible by rename.
 * 3. `state.json` has the next state.
 *
 * After a crash the next run finishes a commit whose first step is done, and removes all other parts. So the files have
 * exactly the records that the state covers, also if the state is copied at any moment. No run changes a visible file.
 */
export class Folder {
  readonly #path: string;
  readonly #file: StateFile;
  readonly #form: FileForm;
  readonly #sample: number | undefined;
  /** The largest number that a file of each stream has. */
  readonly #numbers: Record<string, number>;
  readonly #runtime: FolderRuntime;
  #committedAt: number;
  #stream: StreamFiles | undefined;

  private constructor(
    path: string,
    file: StateFile,
    { compress, fileBytes: commitBytes = COMMIT_BYTES, limit }: Destination,
    numbers: Record<string, number>,
    runtime: FolderRuntime,
  ) {
    this.#path = path;
    this.#file = file;
    this.#form = { start: startName(runtime.clock.now()), gzip: compress === "gzip", commitBytes };
    this.#sample = limit;
    this.#numbers = numbers;
    this.#runtime = runtime;
    this.#committedAt = runtime.clock.monotonic();
  }

  /**
   * Finishes what a killed run left in the folder.
   * @param file the folder's state, whose lock keeps other runs out of the folder
   */
  static async open(path: string, file: StateFile, to: Destination, runtime: FolderRuntime): Promise<Folder> {
    try {
      return new Folder(path, file, to, await recover(path, file), runtime);
    } catch (error) {
      await file.release();
      throw writeFailure(path, error);
    }
  }

  /** Returns when an event is taken, or committed. After a failure, which it throws, it takes no more of the stream. */
  async emit(event: Event): Promise<void> {
    try {
      await this.#take(event);
    } catch (error) {
      const folder = this.#stream?.folder ?? this.#path;
      await this.#discard();
      const failure = writeFailure(folder, error);
      throw failure instanceof ConfigError ? new OutputError(failure.message, { cause: failure }) : failure;
    }
  }

  /** Removes what no state names, and gives the lock back. */
  async release(): Promise<void> {
    await this.#discard();
    await this.#file.release();
  }

  async #discard(): Promise<void> {
    await this.#stream?.discard();
    this.#stream = undefined;
  }

  async #take(event: Event): Promise<void> {
    if (event.kind === "open") await this.#open(event);
    const stream = this.#stream;
    if (stream === undefined) return;
    if (event.kind === "records") await stream.append(event, this.#numbers[stream.name] ?? 0);
    if (event.kind === "checkpoint") await this.#checkpoint(stream, event);
    if (event.kind === "close") await this.#close(stream, event.complete && event.error === undefined);
    if (event.kind === "end") await this.#close(stream, false);
  }

  async #open(event: Extract<Event, { kind: "open" }>): Promise<void> {
    const stream = new StreamFiles(this.#path, event, this.#form);
    await makeFolder(stream.folder);
    this.#stream = stream;
    this.#runtime.stats.noteSaved(stream.name, null, { files: 0, rows: 0 });
  }

  async #checkpoint(
    stream: StreamFiles,
    { state, windows, announces }: Extract<Event, { kind: "checkpoint" }>,
  ): Promise<void> {
    await stream.cover(windows);
    stream.state = state;
    const isDue =
      announces === true ||
      stream.covered >= this.#form.commitBytes ||
      this.#runtime.clock.monotonic() - this.#committedAt >= COMMIT_MS;
    if (isDue && !stream.isFromStart) await this.#commit(stream);
  }

  /** All rows of a stream that is read from the start are committed together, those of other streams once a state covers them. */
  async #close(stream: StreamFiles, complete: boolean): Promise<void> {
    const isSample = this.#sample !== undefined;
    if (isSample) await stream.cover();
    const isWhole = complete && !stream.isConfirmed;
    const isDue = isSample || stream.isFromStart ? isWhole : stream.state !== undefined;
    if (isDue) await this.#commit(stream);
    await this.#discard();
  }

  /** Publishes the rows that the stream's state covers, and saves it. A sample has no state. */
  async #commit(stream: StreamFiles): Promise<void> {
    const { name, key, folder, state = null, isFromStart, isRefresh } = stream;
    const { clock, stats } = this.#runtime;
    this.#committedAt = clock.monotonic();
    const taken = await stream.take();
    const isKnown = isFromStart && !isRefresh && (await isNewestFolder(folder, taken));
    const full = isFromStart && !isKnown ? fullName(this.#next(name)) : undefined;
    const published = isKnown ? [] : taken;
    const named = published.map(({ part, span }) => {
      return { part, name: fileName(this.#form, this.#next(name), name, span) };
    });
    const files = full === undefined ? named : [{ part: await stream.gather(named), name: full }];
    const numbers = { ...this.#numbers };
    const output = { version: 1, numbers, sample: this.#sample, pending: { key, state, files } } as const;
    // Once the new state file may have taken effect, the next run decides by what it finds.
    if (files.length > 0) await this.#file.save(key, null, { output }, () => stream.forget());
    await finish(this.#path, this.#file, output);
    const rows = published.reduce((sum, { file }) => sum + file.rows, 0);
    stats.noteSaved(name, state, { files: published.length, rows });
  }

  #next(stream: string): number {
    const number = (this.#numbers[stream] ?? 0) + 1;
    this.#numbers[stream] = number;
    return number;
  }
}
