import { mkdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { STREAMS } from "../catalog/streams.ts";
import { ConfigError, ConnectorError, OutputError } from "../errors.ts";
import { publish } from "../files/publish.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { syncFolder } from "../files/replace.ts";
import { type SavedState, stateKey } from "../state/envelopes.ts";
import type { Event, StreamState } from "../streams/event.ts";
import {
  fileName,
  findLeft,
  fullName,
  type Pending,
  parseFolderState,
  startName,
  toFolderState,
} from "./folder-state.ts";
import { StateFile, type StateFileRuntime } from "./state-file.ts";
import { StreamParts } from "./stream-parts.ts";

/** How many bytes, before they have names, are worth a commit. */
const CUT_BYTES = 256 * 1024 * 1024;

export type FolderOptions = {
  readonly gzip: boolean;
  /** Other than 256 MiB only in tests. */
  readonly cutBytes?: number | undefined;
};

type Checkpoint = Extract<Event, { kind: "checkpoint" }>;

/** Told of what is saved and published. */
export type SaveStats = {
  noteSaved(stream: string, state: StreamState): void;
  notePublished(stream: string, files: number): void;
};

export type FolderRuntime = StateFileRuntime & { readonly stats: SaveStats };

type RunOptions = {
  /** When the run began, as it stands in the names of its files. */
  readonly start: string;
  readonly gzip: boolean;
  readonly cutBytes: number;
  readonly monotonic: () => number;
  readonly stats: SaveStats;
};

/** How long (ms) what was paid for may wait for a commit. */
const COMMIT_MS = 60_000;

/** Streams whose state says what was paid for. They have no windows and are never read as a whole. */
const PAID: ReadonlySet<string> = new Set(
  STREAMS.filter(({ reading }) => reading === "job").map(({ name }) => name),
);

/**
 * Writes the records of a run into files in one folder, and its state into `state.json` beside them.
 *
 * Records go to parts, whose names are hidden. A commit syncs the parts, then replaces the state, which names them as
 * pending and covers exactly their windows, and only then publishes them by rename. After a crash at any moment the next
 * run publishes what is pending and removes all other parts. So the files of all runs together hold exactly the records
 * that the state covers. A visible file is never removed or replaced.
 */
export class FolderSink {
  readonly saved: SavedState;
  readonly place: string;
  readonly #folder: string;
  readonly #state: StateFile;
  readonly #numbers: Map<string, number>;
  readonly #start: string;
  readonly #gzip: boolean;
  readonly #cutBytes: number;
  readonly #stats: SaveStats;
  readonly #monotonic: () => number;
  #committedAt: number;
  /** Under which name the state has each stream. */
  readonly #keys = new Map<string, string>();
  #stream: StreamParts | undefined;
  #hasFailed = false;

  private constructor(folder: string, state: StateFile, numbers: Map<string, number>, run: RunOptions) {
    this.#folder = folder;
    this.#state = state;
    this.saved = state.now;
    this.place = state.path;
    this.#stats = run.stats;
    this.#numbers = numbers;
    this.#start = run.start;
    this.#gzip = run.gzip;
    this.#cutBytes = run.cutBytes;
    this.#monotonic = run.monotonic;
    this.#committedAt = run.monotonic();
  }

  /**
   * Opens a folder, which is made if its parent is there, takes its lock, and finishes what a killed run left.
   * Throws ConfigError, and TransientError while another run uses the folder.
   */
  static async open(
    folder: string,
    { gzip, cutBytes = CUT_BYTES }: FolderOptions,
    runtime: FolderRuntime,
    seed?: SavedState,
  ): Promise<FolderSink> {
    const start = startName(runtime.clock.now());
    await makeFolder(folder);
    const state = await StateFile.open(join(folder, "state.json"), runtime);
    try {
      if (seed !== undefined) sow(state, seed);
      const { numbers, pending } = parseFolderState(state.saved.rest["output"]);
      await recover(folder, pending, numbers);
      const { stats, clock } = runtime;
      const { monotonic } = clock;
      return new FolderSink(folder, state, numbers, { start, gzip, cutBytes, monotonic, stats });
    } catch (error) {
      await state.release();
      throw failureOf(folder, error);
    }
  }

  /** Returns when what an event says is taken, or committed. After a failure, which it throws, it does nothing. */
  async emit(event: Event): Promise<void> {
    if (this.#hasFailed) return;
    try {
      await this.#take(event);
    } catch (error) {
      this.#hasFailed = true;
      await this.#stream?.discard();
      throw failureOf(this.#folder, error);
    }
  }

  async check(): Promise<void> {
    await this.#state.check();
  }

  /** Everything has left: what an event says is on the disk when `emit` returns, or goes with its stream's end. */
  async close(): Promise<void> {}

  /** Removes what no state names, and gives the lock back. */
  async release(): Promise<void> {
    await this.#stream?.discard();
    await this.#state.release();
  }

  async #take(event: Event): Promise<void> {
    switch (event.kind) {
      case "open":
        this.#keys.set(event.stream, stateKey(event.stream, event.namespace));
        this.#stream = this.#open(event.stream);
        this.#stats.notePublished(event.stream, 0);
        break;
      case "records":
        await this.#stream?.append(event.lines, event.window ?? 0);
        break;
      case "checkpoint":
        if (this.#stream !== undefined) await this.#checkpoint(this.#stream, event);
        break;
      case "close":
        await this.#close(event.complete && event.error === undefined);
        break;
      case "end":
        await this.#close(false);
        break;
      default:
    }
  }

  #open(stream: string): StreamParts {
    return new StreamParts(stream, join(this.#folder, stream), this.#start, this.#gzip);
  }

  async #checkpoint(stream: StreamParts, { state, windows, announces }: Checkpoint): Promise<void> {
    await stream.cover(windows);
    stream.state = state;
    const isLate = PAID.has(stream.name) && this.#monotonic() - this.#committedAt >= COMMIT_MS;
    stream.isCutting ||= announces === true || isLate || stream.covered >= this.#cutBytes;
    if (!stream.isCutting || stream.isMixed) return;
    if (isWhole(stream.name, state)) await stream.setAside();
    else await this.#commit(stream, state);
    stream.isCutting = false;
  }

  /** A stream that is read whole each time counts only as a whole; of any other, all that a state covers. */
  async #close(complete: boolean): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined) return;
    if (complete) await stream.cover();
    const state = stream.state ?? this.#savedState(stream);
    if (stream.state !== undefined && isWhole(stream.name, stream.state)) {
      if (complete && !this.#isDelivered(stream, stream.state)) await this.#commitWhole(stream, stream.state);
    } else if (state !== undefined) {
      await this.#commit(stream, state);
    }
    await stream.discard();
    this.#stream = undefined;
  }

  #savedState({ name }: StreamParts): StreamState | undefined {
    return this.#state.now.streams.get(this.#keys.get(name) ?? name) as StreamState | undefined;
  }

  /** A full refresh that an earlier run has delivered is only confirmed. */
  #isDelivered(stream: StreamParts, { full_refresh }: StreamState): boolean {
    const saved = this.#savedState(stream)?.["full_refresh"] ?? null;
    return stream.isEmpty && saved !== null && JSON.stringify(saved) === JSON.stringify(full_refresh);
  }

  async #commit(stream: StreamParts, state: StreamState): Promise<void> {
    this.#committedAt = this.#monotonic();
    const parts = await stream.take();
    const pending = parts.map(({ path }) => ({
      stream: stream.name,
      part: basename(path),
      name: this.#nextFile(stream),
    }));
    const removeParts = async (): Promise<void> => {
      for (const part of parts) await part.discard();
    };
    await this.#replaceState(stream, state, pending, removeParts);
    await this.#publish(stream, pending, parts.length);
  }

  async #commitWhole(stream: StreamParts, state: StreamState): Promise<void> {
    const name = fullName(this.#next(stream));
    const { hidden, parts } = await stream.gather(() => this.#nextFile(stream));
    const pending = [{ stream: stream.name, part: basename(hidden), name }];
    const removeFolder = async (): Promise<void> => await rm(hidden, { recursive: true, force: true });
    await this.#replaceState(stream, state, pending, removeFolder);
    await this.#publish(stream, pending, parts.length);
  }

  /** Parts are removed only if the new state cannot have taken effect: else the next run decides by the state that it finds. */
  async #replaceState(
    stream: StreamParts,
    state: StreamState,
    pending: readonly Pending[],
    removeParts: () => Promise<void>,
  ): Promise<void> {
    let isReplacing = false;
    const rest = toFolderState({ numbers: this.#numbers, pending });
    try {
      await this.#state.save(this.#keys.get(stream.name) ?? stream.name, state, rest, () => {
        isReplacing = true;
      });
    } catch (error) {
      if (!isReplacing) await removeParts();
      throw error;
    }
    this.#stats.noteSaved(stream.name, state);
  }

  async #publish({ name, folder }: StreamParts, pending: readonly Pending[], files: number): Promise<void> {
    await publishAll(this.#folder, pending);
    if (pending.length > 0) await syncFolder(folder);
    this.#stats.notePublished(name, files);
  }

  #nextFile(stream: StreamParts): string {
    return fileName(this.#start, this.#next(stream), this.#gzip);
  }

  #next({ name }: StreamParts): number {
    const number = (this.#numbers.get(name) ?? 0) + 1;
    this.#numbers.set(name, number);
    return number;
  }
}

