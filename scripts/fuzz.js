// Throws hostile configs, catalogs, states, answers and lines at the connector. A failure names its seed, which plays it
// again: `npm run fuzz -- --target lines --seed 123`. See docs/security.md.
import { importSource } from "./import-source.js";

const { main } = await importSource("test/fuzz/main.ts");
process.exitCode = await main(process.argv.slice(2), (text) => console.log(text));
