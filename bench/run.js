// `npm run bench [-- --runs 5] [--rows 1000000] [--only SECTION] [--against DIST]`: measures side by side and prints tables.
// Sections: throughput, paths, startUp, planning. --against names another build's dist folder, which takes its turns in
// paths and startUp. docs/dev/benchmarks.md has the figures of a quiet machine.
import { parseArgs } from "node:util";
import { HASHED, ONE_WINDOW, ours, prototype, shellCandidates } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { paths } from "./paths.js";
import { planning } from "./planning.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";
import { startUp } from "./start.js";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    runs: { type: "string", default: "5" },
    only: { type: "string", multiple: true },
    against: { type: "string" },
  },
});
const [rows, runs] = [Number(values.rows), Number(values.runs)];

/** All programs over the same rows in one window, as they are and gzipped. */
async function throughput() {
  const { bytes } = await prepareRows(rows);
  const taken = async (isZipped, candidatesOf) => {
    const server = await startServer("./server.js", rows, JSON.stringify({ gzip: isZipped }));
    const results = await takeTurns(candidatesOf(server.url), runs).finally(() => server.stop());
    const megabytes = Math.round((isZipped ? bytes.gzipped : bytes.plain) / 1e6);
    const words = `${rows.toLocaleString("en")} rows, ${megabytes} MB${isZipped ? " of gzip" : ""} on the wire:`;
    return `${words}\n\n${resultsTable(results, rows)}`;
  };
  const mine = (name, url, config) => ({ name, command: ours(url, { ...ONE_WINDOW, ...config }) });
  const plain = await taken(false, (url) => [
    mine("this connector", url, {}),
    mine("this connector, one field dropped and one hashed", url, HASHED),
    prototype("splice.js", url, "the least: parse, check, splice (`bench/splice.js`)"),
    prototype("plain.js", url, "the usual loop: parse, check, stringify (`bench/plain.js`)"),
    ...shellCandidates(url),
  ]);
  const zipped = await taken(true, (url) => [
    mine("this connector", url, {}),
    prototype("splice.js", url, "the least"),
  ]);
  return [plain, zipped];
}

const sections = {
  throughput,
  paths: () => paths(rows, runs, values.against),
  startUp: async () => [await startUp(20, values.against)],
  planning: async () => [await planning()],
};
for (const [name, section] of Object.entries(sections)) {
  if (values.only !== undefined && !values.only.includes(name)) continue;
  console.error(`== ${name}`);
  for (const table of await section()) console.log(`${table}\n`);
}
