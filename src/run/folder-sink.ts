import { rm } from "node:fs/promises";
import { join } from "node:path";
import { STREAMS } from "../catalog/streams.ts";
import { ConfigError, ConnectorError, OutputError } from "../errors.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { makeFolder, publish, syncFolder } from "../files/replace.ts";
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
import { type FileForm, WindowFiles } from "./window-files.ts";

/** How many bytes of rows, before they have names, are worth a commit, and for how long (ms) fewer may wait. */
const CUT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

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

/** The stream that is being read. */
type OpenStream = {
  readonly name: string;
  /** Under which name the state has it. */
  readonly key: string;
  /** Where its files lie. */
  readonly folder: string;
  readonly files: WindowFiles;
  /** That of the last checkpoint of this run. */
  state: StreamState | undefined;
};

/** Streams whose state says what was paid for. They have no windows and are never read from the start. */
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
  readonly #form: FileForm;
  readonly #stats: SaveStats;
  readonly #monotonic: () => number;
  #committedAt: number;
  #stream: OpenStream | undefined;
  #hasFailed = false;

  private constructor(
    folder: string,
    state: StateFile,
    numbers: Map<string, number>,
    form: FileForm,
    { stats, clock }: FolderRuntime,
  ) {
    this.#folder = folder;
    this.#state = state;
    this.saved = state.saved;
    this.place = state.path;
    this.#numbers = numbers;
    this.#form = form;
    this.#stats = stats;
    this.#monotonic = clock.monotonic;
    this.#committedAt = clock.monotonic();
  }

  /**
   * Opens a folder, which is made if its parent is there, takes its lock, and finishes what a killed run left.
   * Throws ConfigError, and TransientError while another run uses the folder.
   * @param seed the state to go on from in a folder that has none
   */
  static async open(
    folder: string,
    { gzip, cutBytes = CUT_BYTES }: FolderOptions,
    runtime: FolderRuntime,
    seed?: SavedState,
  ): Promise<FolderSink> {
    const start = startName(runtime.clock.now());
    await makeFolder(folder);
    const state = await StateFile.open(join(folder, "state.json"), runtime, seed && withoutFiles(seed));
    try {
      const { numbers, pending } = parseFolderState(state.saved.rest["output"]);
      await recover(folder, pending, numbers);
      return new FolderSink(folder, state, numbers, { start, gzip, cutBytes }, runtime);
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
      await this.#stream?.files.discard();
      throw failureOf(this.#folder, error);
    }
  }

  async check(): Promise<void> {
    await this.#state.check();
  }

  /** The end of each stream has committed all that is worth it. */
  async close(): Promise<void> {}

  /** Removes what no state names, and gives the lock back. */
  async release(): Promise<void> {
    await this.#stream?.files.discard();
    await this.#state.release();
  }

  async #take(event: Event): Promise<void> {
    if (event.kind === "open") this.#stream = this.#open(event.stream, event.namespace);
    const stream = this.#stream;
    if (stream === undefined) return;
    if (event.kind === "records") await stream.files.append(event.lines, event.window ?? 0);
    if (event.kind === "checkpoint") await this.#checkpoint(stream, event);
    if (event.kind === "close") await this.#close(stream, event.complete && event.error === undefined);
    if (event.kind === "end") await this.#close(stream, false);
  }

  #open(name: string, namespace: string | undefined): OpenStream {
    const folder = join(this.#folder, name);
    const files = new WindowFiles(folder, this.#form);
    this.#stats.notePublished(name, 0);
    return { name, key: stateKey(name, namespace), folder, files, state: undefined };
  }

  async #checkpoint(stream: OpenStream, { state, windows, announces }: Checkpoint): Promise<void> {
    await stream.files.cover(windows);
    stream.state = state;
    const isDue =
      announces === true ||
      stream.files.covered >= this.#form.cutBytes ||
      this.#monotonic() - this.#committedAt >= COMMIT_MS;
    if (isDue && !isWhole(stream.name, state)) await this.#commit(stream, state);
  }

  /** A stream that is read from the start each time counts only when it is complete; of any other, all that a state covers. */
  async #close(stream: OpenStream, complete: boolean): Promise<void> {
    if (complete) await stream.files.cover();
    const state = stream.state ?? this.#savedState(stream);
    if (state !== undefined && !isWhole(stream.name, state)) await this.#commit(stream, state);
    else if (complete && stream.state !== undefined && !this.#isDelivered(stream, stream.state))
      await this.#commit(stream, stream.state);
    await stream.files.discard();
    this.#stream = undefined;
  }

  #savedState({ key }: OpenStream): StreamState | undefined {
    return this.#state.stateOf(key) as StreamState | undefined;
  }

  /** A full refresh that an earlier run has delivered is only confirmed. */
  #isDelivered(stream: OpenStream, { full_refresh }: StreamState): boolean {
    const saved = this.#savedState(stream)?.["full_refresh"] ?? null;
    return stream.files.isEmpty && saved !== null && JSON.stringify(saved) === JSON.stringify(full_refresh);
  }

  /** Saves a state and publishes the rows that it covers: as files, or as one folder where a stream is read from the start. */
  async #commit(stream: OpenStream, state: StreamState): Promise<void> {
    const { name, key, folder, files } = stream;
    this.#committedAt = this.#monotonic();
    const nextFile = (): string => fileName(this.#form, this.#next(name));
    const full = isWhole(name, state) ? fullName(this.#next(name)) : undefined;
    const taken = full === undefined ? await files.take() : await files.gather(nextFile);
    const pending = taken.parts.map((part) => ({ stream: name, part, name: full ?? nextFile() }));
    const rest = toFolderState({ numbers: this.#numbers, pending });
    // Once the new state may have taken effect, the next run decides by the state that it finds.
    await this.#state.save(key, state, rest, () => files.forget());
    this.#stats.noteSaved(name, state);
    await publishAll(this.#folder, pending);
    if (pending.length > 0) await syncFolder(folder);
    this.#stats.notePublished(name, taken.files);
  }

  #next(name: string): number {
    const number = (this.#numbers.get(name) ?? 0) + 1;
    this.#numbers.set(name, number);
    return number;
  }
}

/** Whether a stream is read from the start each time: its state says nothing of how far it has come, or is that of a full refresh. */
function isWhole(stream: string, state: StreamState): boolean {
  return !PAID.has(stream) && ((state["full_refresh"] ?? null) !== null || !("discoveredAt" in state));
}

/** A state without what it says of the files of another folder. */
function withoutFiles({ streams, rest: { output: _, ...rest } }: SavedState): SavedState {
  return { streams, rest };
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
