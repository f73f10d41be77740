// `node bench/reconcile.js [--rows 1000000] [--lost 100] [--days 3650]`: what it takes to find rows that a table has lost, each
// on a day of its own.
import { createReadStream, createWriteStream, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { parseArgs } from "node:util";
import { CLI, configFile } from "./candidates.js";
import { measure } from "./measure.js";
import { table } from "./report.js";
import { startServer } from "./server-process.js";

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    lost: { type: "string", default: "100" },
    days: { type: "string", default: "3650" },
  },
});
const [people, lost, days] = [values.rows, values.lost, values.days].map(Number);
const server = await startServer("./sandbox.js", JSON.stringify({ people, days }));
const folder = mkdtempSync(join(tmpdir(), "reconcile-"));
const program = (...words) => [process.execPath, CLI, ...words];
try {
  const config = configFile({ base_url: server.url });
  const keys = configFile({ base_url: server.url, only_fields: ["people.id"] });
  const rows = join(folder, "rows");
  await measure(program("read", "--config", keys, "--stream", "people", "--output", rows));
  await writeTable(join(rows, "people"), join(folder, "keys.csv"));
  const where = ["--config", config, "--table", join(folder, "keys.csv"), "--output", join(folder, "found")];
  const asked = program("reconcile", ...where, "--state", join(rows, "state.json"));
  const found = [];
  for (const [name, more] of [
    ["by counts", []],
    ["`--full`", ["--full"]],
  ]) {
    const { seconds, peakMiB } = await measure([...asked, ...more], true, [0, 1, 2]);
    const report = JSON.parse(readFileSync(join(folder, "found", "report.json"), "utf8"));
    const share = `${((100 * report.rows_read) / people).toFixed(1)} %`;
    const days = report.not_looked_at.length;
    found.push([name, report.lost, days, report.requests, share, seconds.toFixed(0), peakMiB.toFixed(0)]);
  }
  const head = [
    "",
    "lost rows named",
    "ranges left out",
    "requests",
    "rows read again",
    "seconds",
    "peak MiB",
  ];
  console.log(table(head, found, 1));
} finally {
  rmSync(folder, { recursive: true });
  server.stop();
}

/** Key and date of all rows but one of every so many days. */
async function writeTable(from, to) {
  const output = createWriteStream(to);
  output.write("id,discoveredAt\n");
  const every = Math.floor(days / lost);
  const dropped = new Set();
  for (const name of readdirSync(from)) {
    for await (const line of createInterface({ input: createReadStream(join(from, name)) })) {
      const { id, discoveredAt } = JSON.parse(line);
      const day = Math.floor(Date.parse(discoveredAt) / 86_400_000);
      if (day % every === 0 && dropped.size < lost && !dropped.has(day)) dropped.add(day);
      else if (!output.write(`${id},${discoveredAt}\n`)) await new Promise((go) => output.once("drain", go));
    }
  }
  await finished(output.end());
}
