// The rows that every candidate reads: made once by the sandbox, kept under .cache/, the same on every machine.
import { createReadStream, createWriteStream, existsSync, mkdirSync, renameSync, statSync } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createGzip } from "node:zlib";
import { startSandbox } from "../dist/sandbox/server.js";

const CACHE = new URL("../.cache/bench/", import.meta.url);
/** When everyone was checked. */
export const DAY = "2026-01-01";

/** An export of this number of people of one day, newest first: its files, plain and gzipped, and their bytes. */
export async function prepareRows(people) {
  const path = (suffix) => fileURLToPath(new URL(`day-${people}.${suffix}`, CACHE));
  const files = { plain: path("ndjson"), gzipped: path("ndjson.gz") };
  if (!existsSync(files.gzipped)) {
    mkdirSync(CACHE, { recursive: true });
    await writePlain(people, files.plain);
    const part = `${files.gzipped}.part`;
    await pipeline(createReadStream(files.plain), createGzip(), createWriteStream(part));
    renameSync(part, files.gzipped);
  }
  return { ...files, bytes: { plain: statSync(files.plain).size, gzipped: statSync(files.gzipped).size } };
}

async function writePlain(people, file) {
  const sandbox = await startSandbox({ people, undated: 0, days: 0.9, now: `${DAY}T23:59:00Z` });
  try {
    const response = await fetch(`${sandbox.url}/api/v1/public/people/stream`, {
      headers: { "x-api-key": sandbox.key, "accept-encoding": "identity" },
    });
    await pipeline(Readable.fromWeb(response.body), createWriteStream(file));
  } finally {
    await sandbox.close();
  }
}
