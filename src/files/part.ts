import { type FileHandle, open, rm } from "node:fs/promises";
import { createGzip } from "node:zlib";
import { OutputError } from "../errors.ts";
import { reasonOf } from "./reason.ts";

/** Characters, which are bytes, that are worth one write. */
const BATCH = 256 * 1024;

/**
 * A file that has no name yet and grows by whole windows, at most one of which is still being read. What was appended
 * since `cover` was last called is cut off when the part is sealed.
 */
export class Part {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #gzip: boolean;
  #member: GzipMember | undefined;
  #pending = "";
  #length = 0;
  #covered = 0;
  #lines = 0;
  #coveredLines = 0;
  #isCovered = true;

  private constructor(path: string, file: FileHandle, gzip: boolean) {
    this.path = path;
    this.#file = file;
    this.#gzip = gzip;
  }

  /** Throws where anything is there already. */
  static async create(path: string, gzip: boolean): Promise<Part> {
    return new Part(path, await open(path, "wx", 0o666), gzip);
  }

  /** Bytes in the file that are covered. */
  get covered(): number {
    return this.#covered;
  }

  get coveredLines(): number {
    return this.#coveredLines;
  }

  /** Whether all that was appended is covered. */
  get isCovered(): boolean {
    return this.#isCovered;
  }

  /** Appends lines, given as bytes in latin1. */
  async append(lines: readonly string[]): Promise<void> {
    for (const line of lines) this.#pending += `${line}\n`;
    this.#lines += lines.length;
    this.#isCovered = false;
    if (this.#pending.length >= BATCH) await this.#flush();
  }

  /** Says that all that was appended is covered by a state. It becomes a gzip member of its own. */
  async cover(): Promise<void> {
    if (this.#isCovered) return;
    await this.#flush();
    await this.#write(await this.#member?.end());
    this.#member = undefined;
    this.#covered = this.#length;
    this.#coveredLines = this.#lines;
    this.#isCovered = true;
  }

  /** Returns when what is covered, and only that, is on the disk. Nothing can be appended afterwards. */
  async seal(): Promise<void> {
    try {
      if (this.#length > this.#covered) await this.#file.truncate(this.#covered);
      await this.#file.sync();
      await this.#file.close();
    } catch (cause) {
      throw this.#failure(cause);
    }
  }

  /** Removes the file. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.from(this.#pending, "latin1");
    this.#pending = "";
    if (!this.#gzip) {
      await this.#write([bytes]);
      return;
    }
    this.#member ??= new GzipMember();
    await this.#write(await this.#member.write(bytes));
  }

  async #write(chunks: readonly Uint8Array[] = []): Promise<void> {
    for (const chunk of chunks) {
      for (let from = 0; from < chunk.length; ) {
        const written = await this.#writeSome(chunk, from);
        from += written;
        this.#length += written;
      }
    }
  }

  async #writeSome(chunk: Uint8Array, from: number): Promise<number> {
    try {
      return (await this.#file.write(chunk, from, chunk.length - from, this.#length)).bytesWritten;
    } catch (cause) {
      throw this.#failure(cause);
    }
  }

  #failure(cause: unknown): OutputError {
    return new OutputError(`Cannot write "${this.path}": ${reasonOf(cause)}`, { cause });
  }
}

/** One member of a gzip file. Members may follow each other, and what follows a whole one can be cut off. */
class GzipMember {
  readonly #gzip = createGzip();
  #chunks: Buffer[] = [];

  constructor() {
    this.#gzip.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }

  /** Returns what is ready of the compressed bytes. */
  async write(bytes: Uint8Array): Promise<readonly Buffer[]> {
    await new Promise<void>((resolve, reject) => {
      this.#gzip.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
    return this.#take();
  }

  /** Returns the rest of the compressed bytes. */
  async end(): Promise<readonly Buffer[]> {
    await new Promise<void>((resolve, reject) => {
      this.#gzip.on("error", reject).on("end", resolve).end();
    });
    return this.#take();
  }

  #take(): readonly Buffer[] {
    const taken = this.#chunks;
    this.#chunks = [];
    return taken;
  }
}
