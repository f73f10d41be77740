import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../base/errors.ts";
import type { Language } from "../protocol/language.ts";
import type { Mask } from "../protocol/mask.ts";
import { Writer } from "../protocol/writer.ts";
import { parseStateText, type SavedState, stateKey } from "../state/envelopes.ts";
import type { Event } from "../sync/event.ts";
import { readText } from "./files/read-file.ts";
import { makeFolder } from "./files/replace.ts";
import { Folder, type FolderOptions, type FolderRuntime } from "./folder.ts";
import { StateFile, type StateFileRuntime } from "./state-file.ts";

/** Takes all that leaves a run, and saves its state: stdout, a state file or a folder. */
export type Sink = {
  /** The state from which the run goes on. */
  readonly saved: SavedState;
  /** The file from which the next run goes on; null: the state goes to stdout, or nowhere. */
  readonly place: string | null;
  /** Returns when there is room for more; for a checkpoint, when it is saved, or will be with a later one. */
  emit(event: Event): Promise<void>;
  /** Throws TransientError if another run has taken over the state that this one saves. */
  check(): Promise<void>;
  /** Saves what can still be saved of a run that cannot go on. */
  settle(): Promise<void>;
  /** Returns when all has left. */
  close(): Promise<void>;
  /** Gives the locks back, even if nothing more can be written. */
  release(): Promise<void>;
};

type OnlyRead = { readonly kind: "stdout"; readonly state?: string | undefined };

/** The place that takes records and state. `state`: a file with the state to go on from, which is only read. */
export type Destination =
  | OnlyRead
  | { readonly kind: "state file"; readonly path: string }
  | ({ readonly kind: "folder"; readonly path: string; readonly state?: string | undefined } & FolderOptions);

/** The options of a command that name the place of records and state. */
export type Places = {
  readonly state: string | undefined;
  readonly stateFile?: string | undefined;
  /** A folder that takes records and state in place of stdout. */
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  /** How many bytes of rows are enough for a commit: other than usual only in tests. */
  readonly fileBytes?: number | undefined;
  /** How many rows of each stream are enough: a sample, of which no state is saved; undefined: all. */
  readonly limit?: number | undefined;
};

export function destinationOf(places: Places): Destination {
  const { state, stateFile, output, compress, fileBytes, limit } = places;
  if (output !== undefined) {
    const form = { gzip: compress === "gzip", commitBytes: fileBytes, sample: limit };
    return { kind: "folder", path: output, state, ...form };
  }
  if (limit !== undefined) return onlyRead(places);
  return stateFile === undefined ? { kind: "stdout", state } : { kind: "state file", path: stateFile };
}

/** The state from which a run would go on, for a run that changes nothing there. */
export function onlyRead({ state, stateFile, output }: Places): OnlyRead {
  const own = output === undefined ? stateFile : join(output, "state.json");
  return { kind: "stdout", state: state ?? (own !== undefined && existsSync(own) ? own : undefined) };
}

export type SinkRuntime = StateFileRuntime & FolderRuntime & { readonly stdout: NodeJS.WritableStream };

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
  const path = to.kind === "state file" ? undefined : to.state;
  const given = path === undefined ? undefined : parseStateText(await readText("state", path));
  if (to.kind === "folder") {
    await makeFolder(to.path);
    if (to.sample !== undefined) refuseUsed(to.path);
    // A state that comes from another folder names the files of that folder.
    const seed = given && { ...given, rest: { ...given.rest, output: undefined } };
    const file = await StateFile.open(join(to.path, "state.json"), runtime, seed);
    const folder = new Folder(to.path, file, to, runtime);
    await folder.recover();
    return {
      ...savedIn(file),
      emit: folder.emit.bind(folder),
      settle: () => folder.emit({ kind: "end" }),
      close: nothing,
      release: folder.release.bind(folder),
    };
  }
  const file = to.kind === "state file" ? await StateFile.open(to.path, runtime) : undefined;
  const save = async (event: Event): Promise<void> => {
    if (event.kind !== "checkpoint") return;
    await file?.save(stateKey(event.stream, event.namespace), event.state);
    runtime.stats.noteSaved(event.stream, event.state);
  };
  const writer = new Writer(say, runtime.stdout, save, mask.apply);
  const saved = given ?? parseStateText("");
  const place = file === undefined ? { saved, place: null, check: nothing, release: nothing } : savedIn(file);
  return { ...place, emit: writer.emit.bind(writer), settle: nothing, close: writer.close.bind(writer) };
}

/** Throws ConfigError for a folder of an earlier run: the sample would be among its rows. */
function refuseUsed(folder: string): void {
  const found = join(folder, "state.json");
  if (existsSync(found))
    throw new ConfigError(`Cannot write a sample: "${found}" is of an earlier run. Choose another folder`);
}

const nothing = async (): Promise<void> => {};

const savedIn = (file: StateFile): Pick<Sink, "saved" | "place" | "check" | "release"> => ({
  saved: file.saved,
  place: file.path,
  check: () => file.check(),
  release: () => file.release(),
});
