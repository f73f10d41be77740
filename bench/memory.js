// Reads many rows into a slow reader and prints the most memory that the built program held: `node bench/memory.js [--rows N]`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { ours } from "./candidates.js";
import { lineFeedsIn } from "./measure.js";
import { startServer } from "./server-process.js";

const MOST_MIB = 300;
const [PAUSE_EVERY_BYTES, PAUSE_MS] = [64 * 1024 * 1024, 200];
const at = process.argv.indexOf("--rows");
const people = at < 0 ? 10_000_000 : Number(process.argv[at + 1]);
const server = await startServer("./sandbox.js", JSON.stringify({ people }));
const [program, ...args] = ours(server.url);
const usage = new URL("./usage.js", import.meta.url).href;
const stdio = ["ignore", "pipe", "inherit", "pipe"];
const child = spawn(program, ["--import", usage, ...args], { stdio });
const ended = once(child, "close");
let told = "";
child.stdio[3].on("data", (chunk) => {
  told += chunk;
});
let [lines, sincePause] = [0, 0];
for await (const chunk of child.stdout) {
  lines += lineFeedsIn(chunk);
  sincePause += chunk.length;
  if (sincePause < PAUSE_EVERY_BYTES) continue;
  sincePause = 0;
  await delay(PAUSE_MS);
}
const [code] = await ended;
server.stop();
const { peakMiB } = JSON.parse(told);
console.log(`${lines} lines, exit code ${code}, at most ${Math.round(peakMiB)} MiB (of ${MOST_MIB})`);
process.exitCode = code === 0 && peakMiB < MOST_MIB ? 0 : 1;
