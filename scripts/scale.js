// Simulates first loads of large accounts with the connector's own planner. See docs/scale.md.
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const entry = fileURLToPath(new URL("../test/lab/scale/main.ts", import.meta.url));
const { module } = await runnerImport(entry, { logLevel: "error", configFile: false });
process.exitCode = await module.main(process.argv.slice(2), (text) => console.log(text));
