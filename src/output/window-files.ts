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
  /** Whether a state covers all of its rows; rows that come later begin another part. */
  isCovered: boolean;
};

/** The rows of one stream, in its folder, that have no visible file yet: parts, each of one window. */
export class WindowFiles {
  readonly folder: string;
  readonly #form: FileForm;
  #parts: WindowPart[] = [];
  #gathered: string | undefined;

  constructor(folder: string, form: FileForm) {
    this.folder = folder;
    this.#form = form;
  }

  /** How many bytes of rows are covered and not committed. */
  get covered(): number {
    return bytesOf(this.#covered);
  }

  async append(lines: Lines, window: number, span: string | undefined): Promise<void> {
    if (lines.length === 0) return;
    const open = this.#parts.find((one) => !one.isCovered && one.window === window);
    const { file } = open ?? this.#begin(window, span);
    let text = "";
    for (const line of lines) text += `${line}\n`;
    await file.append(text, lines.length);
  }

  /** A state covers the rows so far of the windows below a number, or of all. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const one of this.#parts.filter(({ isCovered, window }) => !isCovered && window < windows)) {
      const earlier = this.#inMemory.find(({ window }) => window === one.window);
      one.isCovered = true;
      if (earlier === undefined || !one.file.isInMemory) continue;
      await earlier.file.append(one.file.text, one.file.rows);
      this.#parts.splice(this.#parts.indexOf(one), 1);
    }
    const waiting = bytesOf(this.#inMemory);
    for (const { file } of this.#covered)
      if (!file.isInMemory || waiting >= MIN_WRITE_BYTES) await file.seal();
  }

  /** Writes all that is covered to the disk. `discard` removes it until `forget` is called. */
  async take(): Promise<readonly WindowPart[]> {
    const taken = this.#covered;
    for (const { file } of taken) await file.seal();
    if (taken.length > 0) await syncFolder(this.folder);
    return taken;
  }

  /** Moves taken files into one hidden folder, whose name it returns. @param files their names there */
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
    this.#parts = this.#parts.filter(({ isCovered }) => !isCovered);
    this.#gathered = undefined;
  }

  /** Removes all that no state names. */
  async discard(): Promise<void> {
    for (const { file } of this.#parts.splice(0)) await file.discard();
    if (this.#gathered !== undefined) await rm(this.#gathered, { recursive: true, force: true });
  }

  get #covered(): readonly WindowPart[] {
    return this.#parts.filter(({ isCovered }) => isCovered);
  }

  /** Covered rows that have no file yet. Later rows of their windows join them once they are covered. */
  get #inMemory(): readonly WindowPart[] {
    return this.#covered.filter(({ file }) => file.isInMemory);
  }

  #begin(window: number, span: string | undefined): WindowPart {
    const { start, gzip, commitBytes } = this.#form;
    const part = newPartName(start);
    const file = new Part(join(this.folder, part), gzip, Math.min(MIN_WRITE_BYTES, commitBytes));
    const begun = { part, window, span, file, isCovered: false };
    this.#parts.push(begun);
    return begun;
  }
}

const bytesOf = (parts: readonly WindowPart[]): number =>
  parts.reduce((sum, { file }) => sum + file.length, 0);
