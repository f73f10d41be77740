// How long short commands take, beside `node -e 0`, in turns.
import { CLI, configFile } from "./candidates.js";
import { resultsTable, takeTurns } from "./measure.js";
import { startServer } from "./server-process.js";

/** What a platform that asks for the spec, or a person who tries a config, waits for. */
export async function startUp(runs, other) {
  const server = await startServer("./sandbox.js", JSON.stringify({ people: 100 }));
  const commands = [
    { name: "`spec`", goal: "1.15 times", words: ["spec"] },
    { name: "`--version`", words: ["--version"] },
    { name: "`--help`", words: ["--help"] },
    { name: "`check`", goal: "0.3 s", words: ["check", "--config", configFile({ base_url: server.url })] },
  ];
  const candidates = commands.flatMap(({ name, goal, words }) => [
    { name, goal, command: [process.execPath, CLI, ...words] },
    ...(other ? [{ name: `${name}, the other build`, command: [process.execPath, other, ...words] }] : []),
  ]);
  const bare = { name: "`node -e 0`", command: [process.execPath, "-e", "0"] };
  return resultsTable(await takeTurns([bare, ...candidates], runs, false).finally(() => server.stop()));
}
