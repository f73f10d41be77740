// Plays every fault of the bundled sandbox against the connector and prints what came of it. See docs/reliability.md.
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const entry = fileURLToPath(new URL("../test/faultlab/main.ts", import.meta.url));
const { module } = await runnerImport(entry, { logLevel: "error", configFile: false });
process.exitCode = await module.main(process.argv.slice(2), (text) => console.log(text));
