import type { Process } from "./world.ts";

/** Shows a whole sync against the sandbox. */
export async function demo(_world: Process): Promise<number> {
  return 0;
}