/** Whether a stream is read whole each time: its state says nothing of how far it has come, or is that of a full refresh. */
function isWhole(stream: string, state: StreamState): boolean {
  return !PAID.has(stream) && ((state["full_refresh"] ?? null) !== null || !("discoveredAt" in state));
}

async function makeFolder(folder: string): Promise<void> {
  const stats = await stat(folder).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw failureOf(folder, error);
  });
  if (stats?.isDirectory() === false) {
    throw new ConfigError(`Cannot write to the folder "${folder}": it is no folder`);
  }
  if (stats === undefined) {
    await mkdir(folder).catch((cause: unknown) => {
      const why = codeOf(cause) === "ENOENT" ? `there is no folder "${dirname(folder)}"` : reasonOf(cause);
      throw new ConfigError(`Cannot make the folder "${folder}": ${why}`, { cause });
    });
  }
  // A run that was killed may have made it without this.
  await syncFolder(dirname(folder));
}

function sow(state: StateFile, seed: SavedState): void {
  if (state.existed) {
    throw new ConfigError(
      `Cannot go on from --state: the folder has a state of its own in "${state.path}". Leave --state out, or choose another folder`,
    );
  }
  const { output: _, ...rest } = seed.rest;
  state.seed({ streams: seed.streams, rest });
}

