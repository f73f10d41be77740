// Random faults, kills, jumping clocks and moving people for some minutes; prints the seed of whatever does not hold.
import { importSource } from "./import-source.js";

const { main } = await importSource("test/lab/faultlab/soak-main.ts");
process.exitCode = await main(process.argv.slice(2), (text) => console.log(text));
