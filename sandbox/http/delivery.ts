import type { ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { createGzip } from "node:zlib";
import type { Answer, Delivery, Ending } from "../faults/answer.ts";

const BATCH_BYTES = 65_536;
/** A response of a set speed is sent in steps that each take so long. */
const STEP_MS = 50;
/** Time for the last bytes to leave before the connection is ended. */
const GRACE_MS = 40;

/** Puts an answer on the wire. Takes no more rows than the client reads, and stops when the client goes away. */
export async function deliver(answer: Answer, delivery: Delivery, response: ServerResponse): Promise<void> {
  const ready =
    delivery.framing === "length" && delivery.length === undefined
      ? measured(answer, delivery)
      : { answer, delivery };
  writeHead(ready.answer, ready.delivery, response);
  const write = writer(response, ready.delivery);
  let left = ready.delivery.most ?? Number.POSITIVE_INFINITY;
  for await (const chunk of body(ready.answer, ready.delivery)) {
    if (!(await write(chunk.length > left ? chunk.subarray(0, left) : chunk))) return;
    left -= chunk.length;
    if (left < 0) return await end(response, "fin");
  }
  await end(response, ready.delivery.ending);
}

function measured(answer: Answer, delivery: Delivery): { answer: Answer; delivery: Delivery } {
  const text = [...answer.pieces].join("");
  return { answer: { ...answer, pieces: [text] }, delivery: { ...delivery, length: text.length } };
}

function writeHead(
  { status, headers }: Answer,
  { framing, length, gzip }: Delivery,
  response: ServerResponse,
): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (gzip) response.setHeader("content-encoding", "gzip");
  if (framing === "length" && length !== undefined) response.setHeader("content-length", length);
  if (framing === "close") {
    response.removeHeader("transfer-encoding");
    response.setHeader("connection", "close");
  }
  response.flushHeaders();
}

function body({ pieces }: Answer, { gzip, holdBack }: Delivery): AsyncIterable<Buffer> | Iterable<Buffer> {
  const chunks = gzip ? zipped(batches(pieces)) : batches(pieces);
  return holdBack > 0 ? withoutLast(chunks, holdBack) : chunks;
}

function* batches(pieces: Iterable<string>): Generator<Buffer> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < BATCH_BYTES) continue;
    yield Buffer.from(text, "latin1");
    text = "";
  }
  if (text !== "") yield Buffer.from(text, "latin1");
}

function zipped(chunks: Iterable<Buffer>): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: 1 });
  pipeline(Readable.from(chunks), gzip, () => {});
  return gzip;
}

async function* withoutLast(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  bytes: number,
): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const joined = Buffer.concat([held, chunk]);
    const free = Math.max(0, joined.length - bytes);
    if (free > 0) yield joined.subarray(0, free);
    held = joined.subarray(free);
  }
}

/** Returns what writes a chunk. It resolves when the client's side has room again; to false if the client is gone. */
function writer(
  response: ServerResponse,
  { drip, bytesPerSecond }: Delivery,
): (chunk: Buffer) => Promise<boolean> {
  if (drip !== undefined) {
    let atOnce = drip.after;
    return async (chunk) => {
      const first = chunk.subarray(0, atOnce);
      atOnce -= first.length;
      if (first.length > 0 && !(await writeWhole(response, first))) return false;
      return await writeSlowly(response, chunk.subarray(first.length), drip.bytes, () => delay(drip.everyMs));
    };
  }
  if (bytesPerSecond === undefined) return (chunk) => writeWhole(response, chunk);
  const step = Math.max(1, Math.floor((bytesPerSecond * STEP_MS) / 1000));
  let due = performance.now();
  const rest = async (bytes: number): Promise<void> => {
    due = Math.max(due, performance.now() - STEP_MS) + (bytes / bytesPerSecond) * 1000;
    const early = due - performance.now();
    // Timers are too coarse for a wait after each chunk of a fast response.
    if (early >= STEP_MS / 2) await delay(early);
  };
  return (chunk) => writeSlowly(response, chunk, step, rest);
}

async function writeSlowly(
  response: ServerResponse,
  chunk: Buffer,
  bytes: number,
  rest: (bytes: number) => Promise<void>,
): Promise<boolean> {
  for (let at = 0; at < chunk.length; at += bytes) {
    const part = chunk.subarray(at, at + bytes);
    if (!(await writeWhole(response, part))) return false;
    await rest(part.length);
  }
  return true;
}

async function writeWhole(response: ServerResponse, chunk: Buffer): Promise<boolean> {
  if (isGone(response)) return false;
  if (response.write(chunk)) return true;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
  });
  return !isGone(response);
}

const isGone = (response: ServerResponse): boolean =>
  response.destroyed || response.socket === null || response.socket.destroyed;

async function end(response: ServerResponse, ending: Ending): Promise<void> {
  const { socket } = response;
  switch (ending) {
    case "end":
      response.end();
      return;
    case "end-close":
      response.end(() => socket?.end());
      return;
    case "fin":
      await delay(GRACE_MS);
      socket?.end();
      return;
    case "reset":
      await delay(GRACE_MS);
      socket?.resetAndDestroy();
      return;
    case "hang":
      return;
  }
}
