import { loadSpec } from "../config/spec.ts";
import { specMessage } from "../protocol/airbyte-message.ts";
import { write } from "../protocol/writer.ts";
import type { Runtime } from "../run/runtime.ts";

/** Prints the settings in Airbyte's language. */
export async function spec({ stdout }: Runtime): Promise<number> {
  await write(stdout, specMessage(loadSpec()));
  return 0;
}
