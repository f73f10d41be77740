import { codeOf, reasonOf } from "../output/files/reason.ts";
import type { Event } from "../sync/event.ts";
import type { Language } from "./language.ts";

const NOTICES: ReadonlySet<Event["kind"]> = new Set(["cut", "limited", "log", "retrying"]);

/** Characters, which are bytes, that are worth one write. */
const WORTH_A_WRITE = 64 * 1024;

/** The output broke, or its reader has gone away: no more can be delivered. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";

  /** True if its reader has gone away, as `head` does, which is no error. */
  get isUnread(): boolean {
    return UNREAD.has(codeOf(this.cause) ?? "");
  }
}

const UNREAD: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_DESTROYED"]);

/**
 * Writes events as text, in the order of the calls and in whole lines.
 * An emit waits while the reader is slow, so memory has one batch, and one event for each caller.
 * After a failure of the output it writes no more. One emit or close rejects with OutputClosed, and all others return.
 * Notices never reject, because no caller waits for them.
 */
export class Writer {
  readonly #say: Language;
  readonly #out: NodeJS.WritableStream;
  readonly #mask: (text: string) => string;
  #pending = "";
  #scheduled = false;
  /** True while the stream accepts no more. */
  #full = false;
  /** Resolves when all that was handed to the stream has left, or never will. */
  #left: Promise<void> = Promise.resolve();
  #release: () => void = () => {};
  #failure: OutputClosed | undefined;
  #reported = false;

  /** @param mask applied to all text that is not records, so that no log, trace or state shows a secret */
  constructor(say: Language, out: NodeJS.WritableStream, mask = (text: string): string => text) {
    this.#say = say;
    this.#out = out;
    this.#mask = mask;
    out.on("error", (error: Error) => this.#fail(error));
  }

  /** Returns when there is room for more; for a checkpoint, when its bytes have left. False: nothing leaves any more. */
  async emit(event: Event): Promise<boolean> {
    if (this.#failure === undefined) this.#pending += this.#textOf(event);
    if (event.kind === "checkpoint") await this.#flush();
    else if (this.#pending.length >= WORTH_A_WRITE) await this.#send();
    else this.#sendSoon();
    if (!NOTICES.has(event.kind)) this.#report();
    return this.#failure === undefined;
  }

  /** Returns when all bytes have left. The stream stays open: it may be the process's own. */
  async close(): Promise<void> {
    await this.#flush();
    this.#report();
  }

  #textOf(event: Event): string {
    const text = this.#say(event);
    return event.kind === "records" ? text : this.#mask(text);
  }

  /** Events of one turn of the event loop leave together, and never wait for a later turn. */
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

/** Writes one text and returns when its bytes have left. Throws OutputClosed. */
export async function write(out: NodeJS.WritableStream, text: string): Promise<void> {
  const writer = new Writer(() => text, out);
  await writer.emit({ kind: "end" });
  await writer.close();
}
