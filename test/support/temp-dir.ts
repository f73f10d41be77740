import { readdirSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./run.ts";

const made: string[] = [];
let common: Promise<string> | undefined;

/** Makes an empty folder. It is removed after the last test of the file that called this. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "test-"));
  made.push(folder);
  return folder;
}

/** The folder that all tests of a file share. */
export function commonTempDir(): Promise<string> {
  common ??= tempDir();
  return common;
}

export async function removeTempDirs(): Promise<void> {
  common = undefined;
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** What a folder holds: the text of each file, null for a folder. */
export async function textsIn(path: string): Promise<Record<string, string | null>> {
  const entries = (await readdir(path)).sort().map(async (name) => {
    return [name, await readFile(join(path, name), "utf8").catch(() => null)] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** The paths of all files in folders of the repository, from its root. */
export function filesBelow(...folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => join(parentPath, name).slice(ROOT.length)),
  );
}
