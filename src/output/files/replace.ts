import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { platform } from "node:os";
import { basename, dirname, join } from "node:path";
import { ConfigError } from "../../base/errors.ts";
import { cannotMake, codeOf, losesBytes, reasonOf, unlessMissing } from "./reason.ts";

/** A whole content, or its pieces. */
type Content = string | Buffer | AsyncIterable<string | Buffer>;

type Options = {
  /** Keeps the old file as `<path>.previous`. */
  readonly keepPrevious?: boolean;
  /** Gives the file the mode 0600. Refuses a volume on which other users could read the file. */
  readonly isSecret?: boolean;
  /** Called before the rename. If it throws, the old file stays. */
  readonly beforeRename?: (() => Promise<void>) | undefined;
};

/**
 * Replaces a file on the disk. After a crash the file has the old content or the new content, never a part. The file keeps
 * its mode and owner; a new file has the mode 0600. Throws ConfigError for a link, and errors of the system.
 */
export async function replaceFile(path: string, content: Content, options: Options = {}): Promise<void> {
  const { keepPrevious = false, isSecret = false, beforeRename } = options;
  const old = await statReplaceable(path);
  const next = temporaryName(path);
  try {
    await writeDurably(next, content, old, isSecret);
    if (keepPrevious && old !== undefined) await keep(path);
    await beforeRename?.();
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Tries to replace a file by its own bytes, or a temporary file. So a volume refuses before the run, not after hours. */
export async function tryReplacing(path: string, beforeRename?: () => Promise<void>): Promise<void> {
  if ((await statReplaceable(path)) !== undefined)
    return await replaceFile(path, await readFile(path), { beforeRename });
  const trial = temporaryName(path);
  try {
    await writeDurably(trial, "");
    await replaceFile(trial, "");
  } finally {
    await rm(trial, { force: true });
  }
}

/** The regular file at a path; undefined: there is no file. Throws ConfigError for a folder, link, pipe or device. */
export async function statReplaceable(path: string): Promise<Stats | undefined> {
  const stats = await statAt(path).catch((error: unknown) => {
    throw new ConfigError(`Cannot replace the file "${path}": ${reasonOf(error)}`, { cause: error });
  });
  if (stats === undefined || stats.isFile()) return stats;
  throw new ConfigError(
    `Cannot replace the file "${path}": it is ${stats.isDirectory() ? "a folder" : "a link, a pipe or a device"}. Name a regular file`,
  );
}

/** Removes temporary files of killed runs. The caller owns the lock of the file. */
export async function removeLeftovers(path: string): Promise<void> {
  const head = `${basename(path)}.`;
  const names = await readdir(dirname(path)).catch(() => []);
  const left = names.filter((name) => name.startsWith(head) && TEMPORARY.test(name.slice(head.length)));
  for (const name of left) await rm(join(dirname(path), name), { force: true });
}

const statAt = (path: string, look: (path: string) => Promise<Stats> = lstat): Promise<Stats | undefined> =>
  look(path).catch(unlessMissing);

/** Makes a folder for its owner alone. Throws ConfigError. @param withParents also makes the folders above */
export async function makeFolder(path: string, withParents = false): Promise<void> {
  await mkdir(path, { mode: 0o700, recursive: withParents }).catch(async (cause: unknown) => {
    const isFolder = async (at: string) => (await statAt(at, stat))?.isDirectory() === true;
    const code = codeOf(cause);
    if (code === "EEXIST" && (await isFolder(path))) return;
    const parent = dirname(path);
    let why = code === "EEXIST" ? "there is a file of this name" : reasonOf(cause);
    // Some folders, such as /proc, accept no new folder.
    if (code === "ENOENT")
      why = (await isFolder(parent)) ? "not possible here" : `there is no folder "${parent}"`;
    throw cannotMake(`make the folder "${path}"`, cause, why);
  });
  // A killed run may have made the folder without a sync.
  await syncFolder(dirname(path));
}

/** Renames a finished file or folder. A second call does nothing. Throws ConfigError if the new name exists. */
export async function publish(from: string, to: string): Promise<void> {
  if ((await statAt(from)) === undefined) return;
  if ((await statAt(to)) !== undefined)
    throw new ConfigError(
      `Cannot publish "${from}" as "${to}": that name is taken. Move "${to}" away and run again`,
    );
  // With a link and a removal, a reader could see both names and read the rows twice.
  await rename(from, to);
}

/** Syncs a file or folder to the disk. Some volumes refuse a sync, which is ignored. */
export const syncHandle = (handle: FileHandle): Promise<void> => handle.sync().catch(unlessLost);

/** Syncs a folder, which also makes renames in the folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(unlessLost);
  if (folder === undefined) return;
  await syncHandle(folder).finally(() => folder.close());
}

function unlessLost(error: unknown): undefined {
  if (losesBytes(error)) throw error;
}

/** The ends of names of temporary files, and of locks that a run has taken over. */
const TEMPORARY = /^(?:lock\.)?[0-9a-f]{16}\.tmp(?:\.[0-9a-f]{16}\.tmp)?$/;

const temporaryName = (path: string): string => `${path}.${randomBytes(8).toString("hex")}.tmp`;

async function writeDurably(path: string, content: Content, like?: Stats, isSecret = false): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    if (like !== undefined) await copyRights(file, like, isSecret ? 0o600 : like.mode & 0o777);
    if (isSecret && platform() !== "win32" && ((await file.stat()).mode & 0o077) !== 0)
      throw new ConfigError("Cannot write a key to this volume: others could read it. Name another place");
    await writeFile(file, content);
    await syncHandle(file);
  } finally {
    await file.close();
  }
}

/** Copies owner and mode. If the owner cannot be set, group and others get no rights. Some volumes ignore owner and mode. */
async function copyRights(file: FileHandle, { uid, gid }: Stats, mode: number): Promise<void> {
  let allowed = mode;
  await file.chown(uid, gid).catch(() => {
    allowed = mode & 0o700;
  });
  await file.chmod(allowed).catch(() => undefined);
}

async function keep(path: string): Promise<void> {
  const next = temporaryName(path);
  try {
    await link(path, next).catch(async () => writeDurably(next, await readFile(path)));
    await rename(next, `${path}.previous`);
  } finally {
    // A killed run may have made `.previous` a link to this file. Then the rename does nothing, and `next` is still there.
    await rm(next, { force: true });
  }
}
