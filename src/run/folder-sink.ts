import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../api/clock.ts";
import { STREAMS } from "../catalog/streams.ts";
import { ConfigError, ConnectorError, OutputError } from "../errors.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { publish, syncFolder } from "../files/replace.ts";
import { stateKey } from "../state/envelopes.ts";
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
import type { StateFile } from "./state-file.ts";
import { type FileForm, WindowFiles } from "./window-files.ts";

/** How many bytes of rows, before they have names, are worth a commit, and for how long (ms) fewer may wait. */
const CUT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

export type FolderOptions = {
  readonly gzip: boolean;
  /** Other than 256 MiB only in tests. */
  readonly cutBytes?: number | undefined;
};

/** Told of what is saved and published. */
export type SaveStats = {
  noteSaved(stream: string, state: StreamState): void;
  notePublished(stream: string, files: number): void;
};

type FolderRuntime = { readonly clock: Pick<Clock, "now" | "monotonic">; readonly stats: SaveStats };

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
  readonly #folder: string;
  readonly #file: StateFile;
  readonly #numbers: Map<string, number>;
  readonly #form: FileForm;
  readonly #runtime: FolderRuntime;
  #committedAt: number;
  #stream: OpenStream | undefined;
  #hasFailed = false;

  private constructor(
    folder: string,
    file: StateFile,
    numbers: Map<string, number>,
    form: FileForm,
    runtime: FolderRuntime,
  ) {
    this.#folder = folder;
    this.#file = file;
    this.#numbers = numbers;
    this.#form = form;
    this.#runtime = runtime;
    this.#committedAt = runtime.clock.monotonic();
  }

  /** Finishes what a killed run left in a folder. @param file its state, whose lock keeps other runs from the folder */
  static async open(
    folder: string,
    { gzip, cutBytes = CUT_BYTES }: FolderOptions,
    file: StateFile,
    runtime: FolderRuntime,
  ): Promise<FolderSink> {
    const start = startName(runtime.clock.now());
    try {
      const { numbers, pending } = parseFolderState(file.saved.rest["output"]);
      await recover(folder, pending, numbers);
      return new FolderSink(folder, file, numbers, { start, gzip, cutBytes }, runtime);
    } catch (error) {
      await file.release();
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
      throw failureOf(this.#stream?.folder ?? this.#folder, error);
    }
  }

  /** The end of each stream has committed all that is worth it. */
  async close(): Promise<void> {}

  /** Removes what no state names, and gives the lock back. */
  async release(): Promise<void> {
    await this.#stream?.files.discard();
    await this.#file.release();
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
    this.#runtime.stats.notePublished(name, 0);
    return { name, key: stateKey(name, namespace), folder, files, state: undefined };
  }

  async #checkpoint(
    stream: OpenStream,
    { state, windows, announces }: Extract<Event, { kind: "checkpoint" }>,
  ): Promise<void> {
    await stream.files.cover(windows);
    stream.state = state;
    const isDue =
      announces === true ||
      stream.files.covered >= this.#form.cutBytes ||
      this.#runtime.clock.monotonic() - this.#committedAt >= COMMIT_MS;
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
    return this.#file.stateOf(key) as StreamState | undefined;
  }

  /** A full refresh that an earlier run has delivered is only confirmed. */
  #isDelivered(stream: OpenStream, { full_refresh }: StreamState): boolean {
    const saved = this.#savedState(stream)?.["full_refresh"] ?? null;
    return stream.files.isEmpty && saved !== null && JSON.stringify(saved) === JSON.stringify(full_refresh);
  }

  /** Saves a state and publishes the rows that it covers: as files, or as one folder where a stream is read from the start. */
  async #commit(stream: OpenStream, state: StreamState): Promise<void> {
    const { name, key, folder, files } = stream;
    this.#committedAt = this.#runtime.clock.monotonic();
    const nextFile = (): string => fileName(this.#form, this.#next(name));
    const full = isWhole(name, state) ? fullName(this.#next(name)) : undefined;
    const taken = await files.take(full === undefined ? undefined : nextFile);
    const pending = taken.parts.map((part) => ({ stream: name, part, name: full ?? nextFile() }));
    const rest = toFolderState({ numbers: this.#numbers, pending });
    // Once the new state may have taken effect, the next run decides by the state that it finds.
    await this.#file.save(key, state, rest, () => files.forget());
    this.#runtime.stats.noteSaved(name, state);
    await publishAll(this.#folder, pending);
    if (pending.length > 0) await syncFolder(folder);
    this.#runtime.stats.notePublished(name, taken.files);
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
