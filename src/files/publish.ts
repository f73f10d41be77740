import { lstat, rename } from "node:fs/promises";
import { ConfigError } from "../errors.ts";
import { codeOf } from "./reason.ts";

/**
 * Gives a finished file or folder its name, by one rename, and never over an existing one. May be done twice: what is
 * there under neither name was published before, and a reader took it. Only for who holds the lock of the folder.
 * Throws ConfigError where the name is taken, and the system's errors as they are.
 */
export async function publish(from: string, to: string): Promise<void> {
  if (!(await exists(from))) return;
  if (await exists(to)) {
    throw new ConfigError(
      `Cannot publish "${from}" as "${to}": that name is taken. Move "${to}" away and run again`,
    );
  }
  // No link and removal: a reader that takes the file between the two would get it a second time.
  await rename(from, to);
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
