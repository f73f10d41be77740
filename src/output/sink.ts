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

/** A saved state (null: a sample has no state), and the visible files with its records. */
export type Saved = {
  readonly state: StreamState | null;
  readonly files?: number;
  readonly rows?: number;
  readonly bytes?: number;
};

/** Takes all events of a run and saves its state: stdout, a state file or a folder. */
export type Sink = {
  readonly saved: SavedState;
  /** The file from which the next run continues; null: no file has the state. */
  readonly place: string | null;
  readonly lock: Lock | undefined;
  /** Returns when there is room for more events. A folder may save several checkpoints together later. */
  emit(event: Event): Promise<Saved | undefined>;
  /** Saves the covered rows of a run that cannot continue. Does not wait for readers. */
  settle(): Promise<Saved | undefined>;
  /** Returns when all text has left the program. */
  close(): Promise<void>;
  /** Removes the locks, even after the output broke. */
  release(): Promise<void>;
};

/** The place for records and state: a folder, stdout and a state file, or stdout. */
export type Destination = {
  /** A file with the state from which the run continues. The run does not change the file. */
  readonly state?: string | undefined;
  /** Whether a platform wrote `state`. Then an empty file is an empty state. */
  readonly isPlatform?: boolean;
  readonly stateFile?: string | undefined;
  readonly output?: string | undefined;
  readonly compress?: "gzip" | undefined;
  /** A commit is due after this number of bytes of rows. Only tests set this number. */
  readonly fileBytes?: number | undefined;
  /** The privacy settings, which a folder saves so that a later run notices changes. */
  readonly privacy?: JsonObject | undefined;
  /** The largest number of rows of each stream, for a sample, which saves no state; undefined: all rows. */
  readonly limit?: number | undefined;
};

/** The destination of a run that starts from the same state but saves nothing. */
export function onlyRead({ state, stateFile, output }: Destination): Destination {
  const own = output === undefined ? stateFile : join(output, "state.json");
  return { state: state ?? (own !== undefined && existsSync(own) ? own : undefined) };
}

export type SinkRuntime = LockRuntime & { readonly stdout: NodeJS.WritableStream };

/** Opens the state and the place for records. Throws ConfigError, and TransientError during another run. */
export async function openSink(
  asked: Destination,
  format: Language | undefined,
  mask: Mask,
  runtime: SinkRuntime,
): Promise<Sink> {
  const { output, limit } = asked;
  const to = limit === undefined || output !== undefined ? asked : onlyRead(asked);
  const given = to.state === undefined ? undefined : await readState(to.state, to.isPlatform);
  if (output !== undefined) return await Folder.open(output, to, runtime, given);
  const file = to.stateFile === undefined ? undefined : await StateFile.open(to.stateFile, runtime);
  return stdoutSink(format, mask, runtime, file, given);
}

/** @param file a file that also gets the state @param given the state from which a run without a file continues */
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
