// How long short commands take, next to `node -e 0`, in turns.
import { configFile, ofBuilds, programOf } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { startServer } from "./server-process.js";

/** The wait of a platform that asks for the spec, or of a person who tries a config. */
export async function startUp(runs, other) {
  const server = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const config = configFile({ base_url: server.url });
  const candidates = ofBuilds(other, (dist) => {
    const command = (...words) => [process.execPath, programOf(dist), ...words];
    return [
      { name: "`spec`", goal: "1.15 times", command: command("spec") },
      { name: "`--version`", command: command("--version") },
      { name: "`--help`", command: command("--help") },
      { name: "`check`", goal: "0.3 s", command: command("check", "--config", config) },
    ];
  });
  const bare = { name: "`node -e 0`", command: [process.execPath, "-e", "0"] };
  return resultsTable(await takeTurns([bare, ...candidates], runs, false).finally(() => server.stop()));
}
