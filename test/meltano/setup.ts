import { installPostgres } from "./postgres.ts";
import { installPrograms } from "./programs.ts";

/** Everything that the suite runs is there before its first test, or nothing of it passes. */
export async function setup(): Promise<void> {
  await installPostgres();
  await installPrograms();
}
