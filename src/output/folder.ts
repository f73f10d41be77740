import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { ConfigError, OutputError } from "../base/errors.ts";
import type { SavedState } from "../state/envelopes.ts";
import type { Event, EventOf } from "../sync/event.ts";
import type { Lock } from "./files/lock.ts";
import { writeFailure } from "./files/reason.ts";
import { makeFolder } from "./files/replace.ts";
import { type FileForm, type FolderState, fileName, finish, fullName, recover } from "./folder-state.ts";
import { isNewestFolder } from "./known-rows.ts";
import type { Destination, Saved, Sink, SinkRuntime } from "./sink.ts";
import { StateFile } from "./state-file.ts";
import { StreamFiles } from "./stream-files.ts";

/** A commit is due after this number of bytes of covered rows, or this time (ms) after the last commit. */
const COMMIT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

/**
 * Writes the records of a run into files in one folder, and the state into `state.json` in this folder.
 *
 * Records go to parts, which have hidden names. A commit has three steps:
 * 1. `state.json` names the parts and the next state.
 * 2. The parts become visible by rename.
 * 3. `state.json` contains the next state.
 *
 * After a crash, the next run finishes a commit after its first step, and removes all other parts. So the files contain
 * exactly the records that the state covers, also in a copy from any moment. No run changes a visible file.
 */
export class Folder implements Sink {
  readonly saved: SavedState;
  readonly place: string | null;
  readonly lock: Lock;
  readonly #path: string;
  readonly #file: StateFile;
  readonly #form: FileForm;
  readonly #output: FolderState;
  readonly #clock: Clock;
  #committedAt: number;
  #stream: StreamFiles | undefined;

  private constructor(path: string, file: StateFile, to: Destination, output: FolderState, clock: Clock) {
    const { compress, fileBytes: commitBytes = COMMIT_BYTES, limit, privacy } = to;
    this.saved = file.saved;
    this.place = limit === undefined ? file.path : null;
    this.lock = file.lock;
    this.#path = path;
    this.#file = file;
    this.#form = { startedAt: clock.now(), gzip: compress === "gzip", commitBytes };
    this.#output = { ...output, sample: limit, privacy };
    this.#clock = clock;
    this.#committedAt = clock.monotonic();
  }

  /** Makes the folder and finishes the work of a killed run. Throws ConfigError, and TransientError during another run. */
  static async open(path: string, to: Destination, runtime: SinkRuntime, given?: SavedState) {
    await makeFolder(path);
    const own = join(path, "state.json");
    const isNew = !existsSync(own);
    if (!isNew && to.limit !== undefined)
      throw new ConfigError(
        `Cannot write a sample into "${path}": it has rows of an earlier run. Choose another folder`,
      );
    if (!isNew && given !== undefined)
      throw new ConfigError(
        `Cannot continue from --state: the folder has its own state "${own}". Leave --state out, or choose another folder`,
      );
    // The state of another folder names files of the other folder.
    const seed = given && { ...given, rest: { ...given.rest, output: undefined } };
    const file = await StateFile.open(own, runtime, seed);
    try {
      return new Folder(path, file, to, await recover(path, file), runtime.clock);
    } catch (error) {
      await file.lock.release();
      throw writeFailure(path, error);
    }
  }

  /** Returns when an event is in a part, or committed. After a failure, the stream takes no more records. */
  async emit(event: Event): Promise<Saved | undefined> {
    try {
      return await this.#take(event);
    } catch (error) {
      const folder = this.#stream?.folder ?? this.#path;
      await this.#discard();
      const failure = writeFailure(folder, error);
      throw failure instanceof ConfigError ? new OutputError(failure.message, { cause: failure }) : failure;
    }
  }

  /** Commits the covered rows. */
  settle(): Promise<Saved | undefined> {
    return this.emit({ kind: "end" });
  }

  async close(): Promise<void> {}

  /** Removes all parts that no state names, and the lock. */
  async release(): Promise<void> {
    await this.#discard();
    await this.lock.release();
  }

  async #discard(): Promise<void> {
    await this.#stream?.discard();
    this.#stream = undefined;
  }

  async #take(event: Event): Promise<Saved | undefined> {
    if (event.kind === "open") await this.#open(event);
    const stream = this.#stream;
    if (stream === undefined) return undefined;
    if (event.kind === "records") await stream.append(event, this.#output.numbers[stream.name] ?? 0);
    if (event.kind === "checkpoint") return await this.#checkpoint(stream, event);
    if (event.kind === "close") return await this.#close(stream, event.complete && event.error === undefined);
    return event.kind === "end" ? await this.#close(stream, false) : undefined;
  }

  async #open(event: EventOf<"open">): Promise<void> {
    this.#stream = new StreamFiles(this.#path, event, this.#form);
    await makeFolder(this.#stream.folder);
  }

  async #checkpoint(
    stream: StreamFiles,
    { state, windows, announces = false }: EventOf<"checkpoint">,
  ): Promise<Saved | undefined> {
    await stream.cover(windows);
    stream.state = state;
    const isLate = this.#clock.monotonic() - this.#committedAt >= COMMIT_MS;
    const isDue = announces || isLate || stream.covered >= this.#form.commitBytes;
    return isDue && !stream.isFromStart ? await this.#commit(stream) : undefined;
  }

  /** Commits all rows of a stream that is read from the start, but only the covered rows of other streams. */
  async #close(stream: StreamFiles, complete: boolean): Promise<Saved | undefined> {
    const isSample = this.#output.sample !== undefined;
    if (isSample) await stream.cover();
    const isWhole = complete && !stream.isConfirmed;
    const isDue = isSample || stream.isFromStart ? isWhole : stream.state !== undefined;
    const saved = isDue ? await this.#commit(stream) : undefined;
    await this.#discard();
    return saved;
  }

  /** Publishes the covered rows of a stream and saves its state. A sample has no state. */
  async #commit(stream: StreamFiles): Promise<Saved> {
    const { name, key, folder, state = null, isFromStart, isRefresh } = stream;
    this.#committedAt = this.#clock.monotonic();
    const taken = await stream.take();
    const paths = taken.map(({ file }) => file.path);
    const isKnown = isFromStart && !isRefresh && (await isNewestFolder(folder, paths));
    const full = isFromStart && !isKnown ? fullName(this.#next(name)) : undefined;
    const published = isKnown ? [] : taken;
    let bytes = 0;
    for (const { file } of published) bytes += (await stat(file.path)).size;
    const named = published.map(({ file, span }) => {
      return { part: basename(file.path), name: fileName(this.#form, this.#next(name), name, span) };
    });
    const files = full === undefined ? named : [{ part: await stream.gather(named), name: full }];
    const output = { ...this.#output, pending: { key, state, files } };
    // After this replacement of `state.json`, the next run can finish the commit, so this run must keep the parts.
    if (files.length > 0) await this.#file.save(key, null, { output }, () => stream.forget());
    await finish(this.#path, this.#file, output);
    const rows = published.reduce((sum, { file }) => sum + file.rows, 0);
    return { state, files: published.length, rows, bytes };
  }

  #next(stream: string): number {
    const { numbers } = this.#output;
    numbers[stream] = (numbers[stream] ?? 0) + 1;
    return numbers[stream];
  }
}
