// Random faults, kills, jumping clocks and moving people for some minutes; prints the seed of whatever does not hold.
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const entry = fileURLToPath(new URL("../test/faultlab/soak-main.ts", import.meta.url));
const { module } = await runnerImport(entry, { logLevel: "error", configFile: false });
process.exitCode = await module.main(process.argv.slice(2), (text) => console.log(text));
