import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigError, OutputError } from "../base/errors.ts";
import { objectOf } from "../base/json.ts";
import { canRefresh } from "../catalog/streams.ts";
import { stateKey } from "../state/envelopes.ts";
import type { Event, Lines, StreamState } from "../sync/event.ts";
import { writeFailure } from "./files/reason.ts";
import { makeFolder } from "./files/replace.ts";
import { type FileForm, fileName, finish, fullName, recover, startName } from "./folder-state.ts";
import { isNewestFolder, unknownRows } from "./known-rows.ts";
import type { Destination, SinkRuntime } from "./sink.ts";
import type { StateFile } from "./state-file.ts";
import { WindowFiles } from "./window-files.ts";

/** A commit is due after this many bytes of covered rows, or this long (ms) after the one before. */
const COMMIT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

type FolderRuntime = Pick<SinkRuntime, "clock" | "stats">;

/** The stream that is being read. */
type OpenStream = {
  readonly name: string;
  /** Its name in the state. */
  readonly key: string;
  /** Its part of the incoming state. */
  readonly before: unknown;
  readonly files: WindowFiles;
  /** The rows of a batch that the folder does not have; undefined: no batch was compared yet. */
  unknown?: (lines: Lines) => Lines;
  /** The state of the last checkpoint of this run. */
  state?: StreamState;
};

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
  readonly #numbers: Map<string, number>;
  readonly #runtime: FolderRuntime;
  #committedAt: number;
  #stream: OpenStream | undefined;

  private constructor(
    path: string,
    file: StateFile,
    { compress, fileBytes: commitBytes = COMMIT_BYTES, limit }: Destination,
    numbers: Map<string, number>,
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
      const folder = this.#stream?.files.folder ?? this.#path;
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
    await this.#stream?.files.discard();
    this.#stream = undefined;
  }

  async #take(event: Event): Promise<void> {
    if (event.kind === "open") {
      const { stream: name, namespace, before } = event;
      const files = new WindowFiles(join(this.#path, name), this.#form);
      await makeFolder(files.folder);
      this.#stream = { name, key: stateKey(name, namespace), before, files };
      this.#runtime.stats.noteSaved(name, null, { files: 0, rows: 0 });
    }
    const stream = this.#stream;
    if (stream === undefined) return;
    if (event.kind === "records") await this.#append(stream, event);
    if (event.kind === "checkpoint") await this.#checkpoint(stream, event);
    if (event.kind === "close") await this.#close(stream, event.complete && event.error === undefined);
    if (event.kind === "end") await this.#close(stream, false);
  }

  async #append(
    stream: OpenStream,
    { lines, window = 0, span, isReread }: Extract<Event, { kind: "records" }>,
  ): Promise<void> {
    const { name, files } = stream;
    if (isReread !== true) return await files.append(lines, window, span);
    stream.unknown ??= await unknownRows(files.folder, name, this.#numbers.get(name) ?? 0);
    await files.append(stream.unknown(lines), window, span);
  }

  async #checkpoint(
    stream: OpenStream,
    { state, windows, announces }: Extract<Event, { kind: "checkpoint" }>,
  ): Promise<void> {
    await stream.files.cover(windows);
    stream.state = state;
    const isDue =
      announces === true ||
      stream.files.covered >= this.#form.commitBytes ||
      this.#runtime.clock.monotonic() - this.#committedAt >= COMMIT_MS;
    if (isDue && !isFromStart(stream.name, state)) await this.#commit(stream, state);
  }

  /** All rows of a stream that is read from the start are committed together, those of other streams once a state covers them. */
  async #close(stream: OpenStream, complete: boolean): Promise<void> {
    const { name, files, state } = stream;
    if (this.#sample !== undefined) {
      if (complete) await files.cover();
      if (complete) await this.#commit(stream, null);
    } else if (state !== undefined) {
      const isWhole = complete && !isConfirmed(stream, state);
      if (isWhole || !isFromStart(name, state)) await this.#commit(stream, state);
    }
    await this.#discard();
  }

  /** Publishes the rows that a state covers, and saves it. @param state null: the rows are a sample */
  async #commit({ name, key, files }: OpenStream, state: StreamState | null): Promise<void> {
    const { clock, stats } = this.#runtime;
    this.#committedAt = clock.monotonic();
    const taken = await files.take();
    const isFull = state !== null && isFromStart(name, state);
    const isKnown = isFull && !isRefresh(state) && (await isNewestFolder(files.folder, taken));
    const full = isFull && !isKnown ? fullName(this.#next(name)) : undefined;
    const named = (isKnown ? [] : taken).map(({ part, span, file: { rows } }) => {
      return { part, name: fileName(this.#form, this.#next(name), name, span), rows };
    });
    const parts = full === undefined ? named : [{ part: await files.gather(named), name: full }];
    const pending = { key, state, files: parts.map(({ part, name }) => ({ part, name })) };
    const numbers = Object.fromEntries(this.#numbers);
    const output = { version: 1, numbers, sample: this.#sample, pending } as const;
    // Once the new state file may have taken effect, the next run decides by what it finds.
    if (parts.length > 0) await this.#file.save(key, null, { output }, () => files.forget());
    await finish(this.#path, this.#file, output);
    const rows = named.reduce((sum, one) => sum + one.rows, 0);
    stats.noteSaved(name, state, { files: named.length, rows });
  }

  #next(stream: string): number {
    const number = (this.#numbers.get(stream) ?? 0) + 1;
    this.#numbers.set(stream, number);
    return number;
  }
}

/** Whether a run reads all rows of a stream: its state has no cursor, or is that of a full refresh. */
const isFromStart = (stream: string, state: StreamState): boolean =>
  canRefresh(stream) && (isRefresh(state) || !("discoveredAt" in state));

/** Whether a state is that of a full refresh that the operator asked for. */
const isRefresh = (state: StreamState): boolean => (state["full_refresh"] ?? null) !== null;

/** Whether a state only confirms a full refresh that an earlier run has delivered. */
const isConfirmed = ({ before, files }: OpenStream, state: StreamState): boolean =>
  isRefresh(state) &&
  files.covered === 0 &&
  isDeepStrictEqual(objectOf(before)["full_refresh"], state["full_refresh"]);
