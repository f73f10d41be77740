import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Lines } from "../sync/event.ts";
import { MIN_WRITE_BYTES, Part } from "./files/part.ts";
import { syncFolder } from "./files/replace.ts";
import { type FileForm, type NamedPart, newPartName } from "./folder-state.ts";

/** Rows of one window. `part`: the name of their file. `span`: the days of the window, as names of files have them. */
type WindowPart = {
  readonly part: string;
  readonly window: number;
  readonly span: string | undefined;
  readonly file: Part;
};

/**
 * The rows of one stream, in its folder, that have no visible file yet. Each window has a part of its own, and rows that come after a
 * checkpoint begin another one, so a part is covered by a state either completely or not at all.
 */
export class WindowFiles {
  /** How many bytes of rows are covered and not committed. */
  covered = 0;
  readonly folder: string;
  readonly #form: FileForm;
  readonly #open = new Map<number, WindowPart>();
  #covered: WindowPart[] = [];
  #gathered: string | undefined;

  constructor(folder: string, form: FileForm) {
    this.folder = folder;
    this.#form = form;
  }

  get isEmpty(): boolean {
    return this.#covered.length === 0;
  }

  async append(lines: Lines, window: number, span: string | undefined): Promise<void> {
    if (lines.length === 0) return;
    const one = this.#open.get(window) ?? this.#newPart(window, span);
    this.#open.set(window, one);
    let text = "";
    for (const line of lines) text += `${line}\n`;
    await one.file.append(text, lines.length);
  }

  /** A state covers the rows so far of the windows below a number, or of all. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, one] of this.#open) {
      if (window >= windows) continue;
      this.#open.delete(window);
      this.covered += one.file.length;
      const earlier = this.#inMemory.find((other) => other.window === window);
      if (earlier !== undefined && one.file.isInMemory)
        await earlier.file.append(one.file.text, one.file.rows);
      else this.#covered.push(one);
    }
    for (const { file } of this.#covered) if (!file.isInMemory) await file.seal();
    const bytes = this.#inMemory.reduce((sum, { file }) => sum + file.length, 0);
    if (bytes >= MIN_WRITE_BYTES) await this.#seal();
  }

  /** Writes all that is covered to the disk. `discard` removes it until `forget` is called. */
  async take(): Promise<readonly WindowPart[]> {
    await this.#seal();
    this.covered = 0;
    if (!this.isEmpty) await syncFolder(this.folder);
    return this.#covered;
  }

  /** Moves the taken files into one hidden folder, whose name it returns. @param files their names there */
  async gather(files: readonly NamedPart[]): Promise<string> {
    const folder = newPartName("full");
    const hidden = join(this.folder, folder);
    this.#gathered = hidden;
    await mkdir(hidden, 0o700);
    for (const { part, name } of files) await rename(join(this.folder, part), join(hidden, name));
    await syncFolder(hidden);
    await syncFolder(this.folder);
    return folder;
  }

  /** A state names the taken files from now on. */
  forget(): void {
    this.#covered = [];
    this.#gathered = undefined;
  }

  /** Removes all that no state names. */
  async discard(): Promise<void> {
    for (const { file } of [...this.#open.values(), ...this.#covered]) await file.discard();
    if (this.#gathered !== undefined) await rm(this.#gathered, { recursive: true, force: true });
    this.forget();
  }

  /** Covered rows that have no file yet. Later rows of their windows join them. */
  get #inMemory(): readonly WindowPart[] {
    return this.#covered.filter(({ file }) => file.isInMemory);
  }

  async #seal(): Promise<void> {
    for (const { file } of this.#covered) await file.seal();
  }

  #newPart(window: number, span: string | undefined): WindowPart {
    const { start, gzip, commitBytes } = this.#form;
    const part = newPartName(start);
    const file = new Part(join(this.folder, part), gzip, Math.min(MIN_WRITE_BYTES, commitBytes));
    return { part, window, span, file };
  }
}
