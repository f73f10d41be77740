import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { Part } from "../files/part.ts";
import { makeFolder, syncFolder } from "../files/replace.ts";
import type { Lines } from "../streams/event.ts";
import { newPartName } from "./folder-state.ts";

/** Characters, which are bytes, that are worth one write. Windows that have fewer share a file. */
const WORTH_WRITING = 256 * 1024;

/** What all files of a run have in common. */
export type FileForm = {
  /** When the run began, as it stands in their names. */
  readonly start: string;
  readonly gzip: boolean;
  /** How many bytes of small windows are enough for a file. */
  readonly cutBytes: number;
};

/** Names of hidden parts, and how many files are in them. */
type Taken = { readonly parts: readonly string[]; readonly files: number };

/**
 * The rows of one stream that have no name yet. Each window has a part of its own, so that no part ever holds rows of
 * which some are covered by a state and some are not; the rows of a small window wait in memory until they are covered.
 */
export class WindowFiles {
  /** How many bytes of rows are covered and not taken. */
  covered = 0;
  readonly #folder: string;
  readonly #form: FileForm;
  readonly #open = new Map<number, Part>();
  #ended: Part[] = [];
  /** Takes the rows of small windows once they are covered. */
  #shared: Part | undefined;
  #hidden: string | undefined;
  #hasFolder = false;

  constructor(folder: string, form: FileForm) {
    this.#folder = folder;
    this.#form = form;
  }

  get isEmpty(): boolean {
    return this.#ended.length === 0 && this.#shared === undefined;
  }

  async append(lines: Lines, window: number): Promise<void> {
    if (lines.length === 0) return;
    let part = this.#open.get(window);
    if (part === undefined) {
      await this.#makeFolder();
      part = this.#newPart();
      this.#open.set(window, part);
    }
    let text = "";
    for (const line of lines) text += `${line}\n`;
    await part.append(text);
  }

  /** Says that the windows below a number, or all, are covered by a state. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, part] of [...this.#open]) {
      if (window >= windows) continue;
      this.#open.delete(window);
      this.covered += part.length;
      await (part.text === undefined ? this.#end(part) : this.#share(part.text));
    }
  }

  /** Puts all that is covered on the disk, and says under which names; it is removed by `discard` until it is forgotten. */
  async take(): Promise<Taken> {
    await this.#endShared();
    this.covered = 0;
    if (this.#ended.length > 0) await syncFolder(this.#folder);
    return { parts: this.#ended.map(({ path }) => basename(path)), files: this.#ended.length };
  }

  /**
   * Like `take`, but moves the parts into one folder that is still hidden.
   * @param nameOf gives the next file of the folder its name
   */
  async gather(nameOf: () => string): Promise<Taken> {
    const { files } = await this.take();
    const hidden = newPartName("full");
    this.#hidden = join(this.#folder, hidden);
    await this.#makeFolder();
    await mkdir(this.#hidden);
    for (const part of this.#ended) await rename(part.path, join(this.#hidden, nameOf()));
    await syncFolder(this.#hidden);
    await syncFolder(this.#folder);
    return { parts: [hidden], files };
  }

  /** What was taken belongs to a state from now on. */
  forget(): void {
    this.#ended = [];
    this.#hidden = undefined;
  }

  /** Removes all that no state names. */
  async discard(): Promise<void> {
    const shared = this.#shared === undefined ? [] : [this.#shared];
    for (const part of [...this.#open.values(), ...this.#ended, ...shared]) await part.discard();
    if (this.#hidden !== undefined) await rm(this.#hidden, { recursive: true, force: true });
    this.#open.clear();
    this.#shared = undefined;
    this.forget();
  }

  async #makeFolder(): Promise<void> {
    if (!this.#hasFolder) await makeFolder(this.#folder);
    this.#hasFolder = true;
  }

  #newPart(): Part {
    const { start, gzip, cutBytes } = this.#form;
    return new Part(join(this.#folder, newPartName(start)), gzip, Math.min(WORTH_WRITING, cutBytes));
  }

  async #share(text: string): Promise<void> {
    this.#shared ??= this.#newPart();
    await this.#shared.append(text);
    if (this.#shared.length >= this.#form.cutBytes) await this.#endShared();
  }

  async #endShared(): Promise<void> {
    if (this.#shared !== undefined) await this.#end(this.#shared);
    this.#shared = undefined;
  }

  async #end(part: Part): Promise<void> {
    this.#ended.push(part);
    await part.seal();
  }
}
