// A sandbox in a process of its own that tells what it was asked: each message is answered with its requests so far.
import { startSandbox } from "../dist/sandbox/server.js";

const { passDays = 0, ...options } = JSON.parse(process.argv[2] ?? "{}");
const sandbox = await startSandbox({ requestsPerMinute: 0, undated: 0, ...options });
sandbox.advance(passDays * 86_400_000);
process.on("message", () => {
  process.send(sandbox.requests.map(({ path, query }) => ({ path, query })));
});
process.send(sandbox.url);
process.on("disconnect", () => process.exit());
