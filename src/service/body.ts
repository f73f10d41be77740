import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { DataError } from "../base/errors.ts";
import { printable } from "../base/json.ts";
import type { Usage } from "./usage.ts";

/** An answer's body as it arrives. */
export type Body = { readonly body: Readable; readonly headers: IncomingHttpHeaders };

/**
 * Whether a body is to be decompressed. Names of encodings have no case (RFC 9110, 8.4.1), and `x-gzip` is `gzip`.
 * @throws DataError for an encoding that was not asked for
 */
export function isGzipped(what: string, headers: IncomingHttpHeaders): boolean {
  const encoding = String(headers["content-encoding"] ?? "")
    .trim()
    .toLowerCase();
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  if (encoding === "" || encoding === "identity") return false;
  throw new DataError(
    `Cannot ${what}: the answer is encoded as "${printable(encoding)}", only gzip was asked for. ` +
      "Tell the owner of the service, or of the proxy before it",
  );
}

/**
 * Reads a body to its end.
 * @param limit bytes after decompression
 * @throws DataError for a longer body, and for an encoding that was not asked for
 */
export async function readBody(
  what: string,
  { body, headers }: Body,
  limit: number,
  usage: Usage,
): Promise<Buffer> {
  const gunzips = isGzipped(what, headers) ? [createGunzip()] : [];
  const chunks: Buffer[] = [];
  const count = async function* (arrived: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of arrived) {
      usage.bytesReceived += chunk.length;
      yield chunk;
    }
  };
  const collect = async (source: AsyncIterable<Buffer>): Promise<void> => {
    let size = 0;
    for await (const chunk of source) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit) throw tooLong(what, limit);
    }
  };
  const parts = [body, count, ...gunzips, collect] as unknown as [Readable, NodeJS.WritableStream];
  await pipeline(parts);
  return Buffer.concat(chunks);
}

const tooLong = (what: string, limit: number): DataError =>
  new DataError(
    `Cannot ${what}: the answer is longer than ${limit / 1_048_576} MiB, which no answer of this interface is. ` +
      "Check the address, or tell the service's owner",
  );
