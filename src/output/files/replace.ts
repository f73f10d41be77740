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
import { cannotMake, codeOf, losesBytes, reasonOf } from "./reason.ts";

/** All at once, or in pieces. */
type FileContent = string | Buffer | AsyncIterable<string | Buffer>;

type ReplaceOptions = {
  /** Keeps the file that is replaced as `<path>.previous`. */
  readonly keepPrevious?: boolean;
  /** Gives the file the mode 0600. A volume on which others could read it is refused. */
  readonly isSecret?: boolean;
  /** Called when all is written and before it takes effect; what it throws leaves the old file in place. */
  readonly beforeRename?: (() => Promise<void>) | undefined;
};

/**
 * Replaces a file: a crash leaves the old content or the new. Returns when the new file is on the disk. A new file has mode
 * 0600; an old one keeps mode and owner. Throws ConfigError for a link, and the system's errors as they are.
 */
export async function replaceFile(
  path: string,
  content: FileContent,
  { keepPrevious = false, isSecret = false, beforeRename }: ReplaceOptions = {},
): Promise<void> {
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

/** Replaces a file with its own bytes, or one made for this alone: what a volume refuses is known before hours of work. */
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

/** The file at a path that may be replaced; undefined: there is none. Throws ConfigError for anything but a regular file. */
export async function statReplaceable(path: string): Promise<Stats | undefined> {
  const stats = await statAt(path).catch((error: unknown) => {
    throw new ConfigError(`Cannot replace the file "${path}": ${reasonOf(error)}`, { cause: error });
  });
  if (stats === undefined || stats.isFile()) return stats;
  throw new ConfigError(
    `Cannot replace the file "${path}": it is ${stats.isDirectory() ? "a folder" : "a link, a pipe or a device"}. Name a regular file`,
  );
}

/** Removes temporary files of killed runs. Only for the holder of the file's lock. */
export async function removeLeftovers(path: string): Promise<void> {
  const head = `${basename(path)}.`;
  const names = await readdir(dirname(path)).catch(() => []);
  const left = names.filter((name) => name.startsWith(head) && TEMPORARY.test(name.slice(head.length)));
  for (const name of left) await rm(join(dirname(path), name), { force: true });
}

const statAt = (path: string, look: (path: string) => Promise<Stats> = lstat): Promise<Stats | undefined> =>
  look(path).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    return undefined;
  });

/** Makes a folder for its owner alone. Throws ConfigError. @param withParents makes those above it as well */
export async function makeFolder(path: string, withParents = false): Promise<void> {
  await mkdir(path, { mode: 0o700, recursive: withParents }).catch(async (cause: unknown) => {
    const isFolder = async (at: string) => (await statAt(at, stat))?.isDirectory() === true;
    const code = codeOf(cause);
    if (code === "EEXIST" && (await isFolder(path))) return;
    const parent = dirname(path);
    let why = code === "EEXIST" ? "there is a file of this name" : reasonOf(cause);
    // Some folders take no new one, such as /proc.
    if (code === "ENOENT")
      why = (await isFolder(parent)) ? "not possible here" : `there is no folder "${parent}"`;
    throw cannotMake(`make the folder "${path}"`, cause, why);
  });
  // A run that was killed may have made it without this.
  await syncFolder(dirname(path));
}

/**
 * Renames a finished file or folder, never over an existing one. May be done twice. Only for the holder of the lock.
 * Throws ConfigError if the name is taken, and the system's errors as they are.
 */
export async function publish(from: string, to: string): Promise<void> {
  if ((await statAt(from)) === undefined) return;
  if ((await statAt(to)) !== undefined) {
    throw new ConfigError(
      `Cannot publish "${from}" as "${to}": that name is taken. Move "${to}" away and run again`,
    );
  }
  // No link and removal: a reader that takes the file between the two would get it a second time.
  await rename(from, to);
}

/** Writes what the system keeps of a file or folder to its disk. Some volumes cannot do that, and their refusal is ignored. */
export const syncHandle = (handle: FileHandle): Promise<void> => handle.sync().catch(unlessLost);

/** A rename is on the disk only when its folder is. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(unlessLost);
  if (folder === undefined) return;
  await syncHandle(folder).finally(() => folder.close());
}

function unlessLost(error: unknown): undefined {
  if (losesBytes(error)) throw error;
}

/** The ends of names of unfinished tries, and of locks that were taken over. */
const TEMPORARY = /^(?:lock\.)?[0-9a-f]{16}\.tmp(?:\.[0-9a-f]{16}\.tmp)?$/;

const temporaryName = (path: string): string => `${path}.${randomBytes(8).toString("hex")}.tmp`;

async function writeDurably(
  path: string,
  content: FileContent,
  like?: Stats,
  isSecret = false,
): Promise<void> {
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

/** A process that cannot give the owner also gives no rights to a group that may be another. Some volumes keep neither. */
async function copyRights(file: FileHandle, { uid, gid }: Stats, mode: number): Promise<void> {
  const owned = await file.chown(uid, gid).then(
    () => true,
    () => false,
  );
  await file.chmod(owned ? mode : mode & 0o700).catch(() => undefined);
}

async function keep(path: string): Promise<void> {
  const next = temporaryName(path);
  try {
    await link(path, next).catch(async () => writeDurably(next, await readFile(path)));
    await rename(next, `${path}.previous`);
  } finally {
    // A rename onto another link to the same file does nothing, and a killed run may have left that link.
    await rm(next, { force: true });
  }
}
