import { type FileHandle, open, rm } from "node:fs/promises";
import { createGzip } from "node:zlib";

/** A file that has no name yet. It is made once there is a batch to write: until then its text is in memory. */
export class Part {
  readonly path: string;
  /** Bytes of the text that was appended. */
  length = 0;
  readonly #batch: number;
  readonly #gzip: Gzip | undefined;
  #file: FileHandle | undefined;
  #pending = "";

  /** @param batch how many characters, which are bytes, are worth one write */
  constructor(path: string, gzip: boolean, batch: number) {
    this.path = path;
    this.#batch = batch;
    this.#gzip = gzip ? new Gzip() : undefined;
  }

  /** The text of a part that has no file yet; undefined: it has one. */
  get text(): string | undefined {
    return this.#file === undefined ? this.#pending : undefined;
  }

  /** Appends a text, given as bytes in latin1. Throws the system's errors as they are, as where the path is taken. */
  async append(text: string): Promise<void> {
    this.#pending += text;
    this.length += text.length;
    if (this.#pending.length >= this.#batch) await this.#flush();
  }

  /** Returns when all is on the disk. Nothing can be appended afterwards. */
  async seal(): Promise<void> {
    await this.#flush();
    if (this.#gzip !== undefined) await this.#write(await this.#gzip.end());
    await this.#file?.sync();
    await this.#file?.close();
  }

  /** Removes the file. */
  async discard(): Promise<void> {
    await this.#file?.close().catch(() => undefined);
    await rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#pending, "latin1");
    this.#pending = "";
    await this.#write(this.#gzip === undefined ? bytes : await this.#gzip.write(bytes));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    this.#file ??= await open(this.path, "wx", 0o666);
    await this.#file.appendFile(bytes);
  }
}

class Gzip {
  readonly #gzip = createGzip();
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
