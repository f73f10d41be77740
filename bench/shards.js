// `node bench/shards.js [--people 1000000] [--shards 40] [--at-once 8]`: a first load in shards that share one folder and one key
// of 60 requests a minute. Says how many rows arrived, and what the service saw.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { startSandbox } from "../dist/sandbox/server.js";
import { CLI } from "./candidates.js";

const { values } = parseArgs({
  options: {
    people: { type: "string", default: "1000000" },
    shards: { type: "string", default: "40" },
    "at-once": { type: "string", default: "8" },
  },
});
const [people, shards, atOnce] = [values.people, values.shards, values["at-once"]].map(Number);
const sandbox = await startSandbox({ people, days: 4000, requestsPerMinute: 60 });
const folder = mkdtempSync(join(tmpdir(), "shards-"));
const began = performance.now();

/** Runs the program. Returns what it prints; throws if it does not exit with 0. */
async function run(...words) {
  const env = {
    ...process.env,
    CONTACT_INTELLIGENCE_BASE_URL: sandbox.url,
    CONTACT_INTELLIGENCE_API_KEY: sandbox.key,
  };
  const child = spawn(process.execPath, [CLI, ...words], { env, stdio: ["ignore", "pipe", "pipe"] });
  const [out, errors] = [[], []];
  child.stdout.on("data", (chunk) => out.push(chunk));
  child.stderr.on("data", (chunk) => errors.push(chunk));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(Buffer.concat(errors).toString("utf8"));
  return Buffer.concat(out).toString("utf8");
}

try {
  const plan = join(folder, "plan.jsonl");
  const rows = join(folder, "rows");
  writeFileSync(plan, await run("plan", "--shards", String(shards)));
  const lines = readFileSync(plan, "utf8").trimEnd().split("\n").map(JSON.parse);
  const closed = lines.filter(({ to }) => to !== null).map(({ shard }) => shard);
  const work = async () => {
    for (let shard = closed.shift(); shard !== undefined; shard = closed.shift())
      await run("read", "--plan", plan, "--shard", String(shard), "--output", rows);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  await run("read", "--plan", plan, "--shard", "open", "--output", rows);
  const folders = readdirSync(rows).filter((name) => name.startsWith("shard-"));
  await run("state", "merge", ...folders.map((name) => join(rows, name)));
  const minutes = (performance.now() - began) / 60_000;
  const ids = new Set();
  let held = 0;
  for (const name of readdirSync(rows, { recursive: true, encoding: "utf8" })) {
    if (!/people\/[^.][^/]*\.jsonl$/.test(name)) continue;
    for await (const line of createInterface({ input: createReadStream(join(rows, name)) })) {
      held += 1;
      ids.add(/"id":"([^"]*)"/.exec(line)?.[1]);
    }
  }
  const moments = sandbox.requests.map(({ at }) => at).toSorted((a, b) => a - b);
  const worst = Math.max(
    ...moments.map((from) => moments.filter((at) => at >= from && at < from + 60_000).length),
  );
  const refused = sandbox.requests.filter(({ status }) => status === 429).length;
  console.log(
    `${lines.length} shards, ${atOnce} at once: ${ids.size} people in ${held} rows, ${moments.length} requests, ` +
      `${worst} in the worst minute, ${refused} refused with 429, ${minutes.toFixed(1)} minutes`,
  );
} finally {
  rmSync(folder, { recursive: true });
  await sandbox.close();
}
