// `node bench/start.js [--runs 20] [--against DIST]`: how long short commands take, beside `node -e 0`, in turns.
// --against names another build's dist folder, which takes its turns beside this one.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CLI, configFile } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { startServer } from "./server-process.js";

/** What a platform that asks for the spec, or a person who tries a config, waits for. */
export async function startUp(runs, against) {
  const server = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const commands = [
    { name: "`spec`", goal: "1.15 times", words: ["spec"] },
    { name: "`--version`", words: ["--version"] },
    { name: "`--help`", words: ["--help"] },
    { name: "`check`", goal: "0.3 s", words: ["check", "--config", configFile({ base_url: server.url })] },
  ];
  const builds = [{ build: "", program: CLI }];
  if (against !== undefined)
    builds.push({ build: ", the other build", program: join(against, "source-contact-intelligence.js") });
  const candidates = commands.flatMap(({ name, goal, words }) =>
    builds.map(({ build, program }) => ({
      ...{ name: name + build, goal },
      command: [process.execPath, program, ...words],
    })),
  );
  const bare = { name: "`node -e 0`", command: [process.execPath, "-e", "0"] };
  return resultsTable(await takeTurns([bare, ...candidates], runs, false).finally(() => server.stop()));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { runs: { type: "string", default: "20" }, against: { type: "string" } };
  const { values } = parseArgs({ options });
  console.log(await startUp(Number(values.runs), values.against));
}
