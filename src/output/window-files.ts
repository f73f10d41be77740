import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Lines } from "../sync/event.ts";
import { MIN_WRITE_BYTES, Part } from "./files/part.ts";
import { makeFolder, syncFolder } from "./files/replace.ts";
import { type NamedPart, newPartName } from "./folder-state.ts";

/** The form of all files of a run. */
export type FileForm = {
  /** When the run began, as names of files have it. */
  readonly start: string;
  readonly gzip: boolean;
  /** How many bytes of covered rows are enough for a commit. */
  readonly commitBytes: number;
};

/** A finished file without a visible name. */
export type Ended = {
  readonly part: string;
  /** The days of its window, as names of files have them. */
  readonly span: string | undefined;
  readonly rows: number;
};

type WindowPart = { readonly part: Part; readonly span: string | undefined };

/**
 * The rows of one stream that have no visible file yet. Each window has a part of its own, and rows that come after a
 * checkpoint begin another one, so a part is covered by a state either completely or not at all.
 */
export class WindowFiles {
  /** How many bytes of rows are covered and not committed. */
  covered = 0;
  readonly folder: string;
  readonly #form: FileForm;
  readonly #open = new Map<number, WindowPart>();
  /** Covered parts whose rows are in memory. Later rows of their windows join them. */
  readonly #small = new Map<number, WindowPart>();
  #ended: Ended[] = [];
  #hasFolder = false;

  constructor(folder: string, form: FileForm) {
    this.folder = folder;
    this.#form = form;
  }

  get isEmpty(): boolean {
    return this.#ended.length === 0 && this.#small.size === 0;
  }

  /** The paths of the files that `take` has ended. */
  get paths(): readonly string[] {
    return this.#ended.map(({ part }) => join(this.folder, part));
  }

  async append(lines: Lines, window: number, span: string | undefined): Promise<void> {
    if (lines.length === 0) return;
    const open = this.#open.get(window) ?? { part: await this.#newPart(), span };
    this.#open.set(window, open);
    let text = "";
    for (const line of lines) text += `${line}\n`;
    await open.part.append(text, lines.length);
  }

  /** A state covers the rows so far of the windows below a number, or of all. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, one] of this.#open) {
      if (window >= windows) continue;
      this.#open.delete(window);
      this.covered += one.part.length;
      const small = this.#small.get(window);
      if (one.part.text === undefined) await this.#end(one);
      else if (small === undefined) this.#small.set(window, one);
      else await small.part.append(one.part.text, one.part.rows);
    }
    const inMemory = [...this.#small.values()].reduce((sum, { part }) => sum + part.length, 0);
    if (inMemory >= MIN_WRITE_BYTES) await this.#endSmall();
  }

  /** Writes all that is covered to the disk. `discard` removes it until `forget` is called. */
  async take(): Promise<readonly Ended[]> {
    await this.#endSmall();
    this.covered = 0;
    if (this.#ended.length > 0) await syncFolder(this.folder);
    return this.#ended;
  }

  /** Moves the taken files into one hidden folder, whose name it returns. @param files their names there */
  async gather(files: readonly NamedPart[]): Promise<string> {
    const folder = newPartName("full");
    const hidden = join(this.folder, folder);
    this.#ended.push({ part: folder, span: undefined, rows: 0 });
    await this.#makeFolder();
    await mkdir(hidden, 0o700);
    for (const { part, name } of files) await rename(join(this.folder, part), join(hidden, name));
    await syncFolder(hidden);
    await syncFolder(this.folder);
    return folder;
  }

  /** A state names the taken files from now on. */
  forget(): void {
    this.#ended = [];
  }

  /** Removes all that no state names. */
  async discard(): Promise<void> {
    for (const { part } of [...this.#open.values(), ...this.#small.values()]) await part.discard();
    for (const path of this.paths) await rm(path, { recursive: true, force: true });
    this.forget();
  }

  async #makeFolder(): Promise<void> {
    if (!this.#hasFolder) await makeFolder(this.folder);
    this.#hasFolder = true;
  }

  async #newPart(): Promise<Part> {
    const { start, gzip, commitBytes } = this.#form;
    await this.#makeFolder();
    return new Part(join(this.folder, newPartName(start)), gzip, Math.min(MIN_WRITE_BYTES, commitBytes));
  }

  async #endSmall(): Promise<void> {
    for (const [window, one] of this.#small) {
      this.#small.delete(window);
      await this.#end(one);
    }
  }

  async #end({ part, span }: WindowPart): Promise<void> {
    this.#ended.push({ part: basename(part.path), span, rows: part.rows });
    await part.seal();
  }
}
