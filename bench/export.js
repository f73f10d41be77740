// The export that a prototype reads, and the check of its rows. The prototype's argument is the service's address.
import { readFileSync } from "node:fs";
import { createGunzip } from "node:zlib";
import { Ajv } from "ajv";
import { request } from "undici";

const schema = JSON.parse(readFileSync(new URL("../schemas/people.json", import.meta.url), "utf8"));
export const accepts = new Ajv({ strict: false, validateFormats: false }).compile(schema);
const { body, headers } = await request(`${process.argv[2]}/api/v1/public/people/stream`, {
  headers: { "accept-encoding": "gzip" },
});
const gunzip = headers["content-encoding"] === "gzip" ? [createGunzip({ chunkSize: 64 * 1024 })] : [];
/** The first steps of a pipeline, which give the bytes. */
export const bytes = [body, ...gunzip];
