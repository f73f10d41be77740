// Plays the sandbox's faults, the same ones, against everyone in storm/contestants. See docs/storm.md.
import { importSource } from "./import-source.js";

const { main } = await importSource("storm/main.ts");
process.exitCode = await main(process.argv.slice(2), (text) => console.log(text));
