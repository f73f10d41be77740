import { existsSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../base/json.ts";
import type { Language } from "../protocol/language.ts";
import type { Mask } from "../protocol/mask.ts";
import { Writer } from "../protocol/writer.ts";
import { parseStateText, type SavedState, stateKey } from "../state/envelopes.ts";
import type { Event, StreamState } from "../sync/event.ts";
import type { Lock, LockRuntime } from "./files/lock.ts";
import { Folder } from "./folder.ts";
import { readState, StateFile } from "./state-file.ts";

/** A state whose records have left; null: a sample has none. `files`: those that can be seen by now, with these rows. */
export type Saved = {
  readonly state: StreamState | null;
  readonly files?: number;
  readonly rows?: number;
  readonly bytes?: number;
};

/** Takes all that leaves a run, and saves its state: stdout, a state file or a folder. */
export type Sink = {
  /** The state from which the run continues. */
  readonly saved: SavedState;
  /** The file from which the next run continues; null: the state goes to stdout, or nowhere. */
  readonly place: string | null;
  /** The lock of that file. */
  readonly lock: Lock | undefined;
  /** Returns when there is room for more; for a checkpoint, when it is saved, or will be with a later one. */
  emit(event: Event): Promise<Saved | undefined>;
  /** Saves what can still be saved of a run that cannot continue. Waits for no reader. */
  settle(): Promise<Saved | undefined>;
  /** Returns when all has left. */
  close(): Promise<void>;
  /** Gives the locks back, even if nothing more can be written. */
  release(): Promise<void>;
};

/** The place that takes records and state: a folder, stdout and a state file, or stdout. */
export type Destination = {
  /** A file with the state to continue from, which is only read. */
  readonly state?: string | undefined;
  /** Whether a platform wrote `state`, so that an empty file is an empty state. */
  readonly isPlatform?: boolean;
  readonly stateFile?: string | undefined;
  /** A folder that takes records and state in place of stdout. */
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  /** How many bytes of rows are enough for a commit: other than 256 MiB only in tests. */
  readonly fileBytes?: number | undefined;
  /** The settings that a folder remembers, so that a later run can tell that they are others. */
  readonly privacy?: JsonObject | undefined;
  /** How many rows of each stream are enough: a sample, which saves no state; undefined: all. */
  readonly limit?: number | undefined;
};

/** The state from which a run would continue, for a run that changes nothing there. */
export function onlyRead({ state, stateFile, output }: Destination): Destination {
  const own = output === undefined ? stateFile : join(output, "state.json");
  return { state: state ?? (own !== undefined && existsSync(own) ? own : undefined) };
}

export type SinkRuntime = LockRuntime & { readonly stdout: NodeJS.WritableStream };

/** Opens the state and the place for records. Throws ConfigError, and TransientError while another run uses the place. */
export async function openSink(
  asked: Destination,
  format: Language | undefined,
  mask: Mask,
  runtime: SinkRuntime,
): Promise<Sink> {
  const { output, limit } = asked;
  const to = limit === undefined || output !== undefined ? asked : onlyRead(asked);
  const given = to.state === undefined ? undefined : await readState(to.state, to.isPlatform);
  if (output !== undefined) return await Folder.open(output, to, given, runtime);
  const file = to.stateFile === undefined ? undefined : await StateFile.open(to.stateFile, runtime);
  return stdoutSink(format, mask, runtime, file, given);
}

/** @param file takes the state too @param given the state to continue from where there is no file */
export function stdoutSink(
  format: Language = () => "",
  mask: Mask,
  { stdout }: Pick<SinkRuntime, "stdout">,
  file?: StateFile,
  given = parseStateText(""),
): Sink {
  const writer = new Writer(format, stdout, mask.apply);
  return {
    saved: file?.saved ?? given,
    place: file?.path ?? null,
    lock: file?.lock,
    emit: async (event) => {
      const hasLeft = await writer.emit(event);
      if (event.kind !== "checkpoint" || !hasLeft) return undefined;
      await file?.save(stateKey(event.stream, event.namespace), event.state);
      return { state: event.state };
    },
    settle: async () => undefined,
    close: writer.close.bind(writer),
    release: async () => file?.lock.release(),
  };
}
