import { discard, setup as prepare } from "../support/setup.ts";
import { installPostgres } from "./postgres-install.ts";
import { installPrograms } from "./programs.ts";

/** Everything that the suite runs is there before its first test, or nothing of it passes. */
export async function setup(): Promise<void> {
  prepare();
  await installPostgres();
  await installPrograms();
}

/** Meltano and its targets leave temporary files of their own. */
export function teardown(): void {
  discard();
}
