import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

/** Imports a TypeScript file of this repository, such as "src/base/time.ts". Node 20 cannot import such a file. */
export async function importSource(path) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return (await runnerImport(file, { logLevel: "error", configFile: false })).module;
}

/** Writes a generated file, or with `--check` only compares the file. @param command the command that writes the file */
export function writeOrCheck(path, text, command) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`${path} is not what its source says: run ${command}`);
    process.exitCode = 1;
  }
}
