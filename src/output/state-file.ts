import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError, OutputError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { isSingerState, parseStateText, type SavedState } from "../state/envelopes.ts";
import type { StreamState } from "../sync/event.ts";
import { Lock, type LockRuntime } from "./files/lock.ts";
import { readText } from "./files/read-file.ts";
import { cannotMake } from "./files/reason.ts";
import { removeLeftovers, replaceFile, statReplaceable, tryReplacing } from "./files/replace.ts";

/** A file with a lock, and the state of the last delivered checkpoint. `<path>.previous` contains the state before. */
export class StateFile {
  readonly path: string;
  readonly lock: Lock;
  readonly #bookmarks: Map<string, unknown>;
  #rest: JsonObject;

  private constructor(path: string, lock: Lock, saved: SavedState) {
    this.path = path;
    this.lock = lock;
    this.#bookmarks = new Map(saved.streams);
    this.#rest = saved.rest;
  }

  /** Opens a file or a new file. Throws ConfigError, and TransientError during another run. @param seed the state of a new file */
  static async open(path: string, runtime: LockRuntime, seed = parseStateText("")): Promise<StateFile> {
    await statReplaceable(path);
    const lock = await Lock.acquire(path, runtime);
    try {
      // A paused run that lost the lock could still rename its temporary file. So the file is removed before the state is read.
      await removeLeftovers(path);
      await tryReplacing(path, () => lock.check()).catch((cause: unknown) => {
        throw cannotMake(`replace the state file "${path}"`, cause);
      });
      const isThere = (await statReplaceable(path)) !== undefined;
      return new StateFile(path, lock, isThere ? await readState(path) : seed);
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** The state in the file now. A new file has the state `seed`. */
  get saved(): SavedState {
    return { streams: new Map(this.#bookmarks), rest: this.#rest };
  }

  /** Returns when the new state (null: unchanged) is on the disk. Throws OutputError. @param onReplace called before the rename */
  async save(
    stream: string,
    state: StreamState | null,
    rest: JsonObject = {},
    onReplace: () => void = () => {},
  ): Promise<void> {
    if (state !== null) this.#bookmarks.set(stream, state);
    this.#rest = { ...this.#rest, ...rest };
    const text = `${JSON.stringify({ ...this.#rest, bookmarks: Object.fromEntries(this.#bookmarks) })}\n`;
    const beforeRename = async (): Promise<void> => {
      await this.lock.check();
      onReplace();
    };
    try {
      await replaceFile(this.path, text, { keepPrevious: true, beforeRename });
    } catch (cause) {
      throw new OutputError(cannotMake(`replace the state file "${this.path}"`, cause).message, { cause });
    }
  }
}

/**
 * Reads the state of a file, of a folder of `read --output`, or of stdin (`-`). Throws ConfigError.
 * @param mayBeEmpty whether an empty text is an empty state; false: an empty text is an error, because a full disk empties files
 */
export async function readState(given: string, mayBeEmpty = false) {
  const isFolder = (await stat(given).catch(() => undefined))?.isDirectory() === true;
  const path = isFolder ? join(given, "state.json") : given;
  const text = await readText("state", path);
  try {
    if (text.trim() === "" && !mayBeEmpty) throw new ConfigError("it is empty");
    return { ...parseStateText(text), isSinger: isSingerState(text) };
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    const previous = `${path}.previous`;
    const before = existsSync(previous)
      ? `The state before it is in "${previous}"`
      : "Use the state of an earlier run, or delete the file to read everything again";
    throw new ConfigError(`Cannot use the state file "${path}": ${cause.message}. ${before}`, { cause });
  }
}
