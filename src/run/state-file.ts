import { ConfigError, OutputError } from "../errors.ts";
import { Lock, type LockRuntime } from "../files/lock.ts";
import { readText } from "../files/read.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { removeLeftovers, replaceFile, statReplaceable } from "../files/replace.ts";
import type { JsonObject } from "../json.ts";
import { parseStateText, type SavedState } from "../state/envelopes.ts";
import type { StreamState } from "../streams/event.ts";

/** What a state file needs of the process, and who is told that a lock has to be watched. */
export type StateFileRuntime = LockRuntime & { readonly notify?: (text: string) => void };

/**
 * A file that always holds a complete state, that of the last checkpoint whose records have left; the one before is kept
 * beside it as `.previous`. A crash at any moment leaves one or the other. One run at a time uses it: it has a lock.
 */
export class StateFile {
  readonly path: string;
  /** What the file held when it was opened. */
  readonly saved: SavedState;
  /** Whether there was a file when it was opened. */
  readonly existed: boolean;
  readonly #lock: Lock;
  readonly #bookmarks: Map<string, unknown>;
  #rest: JsonObject;

  private constructor(path: string, lock: Lock, saved: SavedState, existed: boolean) {
    this.path = path;
    this.saved = saved;
    this.existed = existed;
    this.#lock = lock;
    this.#bookmarks = new Map(saved.streams);
    this.#rest = saved.rest;
  }

  /**
   * A file that is not there yet is an empty state, and is not made before there is one. Throws ConfigError for a file
   * that cannot be read or replaced, TransientError while another run uses it.
   */
  static async open(path: string, runtime: StateFileRuntime): Promise<StateFile> {
    await statReplaceable(path);
    const lock = await Lock.acquire(path, runtime, runtime.notify);
    runtime.atEnd?.(() => lock.releaseNow());
    try {
      // A run that lost the lock while it slept can replace nothing once its unfinished try is gone: only then is the
      // state that is read here the last one.
      await removeLeftovers(path);
      const existed = (await statReplaceable(path)) !== undefined;
      const saved = existed ? parseSaved(path, await readText("state", path)) : parseStateText("");
      return new StateFile(path, lock, saved, existed);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** The state as it is now. */
  get now(): SavedState {
    return { streams: new Map(this.#bookmarks), rest: this.#rest };
  }

  /** Takes over the state of another file as if this one had held it. */
  seed(saved: SavedState): void {
    for (const [stream, state] of saved.streams) this.#bookmarks.set(stream, state);
    this.#rest = { ...saved.rest, ...this.#rest };
  }

  /**
   * Returns when the new state is on the disk. Throws OutputError.
   * @param rest what the file holds beside the streams, and is to be replaced
   * @param onReplace called right before the new state takes effect
   */
  async save(
    stream: string,
    state: StreamState,
    rest: JsonObject = {},
    onReplace: () => void = () => {},
  ): Promise<void> {
    this.#bookmarks.set(stream, state);
    this.#rest = { ...this.#rest, ...rest };
    const text = `${JSON.stringify({ ...this.#rest, bookmarks: Object.fromEntries(this.#bookmarks) })}\n`;
    const beforeRename = async (): Promise<void> => {
      await this.check();
      onReplace();
    };
    try {
      await replaceFile(this.path, text, { keepPrevious: true, beforeRename });
    } catch (cause) {
      if (codeOf(cause) === undefined && cause instanceof Error)
        throw new OutputError(cause.message, { cause });
      throw new OutputError(`Cannot replace the state file "${this.path}": ${reasonOf(cause)}`, { cause });
    }
  }

  /** Throws TransientError if another run has taken over. Call it right before anything that cannot be taken back. */
  async check(): Promise<void> {
    await this.#lock.check();
  }

  /** Gives the lock back. */
  async release(): Promise<void> {
    await this.#lock.release();
  }
}

function parseSaved(path: string, text: string): SavedState {
  if (text.trim() === "") {
    throw new ConfigError(
      `Cannot use the state file "${path}": it is empty, which no run leaves behind. Put "${path}.previous" in its place, or remove it to read everything from the start`,
    );
  }
  try {
    return parseStateText(text);
  } catch (cause) {
    const why = cause instanceof ConfigError ? cause.message : String(cause);
    throw new ConfigError(
      `Cannot use the state file "${path}": it is damaged. ${why}. The state before it is in "${path}.previous"`,
      { cause },
    );
  }
}
