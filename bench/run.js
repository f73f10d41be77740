// `npm run bench [-- --runs 5] [--rows 1000000] [--only SECTION]`: measures side by side and prints tables. Sections:
// throughput, paths, startUp, planning. docs/benchmarks.md has the figures of a quiet machine.
import { parseArgs } from "node:util";
import { ours, prototype, shellCandidates } from "./candidates.js";
import { takeTurns } from "./measure.js";
import { paths } from "./paths.js";
import { planning } from "./planning.js";
import { ratioTable, startUpTable, throughputTable } from "./report.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";
import { startUp } from "./start.js";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    runs: { type: "string", default: "5" },
    only: { type: "string", multiple: true },
  },
});
const [rows, runs] = [Number(values.rows), Number(values.runs)];
const ONE_WINDOW = { max_window_rows: 100_000_000 };
const PRIVATE = {
  drop_fields: ["people.lastName"],
  hash_fields: ["people.email"],
  hash_salt: "a long random text",
};
const said = (text) => console.error(text);

/** Everybody over the same rows in one window, as they are and gzipped. */
async function throughput() {
  const { bytes } = await prepareRows(rows);
  const taken = async (options, candidatesOf) => {
    const server = await startServer("./server.js", rows, JSON.stringify(options));
    return await takeTurns(candidatesOf(server.url), runs, said).finally(() => server.stop());
  };
  const plain = await taken({}, (url) => [
    { name: "ours", command: ours(url, ONE_WINDOW) },
    { name: "ours, private", command: ours(url, { ...ONE_WINDOW, ...PRIVATE }) },
    { name: "splice", command: prototype("splice", url) },
    { name: "plain", command: prototype("plain", url) },
    ...shellCandidates(url),
  ]);
  const zipped = await taken({ gzip: true }, (url) => [
    { name: "ours, gzip", command: ours(url, ONE_WINDOW) },
    { name: "splice, gzip", command: prototype("splice", url) },
  ]);
  const results = new Map([...plain, ...zipped]);
  return [ratioTable(results), throughputTable(results, rows, bytes)];
}

const sections = {
  throughput,
  paths: () => paths(rows, runs, said),
  startUp: async () => [startUpTable(await startUp(20))],
  planning: () => planning(said),
};
for (const [name, section] of Object.entries(sections)) {
  if (values.only !== undefined && !values.only.includes(name)) continue;
  said(`== ${name}`);
  for (const table of await section()) console.log(`${table}\n`);
}
