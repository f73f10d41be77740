import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { objectOf } from "../base/json.ts";
import { canRefresh } from "../catalog/streams.ts";
import { stateKey } from "../state/envelopes.ts";
import type { Event, Lines, StreamState } from "../sync/event.ts";
import { MIN_WRITE_BYTES, Part } from "./files/part.ts";
import { syncFolder } from "./files/replace.ts";
import { type FileForm, type NamedPart, newPartName } from "./folder-state.ts";
import { unknownRows } from "./known-rows.ts";

/** Rows of one window. `part`: the name of their file. `span`: the days of the window, as names of files have them. */
type WindowPart = {
  readonly part: string;
  readonly window: number;
  readonly span: string | undefined;
  readonly file: Part;
  /** Whether a state covers all of its rows; rows that come later begin another part. */
  isCovered: boolean;
};

/** The stream that is being read: its rows that have no visible file yet, in parts of one window each, and its state. */
export class StreamFiles {
  readonly name: string;
  /** Its name in the state. */
  readonly key: string;
  readonly folder: string;
  /** The state of the last checkpoint of this run. */
  state: StreamState | undefined;
  readonly #before: unknown;
  readonly #form: FileForm;
  /** The rows of a batch that the folder does not have; undefined: no batch was compared yet. */
  #unknown: ((lines: Lines) => Lines) | undefined;
  #parts: WindowPart[] = [];
  #gathered: string | undefined;

  /** @param root the folder of all streams */
  constructor(root: string, { stream, namespace, before }: Extract<Event, { kind: "open" }>, form: FileForm) {
    this.name = stream;
    this.key = stateKey(stream, namespace);
    this.folder = join(root, stream);
    this.#before = before;
    this.#form = form;
  }

  /** Whether its state is that of a full refresh that the operator asked for. */
  get isRefresh(): boolean {
    return (this.state?.["full_refresh"] ?? null) !== null;
  }

  /** Whether a run reads all of its rows: its state has no cursor, or is that of a full refresh. */
  get isFromStart(): boolean {
    if (this.state === undefined || !canRefresh(this.name)) return false;
    return this.isRefresh || !("discoveredAt" in this.state);
  }

  /** Whether its state only confirms a full refresh that an earlier run has delivered. */
  get isConfirmed(): boolean {
    const { full_refresh: delivered } = objectOf(this.#before);
    return this.isRefresh && this.covered === 0 && isDeepStrictEqual(delivered, this.state?.["full_refresh"]);
  }

  /** How many bytes of rows are covered and not committed. */
  get covered(): number {
    return bytesOf(this.#covered);
  }

  /** @param newest the number of the stream's newest file */
  async append(
    { lines, window = 0, span, isReread }: Extract<Event, { kind: "records" }>,
    newest: number,
  ): Promise<void> {
    if (isReread === true) this.#unknown ??= await unknownRows(this.folder, this.name, newest);
    const rows = isReread === true ? (this.#unknown?.(lines) ?? lines) : lines;
    if (rows.length === 0) return;
    const open = this.#parts.find((one) => !one.isCovered && one.window === window);
    const { file } = open ?? this.#begin(window, span);
    let text = "";
    for (const line of rows) text += `${line}\n`;
    await file.append(text, rows.length);
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
