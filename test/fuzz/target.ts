import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dice } from "./dice.ts";

/** Plays one case; returns how many things it threw at the program. Throws what it finds. */
export type Target = {
  play(dice: Dice): Promise<number>;
  close(): Promise<void>;
};

/** An empty folder, and how to remove it. */
export async function openFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "fuzz-"));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}
