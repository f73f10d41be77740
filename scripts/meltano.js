// Writes meltano/: the tap as a plugin for `meltano add --from-ref`, and as Meltano's Hub lists it, from spec.json.
// `node scripts/meltano.js --check` only compares.
import { readFileSync, writeFileSync } from "node:fs";
import { importSource } from "./import-source.js";

const { loadSpec } = await importSource("src/config/spec.ts");
const { loadProgram, SHIPPED } = await importSource("src/commands/about.ts");
const { meltanoHubPlugin, meltanoPlugin } = await importSource("scripts/meltano-plugin.ts");

const made = { meltano: meltanoPlugin, "meltano-hub": meltanoHubPlugin };
for (const [format, path] of Object.entries(SHIPPED)) {
  const file = new URL(`../${path}`, import.meta.url);
  const text = made[format](loadProgram(), loadSpec());
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) {
    console.error(`${path} is not what spec.json says: run npm run docs`);
    process.exitCode = 1;
  }
}
