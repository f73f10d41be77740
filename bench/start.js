// `node bench/start.js [--runs 20] [--against DIST]`: how long short commands take, beside `node -e 0`, in turns.
// --against names another build's dist folder, which takes its turns beside this one.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CLI, KEY } from "./candidates.js";
import { median, ratio, takeTurns } from "./measure.js";
import { startServer } from "./server-process.js";

const { values } = parseArgs({
  options: { runs: { type: "string", default: "20" }, against: { type: "string" } },
});
const server = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
const folder = mkdtempSync(join(tmpdir(), "start-"));
try {
  const config = join(folder, "config.json");
  writeFileSync(config, JSON.stringify({ base_url: server.url, api_key: KEY, requests_per_minute: 6000 }));
  const words = [["spec"], ["--version"], ["--help"], ["check", "--config", config]];
  const builds = [["", CLI]];
  if (values.against !== undefined)
    builds.push([" (other)", join(values.against, "source-contact-intelligence.js")]);
  const candidates = words.flatMap((args) =>
    builds.map(([name, program]) => ({
      name: `${args[0]}${name}`,
      command: [process.execPath, program, ...args],
    })),
  );
  const bare = { name: "node -e 0", command: [process.execPath, "-e", "0"] };
  const results = await takeTurns([bare, ...candidates], Number(values.runs), () => {}, false);
  const base = results.get(bare.name);
  for (const [name, runs] of results) {
    const ms = median(runs.map(({ seconds }) => seconds)) * 1000;
    const against = ratio(runs, base, ({ seconds }) => seconds).median;
    console.log(`${name.padEnd(16)} ${ms.toFixed(0).padStart(5)} ms  ${against.toFixed(2)} × node -e 0`);
  }
} finally {
  server.stop();
  rmSync(folder, { recursive: true });
}
