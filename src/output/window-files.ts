import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Lines } from "../sync/event.ts";
import { Part, type PartContent, WORTH_WRITING } from "./files/part.ts";
import { makeFolder, syncFolder } from "./files/replace.ts";
import { newPartName } from "./folder-state.ts";

/** What all files of a run have in common. */
export type FileForm = {
  /** When the run began, as it stands in their names. */
  readonly start: string;
  readonly gzip: boolean;
  /** How many bytes of small windows are enough for a file. */
  readonly cutBytes: number;
};

/** What is finished and has no name yet: a file, or a folder of files with names of their own. */
export type Taken = {
  readonly part: string;
  readonly files: readonly (PartContent & { readonly inside?: string })[];
};

/**
 * The rows of one stream that have no name yet. Each window has a part of its own, so that no part ever holds rows of
 * which some are covered by a state and some are not; the rows of a small window wait in memory until they are covered.
 */
export class WindowFiles {
  /** How many bytes of rows are covered and not taken. */
  covered = 0;
  readonly folder: string;
  readonly #form: FileForm;
  readonly #open = new Map<number, Part>();
  /** Takes the rows of small windows once they are covered: that of the first of them. */
  #shared: Part | undefined;
  /** What is covered and on the disk; no files: it is not finished. */
  #ended: Taken[] = [];
  #hasFolder = false;

  constructor(folder: string, form: FileForm) {
    this.folder = folder;
    this.#form = form;
  }

  get isEmpty(): boolean {
    return this.#ended.length === 0 && this.#shared === undefined;
  }

  async append(lines: Lines, window: number): Promise<void> {
    if (lines.length === 0) return;
    const part = this.#open.get(window) ?? (await this.#newPart());
    this.#open.set(window, part);
    let text = "";
    for (const line of lines) text += `${line}\n`;
    await part.append(text, lines.length);
  }

  /** Says that the windows below a number, or all, are covered by a state. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, part] of this.#open) {
      if (window >= windows) continue;
      this.#open.delete(window);
      this.covered += part.length;
      if (part.text === undefined) await this.#end(part);
      else if (this.#shared === undefined) this.#shared = part;
      else await this.#shared.append(part.text, part.rows);
      if (this.#shared !== undefined && this.#shared.length >= this.#form.cutBytes) await this.#endShared();
    }
  }

  /**
   * Puts all that is covered on the disk, and says under which names; it is removed by `discard` until it is forgotten.
   * @param nameOf moves the parts into one folder, which is still hidden too, and gives each its name there
   */
  async take(nameOf?: () => string): Promise<readonly Taken[]> {
    await this.#endShared();
    this.covered = 0;
    if (nameOf !== undefined) await this.#gather(nameOf);
    if (this.#ended.length > 0) await syncFolder(this.folder);
    return this.#ended;
  }

  /** What was taken belongs to a state from now on. */
  forget(): void {
    this.#ended = [];
  }

  /** Removes what was taken. */
  async drop(): Promise<void> {
    for (const { part } of this.#ended) await rm(join(this.folder, part), { recursive: true, force: true });
    this.forget();
  }

  /** Removes all that no state names. */
  async discard(): Promise<void> {
    for (const part of this.#open.values()) await part.discard();
    await this.#shared?.discard();
    await this.drop();
  }

  async #gather(nameOf: () => string): Promise<void> {
    const parts = [...this.#ended];
    const part = newPartName("full");
    const hidden = join(this.folder, part);
    this.#ended.push({ part, files: [] });
    await this.#makeFolder();
    await mkdir(hidden, 0o700);
    const named = parts.map((from) => ({ from, inside: nameOf() }));
    for (const { from, inside } of named) await rename(join(this.folder, from.part), join(hidden, inside));
    await syncFolder(hidden);
    const files = named.flatMap(({ from, inside }) => from.files.map((file) => ({ ...file, inside })));
    this.#ended = [{ part, files }];
  }

  async #makeFolder(): Promise<void> {
    if (!this.#hasFolder) await makeFolder(this.folder);
    this.#hasFolder = true;
  }

  async #newPart(): Promise<Part> {
    const { start, gzip, cutBytes } = this.#form;
    await this.#makeFolder();
    return new Part(join(this.folder, newPartName(start)), gzip, Math.min(WORTH_WRITING, cutBytes));
  }

  async #endShared(): Promise<void> {
    const shared = this.#shared;
    this.#shared = undefined;
    if (shared !== undefined) await this.#end(shared);
  }

  async #end(part: Part): Promise<void> {
    const name = basename(part.path);
    const at = this.#ended.push({ part: name, files: [] }) - 1;
    this.#ended[at] = { part: name, files: [await part.seal()] };
  }
}
