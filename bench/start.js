// `node bench/start.js [--runs 20] [--against DIST]`: how long short commands take, beside `node -e 0`, in turns.
// --against names another build's dist folder, which takes its turns beside this one.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CLI, configFile } from "./candidates.js";
import { takeTurns } from "./measure.js";
import { startUpTable } from "./report.js";
import { startServer } from "./server-process.js";

/** The runs of each command by its name: what a platform that asks for the spec, or a person who tries a config, waits for. */
export async function startUp(runs, against) {
  const server = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const words = [
    ["spec"],
    ["--version"],
    ["--help"],
    ["check", "--config", configFile({ base_url: server.url })],
  ];
  const builds = [["", CLI]];
  if (against !== undefined)
    builds.push([", the other build", join(against, "source-contact-intelligence.js")]);
  const candidates = words.flatMap((args) =>
    builds.map(([name, program]) => ({
      name: `${args[0]}${name}`,
      command: [process.execPath, program, ...args],
    })),
  );
  const bare = { name: "node -e 0", command: [process.execPath, "-e", "0"] };
  try {
    return await takeTurns([bare, ...candidates], runs, () => {}, false);
  } finally {
    server.stop();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { runs: { type: "string", default: "20" }, against: { type: "string" } };
  const { values } = parseArgs({ options });
  console.log(startUpTable(await startUp(Number(values.runs), values.against)));
}
