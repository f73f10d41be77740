import { randomBytes } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Part } from "../files/part.ts";
import { codeOf } from "../files/reason.ts";
import { syncFolder } from "../files/replace.ts";
import type { Lines, StreamState } from "../streams/event.ts";
import { partName } from "./folder-state.ts";

/**
 * The parts of one stream that have no name yet. Each is a sequence of whole windows, of which only the last may not be
 * covered by a state: a window begins a new part unless it finds one of which all is covered.
 */
export class StreamParts {
  readonly name: string;
  /** Where the stream's files lie. */
  readonly folder: string;
  /** The state of the last checkpoint of this run. */
  state: StreamState | undefined;
  /** Whether what is there is to be committed as soon as no part is mixed: until then each window gets its own part. */
  isCutting = false;
  readonly #start: string;
  readonly #gzip: boolean;
  #parts: Part[] = [];
  readonly #byWindow = new Map<number, Part>();
  /** Parts of a whole that were sealed before its end. */
  readonly #sealed: Part[] = [];
  #hidden: string | undefined;

  constructor(name: string, folder: string, start: string, gzip: boolean) {
    this.name = name;
    this.folder = folder;
    this.#start = start;
    this.#gzip = gzip;
  }

  /** How many bytes are covered and not sealed. */
  get covered(): number {
    return this.#parts.reduce((sum, part) => sum + part.covered, 0);
  }

  get isEmpty(): boolean {
    return this.#parts.length === 0 && this.#sealed.length === 0;
  }

  /** Whether a part holds both what is covered and what is not. */
  get isMixed(): boolean {
    return this.#parts.some((part) => part.covered > 0 && !part.isCovered);
  }

  async append(lines: Lines, window: number): Promise<void> {
    if (lines.length === 0) return;
    const part = this.#byWindow.get(window) ?? (await this.#partFor(window));
    await part.append(lines);
  }

  /** Says that the windows below a number, or all, are covered by a state. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, part] of [...this.#byWindow]) {
      if (window >= windows) continue;
      await part.cover();
      this.#byWindow.delete(window);
    }
  }

  /** Puts what is covered on the disk and hands it over. What is not covered is cut off the parts that hold both. */
  async take(): Promise<readonly Part[]> {
    const taken = this.#parts.filter(({ covered }) => covered > 0);
    for (const part of taken) await part.seal();
    if (taken.length > 0) await syncFolder(this.folder);
    this.#parts = this.#parts.filter((part) => !taken.includes(part));
    return taken;
  }

  /** Keeps what is covered for the end of a whole, so that no file of it grows beyond a cut. */
  async setAside(): Promise<void> {
    this.#sealed.push(...(await this.take()));
  }

  /**
   * Moves all that is covered into a folder that is still hidden, and hands it over.
   * @param nameOf gives the next file of the folder its name
   */
  async gather(nameOf: () => string): Promise<{ readonly hidden: string; readonly parts: readonly Part[] }> {
    await this.setAside();
    const hidden = join(this.folder, partName("full", randomToken()));
    this.#hidden = hidden;
    await mkdirSynced(this.folder);
    await mkdir(hidden);
    for (const part of this.#sealed) await rename(part.path, join(hidden, nameOf()));
    await syncFolder(hidden);
    await syncFolder(this.folder);
    this.#hidden = undefined;
    return { hidden, parts: this.#sealed.splice(0) };
  }

  /** Removes all parts that no state names. */
  async discard(): Promise<void> {
    for (const part of [...this.#parts.splice(0), ...this.#sealed.splice(0)]) await part.discard();
    if (this.#hidden !== undefined) await rm(this.#hidden, { recursive: true, force: true });
    this.#hidden = undefined;
  }

  async #partFor(window: number): Promise<Part> {
    const free = this.isCutting ? undefined : this.#parts.find(({ isCovered }) => isCovered);
    const part = free ?? (await this.#create());
    this.#byWindow.set(window, part);
    return part;
  }

  async #create(): Promise<Part> {
    await mkdirSynced(this.folder);
    const part = await Part.create(join(this.folder, partName(this.#start, randomToken())), this.#gzip);
    this.#parts.push(part);
    return part;
  }
}

const randomToken = (): string => randomBytes(8).toString("hex");

/** Makes a folder if it is not there, so that it survives a crash. */
async function mkdirSynced(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    if (codeOf(error) === "EEXIST") return;
    throw error;
  }
  await syncFolder(dirname(folder));
}
