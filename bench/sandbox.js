// The sandbox in a process of its own: `node bench/sandbox.js '{"people":1000}'`. Rows are made on the fly.
import { startSandbox } from "../dist/sandbox/server.js";

const sandbox = await startSandbox({
  requestsPerMinute: 0,
  undated: 0,
  ...JSON.parse(process.argv[2] ?? "{}"),
});
if (process.send) process.send(sandbox.url);
else console.log(sandbox.url);
process.on("disconnect", () => process.exit());
