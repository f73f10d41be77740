import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigError, OutputError } from "../base/errors.ts";
import { ONWARD } from "../catalog/streams.ts";
import type { Clock } from "../service/clock.ts";
import { stateKey } from "../state/envelopes.ts";
import type { Event, StreamState } from "../sync/event.ts";
import { writeFailure } from "./files/reason.ts";
import { syncFolder } from "./files/replace.ts";
import { fileName, fullName, publishAll, recover, startName } from "./folder-state.ts";
import { holdsFolder, holdsRows } from "./known-rows.ts";
import type { ManifestFile } from "./manifest.ts";
import type { StateFile } from "./state-file.ts";
import type { RunStats } from "./stats.ts";
import { type FileForm, WindowFiles } from "./window-files.ts";

/** How many bytes of rows, before they have names, are worth a commit, and for how long (ms) fewer may wait. */
const CUT_BYTES = 256 * 1024 * 1024;
const COMMIT_MS = 60_000;

export type FolderOptions = {
  readonly gzip: boolean;
  /** Other than 256 MiB only in tests. */
  readonly cutBytes?: number | undefined;
  /** How many rows of each stream are enough, which no state covers; undefined: all. */
  readonly sample?: number | undefined;
};

export type FolderRuntime = {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly stats: Pick<RunStats, "noteSaved" | "notePublished">;
};

/** The folder of a run. */
type Folder = {
  readonly path: string;
  readonly file: StateFile;
  /** The last that each stream gave a file. */
  readonly numbers: Map<string, number>;
  /** All that was published in it. */
  manifest: readonly ManifestFile[];
  readonly sample: number | undefined;
  readonly form: FileForm;
  readonly runtime: FolderRuntime;
};

/** The stream that is being read. */
type OpenStream = {
  readonly name: string;
  /** Under which name the state has it. */
  readonly key: string;
  readonly files: WindowFiles;
  /** That of the last checkpoint of this run. */
  state: StreamState | undefined;
};

/**
 * Writes the records of a run into files in one folder, and its state into `state.json` beside them.
 *
 * Records go to parts, whose names are hidden. A commit syncs the parts, then replaces the state, which names them as
 * pending and covers exactly their windows, and only then publishes them by rename. After a crash at any moment the next
 * run publishes what is pending and removes all other parts. So the files of all runs together hold exactly the records
 * that the state covers. A visible file is never removed or replaced.
 */
export class FolderSink {
  readonly #folder: Folder;
  #committedAt: number;
  #stream: OpenStream | undefined;
  #hasFailed = false;

  private constructor(folder: Folder) {
    this.#folder = folder;
    this.#committedAt = folder.runtime.clock.monotonic();
  }

  /** Finishes what a killed run left in a folder. @param file its state, whose lock keeps other runs from the folder */
  static async open(
    path: string,
    { gzip, cutBytes = CUT_BYTES, sample }: FolderOptions,
    file: StateFile,
    runtime: FolderRuntime,
  ): Promise<FolderSink> {
    const form = { start: startName(runtime.clock.now()), gzip, cutBytes };
    try {
      const recovered = await recover(path, file.saved.rest["output"]);
      return new FolderSink({ path, file, ...recovered, form, runtime, sample });
    } catch (error) {
      await file.release();
      throw writeFailure(path, error);
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
      const failure = writeFailure(this.#stream?.files.folder ?? this.#folder.path, error);
      const isOfFolder = failure instanceof ConfigError && !(failure instanceof OutputError);
      throw isOfFolder ? new OutputError(failure.message, { cause: failure }) : failure;
    }
  }

  /** Removes what no state names, and gives the lock back. */
  async release(): Promise<void> {
    await this.#stream?.files.discard();
    await this.#folder.file.release();
  }

  async #take(event: Event): Promise<void> {
    if (event.kind === "open") {
      const { path, form, runtime } = this.#folder;
      const { stream: name, namespace } = event;
      const files = new WindowFiles(join(path, name), form);
      this.#stream = { name, key: stateKey(name, namespace), files, state: undefined };
      runtime.stats.notePublished(name, 0, 0);
    }
    const stream = this.#stream;
    if (stream === undefined) return;
    if (event.kind === "records") await stream.files.append(event.lines, event.window ?? 0);
    if (event.kind === "checkpoint") await this.#checkpoint(stream, event);
    if (event.kind === "close") await this.#close(stream, event.complete && event.error === undefined);
    if (event.kind === "end") await this.#close(stream, false);
  }

