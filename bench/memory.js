// Reads many rows into a slow reader and prints the most memory that the built program ever held: `node scripts/memory.js [--rows N]`.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startSandbox } from "../dist/sandbox/server.js";

const MOST_MB = 300;
const PAUSE_EVERY_BYTES = 64 * 1024 * 1024;
const PAUSE_MS = 200;

const at = process.argv.indexOf("--rows");
const rows = at < 0 ? 10_000_000 : Number(process.argv[at + 1]);
const directory = mkdtempSync(join(tmpdir(), "memory-"));
const sandbox = await startSandbox({ people: rows, requestsPerMinute: 0 });
try {
  const config = join(directory, "config.json");
  writeFileSync(
    config,
    JSON.stringify({ base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6000 }),
  );
  const peak = await peakOf(["read", "--config", config, "--stream", "people"]);
  process.exitCode = peak < MOST_MB ? 0 : 1;
} finally {
  await sandbox.close();
  rmSync(directory, { recursive: true });
}

async function peakOf(args) {
  const program = fileURLToPath(new URL("../dist/source-contact-intelligence.js", import.meta.url));
  const began = performance.now();
  const child = spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, megabytesOf(child.pid) ?? 0);
  }, 100);
  let records = 0;
  let sincePause = 0;
  for await (const chunk of child.stdout) {
    for (let next = chunk.indexOf(10); next >= 0; next = chunk.indexOf(10, next + 1)) records += 1;
    sincePause += chunk.length;
    if (sincePause < PAUSE_EVERY_BYTES) continue;
    sincePause = 0;
    await delay(PAUSE_MS);
  }
  const code = await ended;
  clearInterval(watch);
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(
    `${records} lines in ${seconds} s, exit code ${code}, at most ${Math.round(peak)} MB (of ${MOST_MB})`,
  );
  return code === 0 ? peak : Number.POSITIVE_INFINITY;
}

/** The highest resident size so far, as Linux counts it. */
function megabytesOf(pid) {
  try {
    const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    return found === null ? undefined : Number(found[1]) / 1024;
  } catch {
    return undefined;
  }
}
