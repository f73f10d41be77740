import { readText } from "../files/read.ts";
import type { Language } from "../protocol/language.ts";
import type { Mask } from "../protocol/mask.ts";
import { Writer } from "../protocol/writer.ts";
import { parseStateText, type SavedState, stateKey } from "../state/envelopes.ts";
import type { Event } from "../streams/event.ts";
import { type FolderOptions, FolderSink, type SaveStats } from "./folder-sink.ts";
import { StateFile, type StateFileRuntime } from "./state-file.ts";

/** Takes all that leaves a run, and knows what of it is saved. */
export type Sink = {
  /** The state from which the run goes on. */
  readonly saved: SavedState;
  /** The file from which the next run goes on; null: the state goes to stdout, or nowhere. */
  readonly place: string | null;
  /** Returns when there is room for more; for a checkpoint, when it is saved, or will be with a later one. */
  emit(event: Event): Promise<void>;
  /** Throws TransientError if another run has taken over the state that this one saves. */
  check(): Promise<void>;
  /** Returns when all has left. */
  close(): Promise<void>;
  /** Gives the locks back, even if nothing more can be written. */
  release(): Promise<void>;
};

/** Where records and state go. `state`, `seed`: the file with the state to go on from, which is only read. */
export type Destination =
  | { readonly kind: "stdout"; readonly state?: string | undefined }
  | { readonly kind: "state file"; readonly path: string }
  | ({ readonly kind: "folder"; readonly path: string; readonly seed?: string | undefined } & FolderOptions);

/** What a command's options say of the place of records and state. */
type Places = {
  readonly state: string | undefined;
  readonly stateFile?: string | undefined;
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  readonly fileBytes?: number | undefined;
};

export function destinationOf({ state, stateFile, output, compress, fileBytes }: Places): Destination {
  if (output !== undefined)
    return { kind: "folder", path: output, seed: state, gzip: compress === "gzip", cutBytes: fileBytes };
  return stateFile === undefined ? { kind: "stdout", state } : { kind: "state file", path: stateFile };
}

export type SinkRuntime = StateFileRuntime & {
  readonly stdout: NodeJS.WritableStream;
  readonly stats: SaveStats;
};

/**
 * Opens the state and the place that takes the run's records.
 * Throws ConfigError, and TransientError while another run uses the place.
 * @param say what stdout speaks; a folder leaves it silent
 */
export async function openSink(
  to: Destination,
  say: Language,
  mask: Mask,
  runtime: SinkRuntime,
): Promise<Sink> {
  if (to.kind === "folder") {
    const seed = to.seed === undefined ? undefined : await readGivenState(to.seed);
    return await FolderSink.open(to.path, to, runtime, seed);
  }
  const file = to.kind === "state file" ? await StateFile.open(to.path, runtime) : undefined;
  const saved = file?.saved ?? (await readGivenState(to.kind === "stdout" ? to.state : undefined));
  const save = async (event: Event): Promise<void> => {
    if (event.kind !== "checkpoint") return;
    await file?.save(stateKey(event.stream, event.namespace), event.state);
    runtime.stats.noteSaved(event.stream, event.state);
  };
  const writer = new Writer(say, runtime.stdout, save, mask.apply);
  return {
    saved,
    place: file?.path ?? null,
    emit: writer.emit.bind(writer),
    check: async () => await file?.check(),
    close: writer.close.bind(writer),
    release: async () => await file?.release(),
  };
}

const readGivenState = async (path: string | undefined): Promise<SavedState> =>
  parseStateText(path === undefined ? "" : await readText("state", path));
