import { type FileHandle, open, rm } from "node:fs/promises";
import { createGzip } from "node:zlib";
import { syncHandle } from "./replace.ts";

/** Fewer bytes than this wait in memory. */
export const MIN_WRITE_BYTES = 512 * 1024;
/** Half of the time of zlib's own choice, 6, for files that are a tenth larger. */
const LEVEL = 3;
/** Bytes that zlib hands back at once: with its own choice, a quarter of it, its thread is waited for four times as often. */
const OUT_BYTES = 64 * 1024;

/** A file that has no name yet. It is made once there is a batch to write: until then its text is in memory. */
export class Part {
  readonly path: string;
  /** Bytes of the text that was appended. */
  length = 0;
  rows = 0;
  readonly #batch: number;
  readonly #gzip: Gzip | undefined;
  #file: FileHandle | undefined;
  #isSealed = false;
  /** Bytes that are not written yet, at the start of a buffer: joined strings take half as much time again. */
  #pending = Buffer.alloc(0);
  #pendingBytes = 0;

  /** @param batch how many bytes are worth one write, at most 512 KiB */
  constructor(path: string, gzip: boolean, batch = MIN_WRITE_BYTES) {
    this.path = path;
    this.#batch = Math.min(batch, MIN_WRITE_BYTES);
    this.#gzip = gzip ? new Gzip() : undefined;
  }

  /** Whether all of its text is in memory. */
  get isInMemory(): boolean {
    return this.#file === undefined;
  }

  /** The text that is in memory. */
  get text(): string {
    return this.#pending.toString("latin1", 0, this.#pendingBytes);
  }

  /** Appends lines, given as bytes in latin1; one call at a time. Throws the system's errors as they are. */
  async append(text: string, rows: number): Promise<void> {
    const length = this.#pendingBytes + text.length;
    if (length > this.#pending.length) this.#pending = Buffer.concat([this.#pending], 2 * length);
    this.#pendingBytes += this.#pending.write(text, this.#pendingBytes, "latin1");
    this.rows += rows;
    this.length += text.length;
    if (this.#pendingBytes >= this.#batch) await this.#flush();
  }

  /** Returns when all is on the disk. Nothing can be appended afterwards. May be called twice. */
  async seal(): Promise<void> {
    if (this.#isSealed) return;
    this.#isSealed = true;
    await this.#flush();
    if (this.#gzip !== undefined) await this.#write(await this.#gzip.end());
    if (this.#file !== undefined) await syncHandle(this.#file);
    await this.#file?.close();
  }

  /** Removes the file. */
  async discard(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    await rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    const bytes = this.#pending.subarray(0, this.#pendingBytes);
    this.#pendingBytes = 0;
    await this.#write(this.#gzip === undefined ? bytes : await this.#gzip.write(bytes));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#file ??= await open(this.path, "wx", 0o600);
    await this.#file.appendFile(bytes);
  }
}

class Gzip {
  readonly #gzip = createGzip({ level: LEVEL, chunkSize: OUT_BYTES });
  readonly #chunks: Buffer[] = [];

  constructor() {
    this.#gzip.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }

  /** Returns what is ready of the compressed bytes. */
  async write(bytes: Uint8Array): Promise<Uint8Array> {
    await new Promise<void>((resolve, reject) => {
      this.#gzip.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
    return Buffer.concat(this.#chunks.splice(0));
  }

  /** Returns the rest of the compressed bytes. */
  async end(): Promise<Uint8Array> {
    await new Promise<void>((resolve, reject) => {
      this.#gzip.on("error", reject).on("end", resolve).end();
    });
    return Buffer.concat(this.#chunks.splice(0));
  }
}
