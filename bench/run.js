// `npm run bench [-- --runs 7] [--only SECTION] [--long] [--with-python] [--write]`: measures side by side, prints what
// docs/benchmarks.md shows, and with --write puts it there. --long adds the ten million rows.
import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { ours, prototype, pythonCandidate, shellCandidates } from "./candidates.js";
import { takeTurns } from "./measure.js";
import { paths } from "./paths.js";
import { planning } from "./planning.js";
import { memoryTable, ratioTable, startUpTable, throughputTable, workersTable } from "./report.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";
import { startUp } from "./start.js";
import { writeReport } from "./write-report.js";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    runs: { type: "string", default: "5" },
    only: { type: "string", multiple: true },
    long: { type: "boolean", default: false },
    "with-python": { type: "boolean", default: false },
    write: { type: "boolean", default: false },
  },
});
const rows = Number(values.rows);
const runs = Number(values.runs);
const ONE_WINDOW = { max_window_rows: 100_000_000 };
const PRIVATE = {
  drop_fields: ["people.lastName"],
  hash_fields: ["people.email"],
  hash_salt: "a long random text",
};
const said = (text) => console.error(text);

async function withServer(module, args, use) {
  const server = await startServer(module, ...args);
  try {
    return await use(server.url);
  } finally {
    server.stop();
  }
}

/** Everybody over the same million rows in one window. */
async function throughput() {
  const files = await prepareRows(rows);
  const candidates = (url) => [
    { name: "ours", command: ours(url, ONE_WINDOW) },
    { name: "ours, private", command: ours(url, { ...ONE_WINDOW, ...PRIVATE }) },
    { name: "splice", command: prototype("splice", url) },
    { name: "plain", command: prototype("plain", url) },
    ...shellCandidates(url),
  ];
  const results = await withServer("./server.js", [rows], (url) => takeTurns(candidates(url), runs, said));
  if (values["with-python"]) {
    const python = (url) => takeTurns(pythonCandidate(url), Math.min(runs, 3), said);
    for (const [name, taken] of await withServer("./server.js", [rows], python)) results.set(name, taken);
  }
  const zipped = (url) => [
    { name: "ours, gzip", command: ours(url, ONE_WINDOW) },
    { name: "splice, gzip", command: prototype("splice", url) },
  ];
  for (const [name, taken] of await withServer("./server.js", [rows, '{"gzip":true}'], (url) =>
    takeTurns(zipped(url), runs, said),
  )) {
    results.set(name, taken);
  }
  const bytes = { plain: statSync(files.plain).size, gzipped: statSync(files.gzipped).size };
  return [ratioTable(results), throughputTable(results, rows, bytes)];
}

/** Peak memory by the number of rows: over many windows, and within one. */
async function memory() {
  const many = [];
  for (const people of [100_000, 1_000_000, ...(values.long ? [10_000_000] : [])]) {
    const candidates = (url) => [{ name: people, command: ours(url) }];
    const turns = people > 1_000_000 ? 0 : 3;
    many.push(
      ...(await withServer("./sandbox.js", [JSON.stringify({ people })], (url) =>
        once(candidates(url), turns),
      )),
    );
  }
  const one = [];
  for (const people of [100_000, 250_000, 1_000_000]) {
    await prepareRows(people);
    const candidates = (url) => [{ name: people, command: ours(url, ONE_WINDOW) }];
    one.push(...(await withServer("./server.js", [people], (url) => takeTurns(candidates(url), 3, said))));
  }
  return [memoryTable(many, one)];
}

/** As `takeTurns`, but what takes minutes runs just once. */
async function once(candidates, turns) {
  if (turns > 0) return await takeTurns(candidates, turns, said);
  const { measure } = await import("./measure.js");
  return await Promise.all(candidates.map(async ({ name, command }) => [name, [await measure(command)]]));
}

/** A service that takes 200 ms to answer and then serves 5 MB a second to each connection. */
async function workers() {
  const service = JSON.stringify({ latencyMs: 200, bytesPerSecond: 5_000_000 });
  await prepareRows(400_000);
  const candidates = (url) =>
    [1, 2, 4].map((num_workers) => ({
      name: num_workers,
      command: ours(url, { num_workers, max_window_rows: 16_000 }),
    }));
  return [
    workersTable(
      await withServer("./server.js", [400_000, service], (url) => takeTurns(candidates(url), 3, said)),
    ),
  ];
}

const sections = {
  throughput,
  paths: () => paths(rows, runs, said),
  memory,
  workers,
  startUp: async () => [startUpTable(await startUp(20))],
  planning: () => planning(said),
};
const report = {};
for (const [name, section] of Object.entries(sections)) {
  if (values.only !== undefined && !values.only.includes(name)) continue;
  said(`== ${name}`);
  report[name] = await section();
  for (const table of report[name]) console.log(`${table.text}\n`);
}
if (values.write) writeReport(report);
