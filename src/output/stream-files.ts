import { mkdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { objectOf } from "../base/json.ts";
import { canRefresh } from "../catalog/streams.ts";
import { splice } from "../protocol/language.ts";
import { stateKey } from "../state/envelopes.ts";
import type { EventOf, StreamState } from "../sync/event.ts";
import { MIN_WRITE_BYTES, Part } from "./files/part.ts";
import { syncFolder } from "./files/replace.ts";
import { type FileForm, type NamedPart, newPartName } from "./folder-state.ts";
import { type RowFilter, unknownRows } from "./known-rows.ts";

/** Rows of one window in a hidden file. `span`: the days of the window in names of files. */
type WindowRows = { readonly window: number; readonly span: string | undefined; readonly file: Part };

/** The stream that the run reads now: its state, and its rows in hidden files. */
export class StreamFiles {
  readonly name: string;
  /** The name of the stream in the state. */
  readonly key: string;
  readonly folder: string;
  /** The state of the last checkpoint of this run. */
  state: StreamState | undefined;
  readonly #before: unknown;
  readonly #form: FileForm;
  /** Returns the rows of a batch that the folder lacks; undefined before the first batch. */
  #unknown: RowFilter | undefined;
  /** Rows that no state covers, by window. */
  readonly #open = new Map<number, WindowRows>();
  /** Rows that a state covers. Later rows of the same window are in `#open` until the next state. */
  #covered: WindowRows[] = [];
  /** The hidden folder of covered rows. */
  #gathered: string | undefined;

  /** @param root the folder of all streams */
  constructor(root: string, { stream, namespace, before }: EventOf<"open">, form: FileForm) {
    this.name = stream;
    this.key = stateKey(stream, namespace);
    this.folder = join(root, stream);
    this.#before = before;
    this.#form = form;
  }

  /** Whether the state belongs to a full refresh. */
  get isRefresh(): boolean {
    return (this.state?.["full_refresh"] ?? null) !== null;
  }

  /** Whether the run reads all rows, because the state has no cursor or belongs to a full refresh. */
  get isFromStart(): boolean {
    if (this.state === undefined || !canRefresh(this.name)) return false;
    return this.isRefresh || !("discoveredAt" in this.state);
  }

  /** Whether the state only confirms a full refresh of an earlier run. */
  get isConfirmed(): boolean {
    const { full_refresh: delivered } = objectOf(this.#before);
    return this.isRefresh && this.covered === 0 && isDeepStrictEqual(delivered, this.state?.["full_refresh"]);
  }

  /** The bytes of rows that are covered and not committed. */
  get covered(): number {
    return bytesOf(this.#covered);
  }

  /** @param newest the number of the stream's newest file */
  async append({ lines, window = 0, span, why }: EventOf<"records">, newest: number): Promise<void> {
    if (why === "lookback") this.#unknown ??= await unknownRows(this.folder, this.name, newest);
    const rows = why === "lookback" ? (this.#unknown?.(lines) ?? lines) : lines;
    if (rows.length === 0) return;
    const { gzip, commitBytes } = this.#form;
    const path = join(this.folder, newPartName(this.#form));
    const begun = this.#open.get(window) ?? { window, span, file: new Part(path, gzip, commitBytes) };
    this.#open.set(window, begun);
    await begun.file.append(splice("", "\n", rows), rows.length);
  }

  /** Moves the rows of all windows with a lower number to the covered rows. */
  async cover(windows = Number.POSITIVE_INFINITY): Promise<void> {
    for (const [window, rows] of this.#open) {
      if (window >= windows) continue;
      this.#open.delete(window);
      this.#covered.push(rows);
      if (!rows.file.isInMemory) await rows.file.seal();
    }
    // A refresh covers many windows before its commit. Their rows would fill the memory.
    const small = this.#covered.filter(({ file }) => file.isInMemory);
    if (bytesOf(small) >= MIN_WRITE_BYTES) for (const { file } of small) await file.seal();
  }

  /** Writes all covered rows to the disk. Joins the rows of a window in memory. `discard` removes the files until `forget`. */
  async take(): Promise<readonly WindowRows[]> {
    const taken: WindowRows[] = [];
    for (const rows of this.#covered) {
      const { file, window } = rows;
      const earlier = taken.find((one) => one.window === window && one.file.isInMemory);
      if (earlier !== undefined && file.isInMemory) await earlier.file.append(file.text, file.rows);
      else taken.push(rows);
    }
    for (const { file } of taken) await file.seal();
    if (taken.length > 0) await syncFolder(this.folder);
    return taken;
  }

  /** Moves taken files into one hidden folder, and returns the name of the folder. @param files their names in the folder */
  async gather(files: readonly NamedPart[]): Promise<string> {
    this.#gathered = join(this.folder, newPartName());
    await mkdir(this.#gathered, 0o700);
    for (const { part, name } of files) await rename(join(this.folder, part), join(this.#gathered, name));
    await syncFolder(this.#gathered);
    await syncFolder(this.folder);
    return basename(this.#gathered);
  }

  /** Keeps the taken files, because a state names them now. */
  forget(): void {
    this.#covered = [];
    this.#gathered = undefined;
  }

  /** Removes all files that no state names. */
  async discard(): Promise<void> {
    for (const { file } of [...this.#open.values(), ...this.#covered]) await file.discard();
    if (this.#gathered !== undefined) await rm(this.#gathered, { recursive: true, force: true });
  }
}

const bytesOf = (all: readonly WindowRows[]): number => all.reduce((sum, { file }) => sum + file.length, 0);
