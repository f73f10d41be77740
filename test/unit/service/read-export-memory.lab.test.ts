import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { request } from "undici";
import { expect, it } from "vitest";
import { readExport } from "../../../src/service/read-export.ts";
import { RowParser } from "../../../src/service/rows.ts";
import { noUsage } from "../../../src/service/usage.ts";
import { serve } from "../../support/serve.ts";

const ROWS = 300_000;
const MOST_BYTES = 16 * 1024 * 1024;

const parser = new RowParser({ key: "id", cursor: null, schema: null });

/** Rows that gzip makes a third of, a few hundred at a time. */
function* body(): Generator<string> {
  let text = "";
  for (let row = 0; row < ROWS; row++) {
    const noise = [1, 2, 3].map(() => Math.random().toString(36)).join("");
    text += `{"id":"${row}","noise":"${noise}","rest":"${"z".repeat(150)}"}\n`;
    if (text.length < 65_536) continue;
    yield text;
    text = "";
  }
  yield text;
}

it("keeps nothing of a gzipped body that it has read, however small the chunks in which it came", async () => {
  const { url } = await serve((_, response) => {
    Readable.from(body())
      .pipe(createGzip({ level: 1, chunkSize: 4096 }))
      .pipe(response);
  });
  const { body: sent } = await request(url);
  const before = process.memoryUsage().arrayBuffers;
  let rows = 0;
  let most = 0;
  for await (const batch of readExport(
    async () => ({ body: sent, headers: { "content-encoding": "gzip" }, idleMs: 60_000, usage: noUsage() }),
    parser,
    "read people",
  )) {
    rows += batch.length;
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(rows).toBe(ROWS);
  expect(most).toBeLessThan(MOST_BYTES);
});
