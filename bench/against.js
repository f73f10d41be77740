// `node bench/against.js --against DIST [--rows 400000] [--runs 7] [--config JSON]`: processor time and peak memory of reading
// so many people, beside another build's dist folder, in turns. Processor time can be compared on a busy machine too.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CLI, configFile } from "./candidates.js";
import { median, ratio, takeTurns } from "./measure.js";
import { prepareRows } from "./rows.js";
import { startServer } from "./server-process.js";

const { values } = parseArgs({
  options: {
    against: { type: "string" },
    rows: { type: "string", default: "400000" },
    runs: { type: "string", default: "7" },
    config: { type: "string", default: "{}" },
  },
});
if (values.against === undefined) throw new Error("Name the other build: --against DIST");
await prepareRows(Number(values.rows));
const server = await startServer("./server.js", values.rows);
try {
  const config = configFile({ base_url: server.url, ...JSON.parse(values.config) });
  const read = (program) => [process.execPath, program, "read", "--config", config, "--stream", "people"];
  const results = await takeTurns(
    [
      { name: "this", command: read(CLI) },
      { name: "other", command: read(join(values.against, "source-contact-intelligence.js")) },
    ],
    Number(values.runs),
    () => {},
  );
  const [mine, other] = [results.get("this"), results.get("other")];
  for (const [what, unit, of] of [
    ["processor", "s", ({ cpu }) => cpu],
    ["peak memory", "MiB", ({ peakMiB }) => peakMiB],
  ]) {
    const { median: middle, least, most } = ratio(mine, other, of);
    const [a, b] = [mine, other].map((runs) => median(runs.map(of)).toFixed(2));
    console.log(
      `${what}: ${a} ${unit} / ${b} ${unit}, ratio ${middle.toFixed(3)} (${least.toFixed(3)}–${most.toFixed(3)})`,
    );
  }
} finally {
  server.stop();
}
