// Preloaded into a candidate: writes what the process has used, at its exit, to descriptor 3.
import { writeSync } from "node:fs";

process.on("exit", () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  writeSync(3, JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, peakMiB: maxRSS / 1024 }));
});
