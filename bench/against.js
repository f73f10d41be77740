// `node bench/against.js --against DIST [--rows 400000] [--runs 7]`: processor time and peak memory of reading
// so many people, in one window, beside another build's dist folder, in turns. Processor time can be compared on a busy machine too.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ONE_WINDOW, ours } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    rows: { type: "string", default: "400000" },
    runs: { type: "string", default: "7" },
  },
});
if (values.against === undefined) throw new Error("Name the other build: --against DIST");
await prepareRows(Number(values.rows));
const server = await startServer("./server.js", values.rows);
const candidates = [
  {
    name: "other",
    command: ours(server.url, ONE_WINDOW, join(values.against, "source-contact-intelligence.js")),
  },
  { name: "this", command: ours(server.url, ONE_WINDOW) },
];
const results = await takeTurns(candidates, Number(values.runs)).finally(() => server.stop());
console.log(resultsTable(results, Number(values.rows)));