/** Publishes what is pending, removes all other parts, and lets no number be given a second time. */
async function recover(
  folder: string,
  pending: readonly Pending[],
  numbers: Map<string, number>,
): Promise<void> {
  // A run that was killed may have replaced the state and not synced its folder: what is published here would outlive it.
  await syncFolder(folder);
  await publishAll(folder, pending);
  for (const [stream, left] of await findLeft(folder)) {
    for (const part of left.parts) await rm(join(folder, stream, part), { recursive: true, force: true });
    if (left.parts.length > 0 || pending.some((file) => file.stream === stream)) {
      await syncFolder(join(folder, stream));
    }
    if (left.number > (numbers.get(stream) ?? 0)) numbers.set(stream, left.number);
  }
}

async function publishAll(folder: string, pending: readonly Pending[]): Promise<void> {
  for (const { stream, part, name } of pending) {
    await publish(join(folder, stream, part), join(folder, stream, name));
  }
}

/** Names the file and the system's reason. What is no error of the system is left as it is. */
function failureOf(folder: string, error: unknown): unknown {
  if (error instanceof OutputError) return error;
  if (error instanceof ConfigError) return new OutputError(error.message, { cause: error });
  if (error instanceof ConnectorError || codeOf(error) === undefined) return error;
  const { path = folder } = error as { path?: string };
  return new OutputError(`Cannot write to "${path}": ${reasonOf(error)}`, { cause: error });
}
