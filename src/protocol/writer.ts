import { codeOf, reasonOf } from "../output/files/reason.ts";
import type { Event } from "../sync/event.ts";
import type { Language } from "./language.ts";

const NOTICES: ReadonlySet<Event["kind"]> = new Set(["cut", "limited", "log", "retrying"]);

/** From this number of pending bytes on, text is written at once. */
const WORTH_A_WRITE = 64 * 1024;

/** The output broke, or its reader has gone away. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";

  /** Whether the reader has gone away, such as `head`. This is a normal end. */
  get isUnread(): boolean {
    return UNREAD.has(codeOf(this.cause) ?? "");
  }
}

const UNREAD: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_DESTROYED"]);

/**
 * Writes events as whole lines, in the order of the calls. An emit waits for a slow reader, which limits memory.
 * After a failure of the output, the first emit or close rejects with OutputClosed, and later calls return. The emit
 * of a notice never rejects, because no caller waits for a notice.
 */
export class Writer {
  readonly #say: Language;
  readonly #out: NodeJS.WritableStream;
  readonly #mask: (text: string) => string;
  #pending = "";
  #scheduled = false;
  /** Whether the stream accepts no more text now. */
  #full = false;
  /** Resolves when the stream has written the text so far, or has failed. */
  #left: Promise<void> = Promise.resolve();
  #release: () => void = () => {};
  #failure: OutputClosed | undefined;
  #reported = false;

  /** @param mask hides secrets in all text except records */
  constructor(say: Language, out: NodeJS.WritableStream, mask = (text: string): string => text) {
    this.#say = say;
    this.#out = out;
    this.#mask = mask;
    out.on("error", (error: Error) => this.#fail(error));
  }

  /** Returns when there is room for more text; after a checkpoint, when its bytes are written. False: the output failed. */
  async emit(event: Event): Promise<boolean> {
    if (this.#failure === undefined) this.#pending += this.#textOf(event);
    if (event.kind === "checkpoint") await this.#flush();
    else if (this.#pending.length >= WORTH_A_WRITE) await this.#send();
    else this.#sendSoon();
    if (!NOTICES.has(event.kind)) this.#report();
    return this.#failure === undefined;
  }

  /** Returns when all bytes are written. The stream stays open, because it may be stdout. */
  async close(): Promise<void> {
    await this.#flush();
    this.#report();
  }

  #textOf(event: Event): string {
    const text = this.#say(event);
    return event.kind === "records" ? text : this.#mask(text);
  }

  /** Writes all events of one turn of the event loop together. */
  #sendSoon(): void {
    if (this.#scheduled || this.#pending === "") return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#send();
    });
  }

  async #flush(): Promise<void> {
    await this.#send();
    await this.#left;
  }

  async #send(): Promise<void> {
    while (this.#full) await this.#left;
    if (this.#pending !== "" && this.#failure === undefined) this.#write();
  }

  #write(): void {
    const text = this.#pending;
    this.#pending = "";
    this.#left = new Promise((resolve) => {
      const release = (): void => {
        if (this.#release === release) this.#full = false;
        resolve();
      };
      this.#release = release;
      this.#full = !this.#out.write(text, "latin1", (error) => {
        if (error) this.#fail(error);
        release();
      });
    });
  }

  #fail(cause: Error): void {
    this.#failure ??= new OutputClosed(`Cannot write the output: ${reasonOf(cause)}`, { cause });
    this.#pending = "";
    this.#release();
  }

  #report(): void {
    if (this.#failure === undefined || this.#reported) return;
    this.#reported = true;
    throw this.#failure;
  }
}

/** Writes one text and returns when its bytes are written. Throws OutputClosed. */
export async function write(out: NodeJS.WritableStream, text: string): Promise<void> {
  const writer = new Writer(() => text, out);
  await writer.emit({ kind: "end" });
  await writer.close();
}
