import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { ReadOptions } from "../../src/commands/read.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { ROOT } from "./run.ts";

/** The last commit of version 0.1.0. */
const COMMIT = "76ac0eea75563bf58c834c29898e602bfe742562";
const FOLDER = join(ROOT, ".cache", "released", COMMIT);

type Released = { read(options: ReadOptions, runtime: Runtime): Promise<number> };

/** Version 0.1.0 as it was released, built from this repository's history. It knows state files, and neither receipts nor folders. */
export async function released(): Promise<Released> {
  if (!existsSync(FOLDER)) build();
  return (await import(join(FOLDER, "dist/commands/read.js"))) as Released;
}

/** Whether this is a clone with its history, which a downloaded archive or a shallow clone lacks. */
export const hasHistory = (): boolean =>
  spawnSync("git", ["cat-file", "-e", COMMIT], { cwd: ROOT, stdio: "ignore" }).status === 0;

function build(): void {
  const folder = `${FOLDER}.${process.pid}`;
  const parts = ["src", "schemas", "spec.json", "package.json", "tsconfig.json"];
  mkdirSync(folder, { recursive: true });
  try {
    const input = execFileSync("git", ["archive", COMMIT, ...parts], { cwd: ROOT, maxBuffer: 1 << 28 });
    execFileSync("tar", ["x", "-C", folder], { input });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder]);
    if (!existsSync(FOLDER)) renameSync(folder, FOLDER);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
