// The rows that every candidate reads: made once by the sandbox, kept under .cache/, the same on every machine.
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createGzip } from "node:zlib";
import split2 from "split2";
import { startSandbox } from "../dist/sandbox/server.js";

const CACHE = new URL("../.cache/bench/", import.meta.url);
const NOW = "2026-01-01T00:00:00Z";

/** An export of so many people over ten years, newest first: plain, gzipped, and the rows and bytes of each day. */
export async function prepareRows(people) {
  const path = (suffix) => fileURLToPath(new URL(`people-${people}.${suffix}`, CACHE));
  const files = { plain: path("ndjson"), gzipped: path("ndjson.gz"), days: path("days.json") };
  if (existsSync(files.days)) return { ...files, bytes: sizesOf(files) };
  mkdirSync(CACHE, { recursive: true });
  await writePlain(people, files.plain);
  const gzipped = createWriteStream(files.gzipped);
  await pipeline(createReadStream(files.plain, { highWaterMark: 1 << 20 }), createGzip(), gzipped);
  const days = await daysOf(files.plain);
  writeFileSync(`${files.days}.part`, JSON.stringify([...days.values()]));
  renameSync(`${files.days}.part`, files.days);
  return { ...files, bytes: sizesOf(files) };
}

const sizesOf = ({ plain, gzipped }) => ({ plain: statSync(plain).size, gzipped: statSync(gzipped).size });

async function writePlain(people, file) {
  const sandbox = await startSandbox({ people, undated: 0, now: NOW });
  try {
    const response = await fetch(`${sandbox.url}/api/v1/public/people/stream`, {
      headers: { "x-api-key": sandbox.key, "accept-encoding": "identity" },
    });
    await pipeline(Readable.fromWeb(response.body), createWriteStream(file));
  } finally {
    await sandbox.close();
  }
}

async function daysOf(file) {
  const days = new Map();
  for await (const line of createReadStream(file, "latin1").pipe(split2())) {
    const day = JSON.parse(line).discoveredAt.slice(0, 10);
    const known = days.get(day) ?? { day, rows: 0, bytes: 0 };
    days.set(day, known);
    known.rows += 1;
    known.bytes += line.length + 1;
  }
  return days;
}
