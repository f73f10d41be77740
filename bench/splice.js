// The least that passes records on untouched: parsed and checked, but nothing is proven and nothing is remembered.
import { once } from "node:events";
import { pipeline } from "node:stream/promises";
import split2 from "split2";
import { accepts, bytes } from "./export.js";

const BATCH = 64 * 1024;
const HEAD = `{"type":"RECORD","record":{"stream":"people","emitted_at":${Date.now()},"data":`;

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
  ...bytes,
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
