import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { discard, setup as prepare } from "../../support/setup.ts";
import { type Hub, startHub } from "./hub.ts";
import { installPostgres } from "./postgres-install.ts";
import { installPrograms } from "./programs.ts";

let hub: Hub | undefined;

/** Everything that the suite runs is there before its first test, or nothing of it passes. */
export async function setup(): Promise<void> {
  prepare();
  await installPostgres();
  await installPrograms();
  hub = await startHub();
  process.env["MELTANO_HUB_API_ROOT"] = hub.url;
  // Where Meltano keeps what a Hub said.
  process.env["XDG_CACHE_HOME"] = mkdtempSync(join(tmpdir(), "cache-"));
}

/** Meltano and its targets leave temporary files of their own. */
export async function teardown(): Promise<void> {
  await hub?.close();
  discard();
}
