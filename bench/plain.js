// The usual loop: every row becomes an object, is checked, and is written as JSON.
import { once } from "node:events";
import { pipeline } from "node:stream/promises";
import split2 from "split2";
import { accepts, bytes } from "./export.js";

await pipeline(...bytes, split2(JSON.parse), async function write(rows) {
  for await (const data of rows) {
    if (!accepts(data)) throw new Error("A row contradicts its schema");
    const record = { stream: "people", emitted_at: Date.now(), data };
    const message = `${JSON.stringify({ type: "RECORD", record })}\n`;
    if (!process.stdout.write(message)) await once(process.stdout, "drain");
  }
});
