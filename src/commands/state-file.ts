import { copyFile, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../errors.ts";
import { parseStateText, type SavedState } from "../source/state.ts";
import type { StreamState } from "../sync/event.ts";
import { readText } from "./files.ts";

/**
 * A file that always holds a whole state, that of the last checkpoint whose records have left; the one before is kept
 * beside it as `.previous`. A crash at any moment leaves one or the other.
 */
export class StateFile {
  /** What the file held when it was opened. */
  readonly saved: SavedState;
  readonly #path: string;
  readonly #bookmarks: Map<string, unknown>;
  #exists: boolean;

  private constructor(path: string, saved: SavedState, exists: boolean) {
    this.#path = path;
    this.saved = saved;
    this.#bookmarks = new Map(saved.streams);
    this.#exists = exists;
  }

  /** A file that is not there yet is an empty state. Throws ConfigError for one that cannot be read or replaced. */
  static async open(name: string): Promise<StateFile> {
    const target = await realpath(name).catch(() => undefined);
    const path = target ?? name;
    const text = target === undefined ? "" : await readText("state", target);
    await attempt(path, () => tryOut(path));
    return new StateFile(path, parse(path, text), target !== undefined);
  }

  /** Returns when the new state is on the disk. */
  async save(stream: string, state: StreamState): Promise<void> {
    this.#bookmarks.set(stream, state);
    const text = `${JSON.stringify({ ...this.saved.rest, bookmarks: Object.fromEntries(this.#bookmarks) })}\n`;
    await attempt(this.#path, () => this.#replace(text));
  }

  async #replace(text: string): Promise<void> {
    const path = this.#path;
    await writeDurably(`${path}.next`, text);
    if (this.#exists) {
      await copyFile(path, `${path}.previous.next`);
      await rename(`${path}.previous.next`, `${path}.previous`);
    }
    await rename(`${path}.next`, path);
    this.#exists = true;
    await syncDirectory(dirname(path));
  }
}

/** Where a run goes on from: a file that is only read, or one that is also kept. */
export async function openState(options: {
  readonly state: string | undefined;
  readonly stateFile?: string | undefined;
}): Promise<{ readonly saved: SavedState; readonly file: StateFile | undefined }> {
  const { state, stateFile } = options;
  if (stateFile !== undefined) {
    const file = await StateFile.open(stateFile);
    return { saved: file.saved, file };
  }
  const text = state === undefined ? "" : await readText("state", state);
  return { saved: parseStateText(text), file: undefined };
}

function parse(path: string, text: string): SavedState {
  try {
    return parseStateText(text);
  } catch (cause) {
    const why = cause instanceof ConfigError ? cause.message : String(cause);
    throw new ConfigError(
      `The state file "${path}" is damaged. ${why}. The state before it is in "${path}.previous"`,
    );
  }
}

/** Better now than after the first window. */
async function tryOut(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeDurably(`${path}.next`, "");
  await rm(`${path}.next`);
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A rename is on the disk only when its directory is. Not every system lets a directory be synced. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r").catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}

async function attempt(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    const { code } = cause as { code?: unknown };
    throw new ConfigError(`Cannot replace the state file "${path}": ${String(code)}`, { cause });
  }
}
