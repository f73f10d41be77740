// Plays every fault of the bundled sandbox against the connector and prints what came of it. See test/lab/faultlab/fault-lab.md.
import { importSource } from "./import-source.js";

const { main } = await importSource("test/lab/faultlab/main.ts");
process.exitCode = await main(process.argv.slice(2), (text) => console.log(text));
