import { type FileHandle, open, rm } from "node:fs/promises";
import { createGzip } from "node:zlib";
import { syncHandle } from "./replace.ts";

/** A part writes at least this number of bytes at once. */
export const MIN_WRITE_BYTES = 512 * 1024;
/** The level of gzip: half of the time of zlib's default, 6, and files that are a tenth larger. */
const LEVEL = 3;
/** The bytes of a piece from zlib. With zlib's default (16 KiB), the program waits four times as often for zlib's thread. */
const OUT_BYTES = 64 * 1024;

/** A file under a hidden name. Its first text stays in memory until a batch is full. */
export class Part {
  readonly path: string;
  /** Bytes of all appended text. */
  length = 0;
  rows = 0;
  readonly #batch: number;
  readonly #gzip: Gzip | undefined;
  #file: FileHandle | undefined;
  #isSealed = false;
  /** A buffer that begins with unwritten bytes. Joined strings would take 1.5 times as long. */
  #pending = Buffer.alloc(0);
  #pendingBytes = 0;

  /** @param batch the number of bytes for one write, at most 512 KiB */
  constructor(path: string, gzip: boolean, batch = MIN_WRITE_BYTES) {
    this.path = path;
    this.#batch = Math.min(batch, MIN_WRITE_BYTES);
    this.#gzip = gzip ? new Gzip() : undefined;
  }

  /** Whether all text is in memory. */
  get isInMemory(): boolean {
    return this.#file === undefined;
  }

  /** The text in memory. */
  get text(): string {
    return this.#pending.toString("latin1", 0, this.#pendingBytes);
  }

  /** Appends lines (latin1). Callers wait for the end of one call before the next. Throws errors of the system. */
  async append(text: string, rows: number): Promise<void> {
    const length = this.#pendingBytes + text.length;
    if (length > this.#pending.length) this.#pending = Buffer.concat([this.#pending], 2 * length);
    this.#pendingBytes += this.#pending.write(text, this.#pendingBytes, "latin1");
    this.rows += rows;
    this.length += text.length;
    if (this.#pendingBytes >= this.#batch) await this.#flush();
  }

  /** Ends the file. Returns when all text is on the disk. A second call does nothing. */
  async seal(): Promise<void> {
    if (this.#isSealed) return;
    this.#isSealed = true;
    await this.#flush();
    if (this.#gzip !== undefined) await this.#write(await this.#gzip.end());
    if (this.#file !== undefined) await syncHandle(this.#file);
    await this.#file?.close();
  }

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

  /** Returns the compressed bytes that are ready. */
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
