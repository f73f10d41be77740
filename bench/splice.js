// The least that passes records on untouched: parsed and checked, but nothing is proven and nothing is remembered.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Ajv } from "ajv";
import split2 from "split2";
import { request } from "undici";

const BATCH = 64 * 1024;
const HEAD = `{"type":"RECORD","record":{"stream":"people","emitted_at":${Date.now()},"data":`;
const schema = JSON.parse(readFileSync(new URL("../schemas/people.json", import.meta.url), "utf8"));
const accepts = new Ajv({ strict: false, validateFormats: false }).compile(schema);
const { body, headers } = await request(`${process.argv[2]}/api/v1/public/people/stream`, {
  headers: { "accept-encoding": "gzip" },
});
const gunzip = headers["content-encoding"] === "gzip" ? [createGunzip({ chunkSize: BATCH })] : [];

let text = "";
const take = (line) => {
  if (!accepts(JSON.parse(line))) throw new Error("A row contradicts its schema");
  text += `${HEAD}${line}}}\n`;
  if (text.length < BATCH) return undefined;
  const batch = text;
  text = "";
  return batch;
};

await pipeline(
  body,
  ...gunzip,
  async function* toLatin1(chunks) {
    for await (const chunk of chunks) yield chunk.latin1Slice();
  },
  split2("\n", take, { decodeStrings: false, readableHighWaterMark: 2 }),
  async function write(batches) {
    for await (const batch of batches) {
      if (!process.stdout.write(batch, "latin1")) await once(process.stdout, "drain");
    }
    process.stdout.write(text, "latin1");
  },
);
