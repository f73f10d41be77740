import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const made: string[] = [];

/** Makes an empty folder. It is removed after the last test of the file that called this. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "test-"));
  made.push(folder);
  return folder;
}

afterAll(async () => {
  for (const folder of made.splice(0)) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});