  async #checkpoint(
    stream: OpenStream,
    { state, windows, announces }: Extract<Event, { kind: "checkpoint" }>,
  ): Promise<void> {
    await stream.files.cover(windows);
    stream.state = state;
    const isDue =
      announces === true ||
      stream.files.covered >= this.#folder.form.cutBytes ||
      this.#folder.runtime.clock.monotonic() - this.#committedAt >= COMMIT_MS;
    if (isDue && !isFromStart(stream.name, state)) await this.#commit(stream, state);
  }

  /** A stream that is read from the start each time counts only when it is complete; of any other, all that a state covers. */
  async #close(stream: OpenStream, complete: boolean): Promise<void> {
    const { name, key, files, state } = stream;
    if (complete) await files.cover();
    const saved = this.#folder.file.stateOf(key);
    const covered = state ?? saved;
    if (covered !== undefined && !isFromStart(name, covered)) await this.#commit(stream, covered);
    else if (complete && this.#folder.sample !== undefined) await this.#commit(stream, undefined);
    else if (complete && state !== undefined && !(files.isEmpty && isConfirmed(state, saved)))
      await this.#commit(stream, state);
    await files.discard();
    this.#stream = undefined;
  }

  /**
   * Saves a state and publishes the rows that it covers: as files, or as one folder where a stream is read from the start.
   * @param state undefined: the rows are a sample
   */
  async #commit({ name, key, files }: OpenStream, state: StreamState | undefined): Promise<void> {
    const { path, file, numbers, manifest, form, runtime, sample } = this.#folder;
    this.#committedAt = runtime.clock.monotonic();
    const next = (): number => {
      numbers.set(name, (numbers.get(name) ?? 0) + 1);
      return numbers.get(name) ?? 0;
    };
    const nextFile = (): string => fileName(form, next());
    const full = state !== undefined && isFromStart(name, state) ? fullName(next()) : undefined;
    const taken = await files.take(full === undefined ? undefined : nextFile);
    const isKnown =
      full === undefined
        ? !ONWARD.has(name) && (await holdsRows(path, manifest, name, taken))
        : !isRefresh(state) && (await holdsFolder(path, manifest, name, taken));
    if (isKnown) await files.drop();
    const pending = (isKnown ? [] : taken).map(({ part, files: held }) => {
      const visible = full ?? nextFile();
      const path = (inside?: string): string => [name, visible, inside].filter(Boolean).join("/");
      return {
        ...{ stream: name, part, name: visible },
        files: held.map(({ inside, ...content }) => ({ file: path(inside), ...content })),
      };
    });
    const published = pending.flatMap(({ files: held }) => held);
    const rest = {
      output: { numbers: Object.fromEntries(numbers), pending, files: manifest.length + published.length },
    };
    // Once the new state may have taken effect, the next run decides by the state that it finds.
    if (state === undefined) files.forget();
    else {
      await file.save(key, state, rest, () => files.forget());
      runtime.stats.noteSaved(name, state);
    }
    this.#folder.manifest = await publishAll(path, pending, manifest, sample);
    if (pending.length > 0) await syncFolder(files.folder);
    const rows = published.reduce((sum, one) => sum + one.rows, 0);
    runtime.stats.notePublished(name, published.length, rows);
  }
}

/** Whether a stream is read from the start each time: its state says nothing of how far it has come, or is that of a full refresh. */
function isFromStart(stream: string, state: StreamState): boolean {
  return !ONWARD.has(stream) && (isRefresh(state) || !("discoveredAt" in state));
}

/** Whether a state is that of a full refresh, for which someone has asked. */
const isRefresh = (state: StreamState | undefined): boolean => (state?.["full_refresh"] ?? null) !== null;

/** Whether a state only confirms a full refresh that an earlier run has delivered. */
function isConfirmed({ full_refresh }: StreamState, saved: StreamState | undefined): boolean {
  const delivered = saved?.["full_refresh"] ?? null;
  return delivered !== null && isDeepStrictEqual(delivered, full_refresh);
}
