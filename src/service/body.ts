import { pipeline, type Readable } from "node:stream";
import { createGunzip, gzipSync } from "node:zlib";
import { DataError } from "../base/errors.ts";
import { printable } from "../base/json.ts";
import { encodingsOf, type Headers, isFramed } from "./headers.ts";
import type { Usage } from "./usage.ts";

/** Bytes that are worked on at once: texts from twice as many on are large objects to V8, and take several times as long. */
const PIECE_BYTES = 64 * 1024;

/** An answer's body as it arrives. */
export type Body = { readonly body: Readable; readonly headers: Headers };

/**
 * The bytes of a body as they arrive, decompressed strictly: a missing trailer is an error. One that comes to its end without a
 * byte is empty, whatever its label says. A label that came twice is one label.
 * @param usage counts the bytes before decompression
 * @throws DataError for an encoding that was not asked for
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
 * All that has arrived since the last look, in pieces of a good size. A pipe would hand on one arrival after the other from
 * a linked list, and while that is never empty the garbage collector keeps it from its first link on: a hundred megabytes
 * that were read long ago.
 * @param ifNone given in place of no byte
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
 * @throws DataError for a longer body, and for an encoding that was not asked for
 */
export async function readBody(what: string, answer: Body, limit: number, usage: Usage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of bytesOf(what, answer, usage)) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit) throw tooLong(what, limit);
    }
    return Buffer.concat(chunks);
  } finally {
    answer.body.destroy();
  }
}

const tooLong = (what: string, limit: number): DataError =>
  new DataError(
    `Cannot ${what}: the answer is longer than ${limit / 1_048_576} MiB, which no answer of this interface is. ` +
      "Check the address, or tell the service's owner",
  );
