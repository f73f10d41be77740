import type { IncomingHttpHeaders } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { DataError } from "../base/errors.ts";
import { printable } from "../base/json.ts";
import type { Usage } from "./usage.ts";

/** Bytes that are worked on at once: texts from twice as many on are large objects to V8, and take several times as long. */
const PIECE_BYTES = 64 * 1024;

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
 * The bytes of a body as they arrive, decompressed strictly: a missing trailer is an error.
 * @param usage counts the bytes before decompression
 */
export function bytesOf(body: Readable, gzipped: boolean, usage: Usage): AsyncIterable<Buffer> {
  const pieces = inPieces(body, usage);
  return gzipped ? pipeline(pieces, createGunzip({ chunkSize: PIECE_BYTES }), () => undefined) : pieces;
}

/**
 * All that has arrived since the last look, in pieces of a good size. A pipe would hand on one arrival after the other from
 * a linked list, and while that is never empty the garbage collector keeps it from its first link on: a hundred megabytes
 * that were read long ago.
 */
async function* inPieces(body: AsyncIterable<Buffer>, usage: Usage): AsyncGenerator<Buffer> {
  for await (const arrived of body) {
    usage.bytesReceived += arrived.length;
    for (let at = 0; at < arrived.length; at += PIECE_BYTES) yield arrived.subarray(at, at + PIECE_BYTES);
  }
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
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of bytesOf(body, isGzipped(what, headers), usage)) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit) throw tooLong(what, limit);
    }
    return Buffer.concat(chunks);
  } finally {
    body.destroy();
  }
}

const tooLong = (what: string, limit: number): DataError =>
  new DataError(
    `Cannot ${what}: the answer is longer than ${limit / 1_048_576} MiB, which no answer of this interface is. ` +
      "Check the address, or tell the service's owner",
  );
