import { pipeline, type Readable } from "node:stream";
import { createGunzip, gzipSync } from "node:zlib";
import { DataError } from "../base/errors.ts";
import { printable } from "../base/json.ts";
import { encodingsOf, type Headers, isFramed } from "./headers.ts";
import type { Usage } from "./usage.ts";

/** The maximum length of a piece. V8 handles texts of twice this length as large objects, which are several times slower. */
const PIECE_BYTES = 64 * 1024;

/** The body of an answer during its arrival. */
export type Body = { readonly body: Readable; readonly headers: Headers };

/**
 * The decompressed bytes of a body. A missing gzip trailer is an error. A body without a byte is empty, also if it claims gzip.
 * @param usage counts the bytes before decompression
 * @throws DataError for an encoding that was not requested
 */
export function bytesOf(what: string, { body, headers }: Body, usage: Usage): AsyncIterable<Buffer> {
  const encodings = encodingsOf(headers);
  if (encodings.length === 0) return inPieces(body, usage);
  if (encodings.every((name) => name === "gzip")) {
    const pieces = inPieces(body, usage, isFramed(headers) ? gzipSync("") : undefined);
    return pipeline(pieces, createGunzip({ chunkSize: PIECE_BYTES }), () => undefined);
  }
  throw new DataError(
    `Cannot ${what}: the answer is encoded as "${printable(encodings.join(", "))}", only gzip was asked for. ` +
      "Tell the owner of the service, or of the proxy before it",
  );
}

/**
 * Yields the arriving bytes in pieces. A pipe would keep old bytes in memory (100 MB) until its linked list is empty.
 * @param ifNone the only piece if no byte arrives
 */
async function* inPieces(body: AsyncIterable<Buffer>, usage: Usage, ifNone?: Buffer): AsyncGenerator<Buffer> {
  let isEmpty = true;
  for await (const arrived of body) {
    usage.bytesReceived += arrived.length;
    isEmpty &&= arrived.length === 0;
    for (let at = 0; at < arrived.length; at += PIECE_BYTES) yield arrived.subarray(at, at + PIECE_BYTES);
  }
  if (isEmpty && ifNone !== undefined) yield ifNone;
}

/**
 * Reads a body to its end.
 * @param limit bytes after decompression
 * @throws DataError for a longer body, and for an encoding that was not requested
 */
export async function readBody(what: string, answer: Body, limit: number, usage: Usage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const text = `the answer is longer than ${limit / 1_048_576} MiB. No answer of this interface is so long`;
  try {
    for await (const chunk of bytesOf(what, answer, usage)) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit)
        throw new DataError(`Cannot ${what}: ${text}. Check the address, or tell the service's owner`);
    }
    return Buffer.concat(chunks);
  } finally {
    answer.body.destroy();
  }
}
