import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./run.ts";

let folder = "";

/**
 * Builds dist/ if it is older than its sources, and gives the run its own folder for temporary files. A project whose own
 * setup calls this runs before the one that every run has, which then has nothing to do.
 */
export function setup(): void {
  if (process.env["TEST_PREPARED"] !== undefined) return;
  process.env["TEST_PREPARED"] = "1";
  execFileSync(process.execPath, [join(ROOT, "scripts/prepare.js")], { stdio: "inherit" });
  folder = mkdtempSync(join(tmpdir(), "source-contact-intelligence-tests-"));
  // Containers and PostgreSQL run as other users.
  chmodSync(folder, 0o755);
  process.env["TMPDIR"] = folder;
}

/** Removes the folder, whatever other programs have left in it. */
export function discard(): readonly string[] {
  if (folder === "") return [];
  const left = readdirSync(folder);
  rmSync(folder, { recursive: true, force: true });
  folder = "";
  return left;
}

/** Removes the folder. The run fails if a test left anything in it: each has to use tempDir(). */
export function teardown(): void {
  const left = discard();
  if (left.length === 0) return;
  // vitest prints an error of a teardown, and ends with 0 anyway.
  process.exitCode = 1;
  throw new Error(`Tests left temporary files behind: ${left.join(", ")}`);
}
