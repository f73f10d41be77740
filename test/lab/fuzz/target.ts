import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dice } from "./dice.ts";
import { openService, type Service } from "./service.ts";

/** Plays one case; returns how many things it threw at the program. Throws what it finds. */
type Play = (dice: Dice) => Promise<number>;

export type Target = {
  readonly play: Play;
  close(): Promise<void>;
};

/** A target whose cases ask one service, whose answers each case sets, and write into one folder, which is empty at first. */
export async function openTarget(
  prepare: (service: Service, folder: string) => Play | Promise<Play>,
): Promise<Target> {
  const service = await openService();
  const folder = await mkdtemp(join(tmpdir(), "fuzz-"));
  return {
    play: await prepare(service, folder),
    async close() {
      await service.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
