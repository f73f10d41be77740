import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

/** Imports a TypeScript file of this repository, such as "src/base/time.ts". Node 20 cannot do that by itself. */
export async function importSource(path) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  return (await runnerImport(file, { logLevel: "error", configFile: false })).module;
}
