// The usual loop: every row becomes an object, is checked, and is spelt anew.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Ajv } from "ajv";
import split2 from "split2";
import { request } from "undici";

const schema = JSON.parse(readFileSync(new URL("../schemas/people.json", import.meta.url), "utf8"));
const accepts = new Ajv({ strict: false, validateFormats: false }).compile(schema);
const { body, headers } = await request(`${process.argv[2]}/api/v1/public/people/stream`, {
  headers: { "accept-encoding": "gzip" },
});
const gunzip = headers["content-encoding"] === "gzip" ? [createGunzip()] : [];

await pipeline(body, ...gunzip, split2(JSON.parse), async function write(rows) {
  for await (const data of rows) {
    if (!accepts(data)) throw new Error("A row contradicts its schema");
    const record = { stream: "people", emitted_at: Date.now(), data };
    const message = `${JSON.stringify({ type: "RECORD", record })}\n`;
    if (!process.stdout.write(message)) await once(process.stdout, "drain");
  }
});
