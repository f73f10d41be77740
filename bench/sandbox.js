// A sandbox in a process of its own: each message is answered once people have moved, faults are set and days have passed.
import { startSandbox } from "../dist/sandbox/server.js";

const { passDays, ...options } = JSON.parse(process.argv[2] ?? "{}");
const sandbox = await startSandbox({ requestsPerMinute: 0, undated: 0, ...options });
const pass = (days = 0) => sandbox.advance(days * 86_400_000);
pass(passDays);
process.on("message", ({ passDays, recheck, faults }) => {
  if (recheck !== undefined) sandbox.recheck(recheck);
  if (faults !== undefined) sandbox.fault(...faults);
  pass(passDays);
  process.send("done");
});
process.send(sandbox.url);
process.on("disconnect", () => process.exit());
