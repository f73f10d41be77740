// Reads many rows into a slow reader and prints the most memory of the built program: `node bench/memory.js [ROWS]`.
import { setTimeout as delay } from "node:timers/promises";
import { ours } from "./candidates.js";
import { lineFeedsIn, measure } from "./measure.js";
import { startServer } from "./server-process.js";

const MOST_MIB = 300;
const [PAUSE_EVERY_BYTES, PAUSE_MS] = [64 * 1024 * 1024, 200];
const people = Number(process.argv[2] ?? 10_000_000);
const server = await startServer("./sandbox.js", JSON.stringify({ people }));
let [lines, sincePause] = [0, 0];
const { peakMiB } = await measure(ours(server.url), true, async (chunk) => {
  lines += lineFeedsIn(chunk);
  sincePause += chunk.length;
  if (sincePause < PAUSE_EVERY_BYTES) return;
  sincePause = 0;
  await delay(PAUSE_MS);
}).finally(() => server.stop());
console.log(`${lines} lines, at most ${Math.round(peakMiB)} MiB (of ${MOST_MIB})`);
process.exitCode = peakMiB < MOST_MIB ? 0 : 1;
