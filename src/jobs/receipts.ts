import { constants, type FileHandle, mkdir, open, readFile, realpath, stat } from "node:fs/promises";
import { platform } from "node:os";
import { basename, dirname, join } from "node:path";
import { ConfigError, TransientError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf, tryParseJson } from "../base/json.ts";
import { JOB_SETTINGS, type JobSetting } from "../catalog/streams.ts";
import { Lock, type LockRuntime } from "../output/files/lock.ts";
import { codeOf, reasonOf } from "../output/files/reason.ts";
import { replaceFile } from "../output/files/replace.ts";
import type { Changes } from "./book.ts";
import type { Salt } from "./identity.ts";
import { checkFormat, NotOurs, parseChanges, toFields } from "./state.ts";

const FORMAT = 3;
const LINE_BREAK = 10;
/** Appends to an existing file. */
const APPEND = constants.O_RDWR | constants.O_APPEND;
/** A check compares this many bytes at the end of the file. */
const TAIL = 4_096;

export type Salts = ReadonlyMap<JobSetting, Salt>;

/** A line of the file: changes of one setting. */
export type Line = readonly [setting: JobSetting, changes: Partial<Changes>];

/**
 * The file of all purchases, for platforms that lose a state: a header, then one change per line. A submission is on the
 * disk before its request, and the outcome before the next step. The file contains digests, never items.
 */
export class Receipts {
  readonly #path: string;
  readonly #salts: Salts;
  readonly #lock: Lock | undefined;
  #file: FileHandle | undefined;
  /** The number of bytes up to the last line break, and the bytes after it. */
  #whole = 0;
  #torn: Buffer = Buffer.alloc(0);
  /** The file after the last write of this run: the number of its hard links, its size and its last bytes. */
  #links = 1;
  #size = 0;
  #last: Uint8Array = Buffer.alloc(0);
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, salts: Salts, lock?: Lock) {
    this.#path = path;
    this.#salts = salts;
    this.#lock = lock;
  }

  /** Opens the receipts, and locks the file if there is a `runtime`. @throws ConfigError, TransientError for another run's lock */
  static async open(given: string, salts: Salts, runtime?: LockRuntime): Promise<Receipts> {
    if (runtime === undefined) return new Receipts(given, salts);
    const path = await attempt(given, async () => {
      await mkdir(dirname(given), { recursive: true, mode: 0o700 });
      return await resolved(given);
    });
    return new Receipts(path, salts, await Lock.acquire(path, runtime));
  }

  /** Yields the changes up to the last line break; none without a file. @throws ConfigError at a damaged line */
  async *read(): AsyncGenerator<Line> {
    const path = this.#path;
    const bytes = await attempt(path, async () => ((await isThere(path)) ? await readFile(path) : undefined));
    if (bytes === undefined) return;
    this.#whole = bytes.lastIndexOf(LINE_BREAK) + 1;
    this.#torn = bytes.subarray(this.#whole);
    let header: JsonObject | undefined;
    for (const [nth, line] of bytes.toString("utf8", 0, this.#whole).split("\n").slice(0, -1).entries()) {
      try {
        const fields = tryParseJson(line);
        if (!isObject(fields)) throw new NotOurs("it is not a JSON object");
        // A file that a user joined from several files has several headers.
        if (header === undefined || "receipts" in fields) header = parseHeader(fields);
        else yield this.#parseLine(fields, header);
      } catch (error) {
        if (!(error instanceof NotOurs)) throw error;
        const why = `line ${nth + 1} was not written by this program: ${error.message}. The file knows what was paid for`;
        throw unusable(path, `${why}. Restore it, or move it away to continue with the state alone`);
      }
    }
    if (header !== undefined) return;
    const wayOut =
      "Restore the file. If the file is new, remove it: a run makes its own. In a container, mount the folder";
    throw unusable(path, `it has no complete line. ${wayOut}, not the file alone`);
  }

  /**
   * Replaces the file by a rename. If that is impossible, because the file is a mount, later changes are appended.
   * @returns whether the file was replaced
   * @throws TransientError if another run wrote to the file since it was read; the lines of the other run are kept
   */
  async begin(known: Iterable<Line>): Promise<boolean> {
    return await attempt(this.#path, async () => {
      const text = `${headerOf(this.#salts)}${textOf(known)}`;
      const before = await open(this.#path, "r").catch(() => undefined);
      try {
        const isReplaced = await replaceFile(this.#path, text).then(
          () => true,
          () => false,
        );
        this.#file = await open(this.#path, APPEND);
        if (isReplaced && before !== undefined) await this.#keepNewLines(before, this.#file);
        if (isReplaced) this.#noteWritten(text);
        else this.#size = await this.#cutTornLine(this.#file);
        this.#links = (await this.#file.stat()).nlink;
        return isReplaced;
      } finally {
        await before?.close();
      }
    });
  }

  /** @throws TransientError if another run has the receipts or writes to them */
  async check(): Promise<void> {
    await this.#lock?.check();
    await this.#writing;
    if (!(await attempt(this.#path, () => this.#isUnchanged()))) throw shared(this.#path);
  }

  /** Writes changes to the disk. After a failed write all writes fail, because a file with a gap proves nothing. */
  write(setting: JobSetting, changes: Changes): Promise<void> {
    const [text, file] = [textOf([[setting, changes]]), this.#file];
    if (text === "" || file === undefined) return this.#writing;
    this.#writing = this.#writing.then(() => attempt(this.#path, () => this.#append(file, text)));
    this.#writing.catch(() => undefined);
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file?.close();
    await this.#lock?.release();
  }

  #parseLine(fields: JsonObject, header: JsonObject): Line {
    const setting = JOB_SETTINGS.find((one) => one === fields["for"]);
    if (setting === undefined) throw new NotOurs('its "for" is no setting');
    const { [setting]: id } = objectOf(header["salt"]);
    if (id !== this.#salts.get(setting)?.id) throw otherSalt(`The receipts "${this.#path}"`, this.#path);
    return [setting, parseChanges(fields)];
  }

  async #append(file: FileHandle, text: string): Promise<void> {
    await file.appendFile(text);
    await file.datasync();
    this.#noteWritten(text);
  }

  #noteWritten(text: string): void {
    this.#size += Buffer.byteLength(text);
    // The first character of the slice may be a half of a surrogate pair.
    this.#last = Buffer.from(text.slice(-TAIL - 1)).subarray(-TAIL);
  }

  /** Adds lines that another run wrote to the old file, by another mount. @throws TransientError if there are such lines */
  async #keepNewLines(before: FileHandle, file: FileHandle): Promise<void> {
    const { end } = await endOf(before, this.#whole);
    if (end.equals(this.#torn)) return;
    await file.appendFile(end.subarray(0, end.lastIndexOf(LINE_BREAK) + 1));
    await file.datasync();
    throw shared(this.#path);
  }

  /** Removes an incomplete last line of a crash. @returns the size in bytes @throws TransientError if another run wrote */
  async #cutTornLine(file: FileHandle): Promise<number> {
    const { size, nlink, end } = await endOf(file, this.#whole);
    if (nlink === 0 || size < this.#whole || end.includes(LINE_BREAK)) throw shared(this.#path);
    if (end.length > 0) await file.truncate(this.#whole);
    return this.#whole;
  }

  /** Whether only this run wrote to the file. A run on another mount or machine may not see the lock of this run. */
  async #isUnchanged(): Promise<boolean> {
    const file = await open(this.#path, "r");
    try {
      const { size, nlink, end } = await endOf(file, this.#size - this.#last.length);
      return size === this.#size && nlink === this.#links && end.equals(this.#last);
    } finally {
      await file.close();
    }
  }
}

/** @param what has digests of another salt @param file the file to move away; undefined: the way out is to reset the stream */
export const otherSalt = (what: string, file?: string): ConfigError =>
  new ConfigError(
    `${what} cannot be used: its purchases are from another address or another hash_salt. Nothing is bought, because everything ` +
      "would be bought again. Use the old address and the old hash_salt. If this is another service, " +
      (file === undefined
        ? "reset the stream"
        : `move "${file}" away, or name another file in receipts_file`),
  );

const headerOf = (salts: Salts): string => {
  const salt = Object.fromEntries([...salts].map(([setting, { id }]) => [setting, id]));
  return `${JSON.stringify({ receipts: FORMAT, salt })}\n`;
};

function parseHeader(fields: JsonObject): JsonObject {
  checkFormat(fields["receipts"], FORMAT, "receipts");
  if (!isObject(fields["salt"])) throw new NotOurs('it has no "salt"');
  return fields;
}

/** The lines of all settings that have changes. */
const textOf = (lines: Iterable<Line>): string =>
  [...lines]
    .map(([setting, changes]) => ({ for: setting, ...toFields(changes) }))
    .filter((fields) => Object.keys(fields).length > 1)
    .map((fields) => `${JSON.stringify(fields)}\n`)
    .join("");

/** The size of a file, the number of its hard links, and its bytes from an offset on. */
async function endOf(file: FileHandle, from: number) {
  const { size, nlink } = await file.stat();
  const end = Buffer.alloc(Math.max(0, size - from));
  await file.read(end, 0, end.length, from);
  return { size, nlink, end };
}

/** The path without links, also of a file that does not exist yet. */
const resolved = (path: string): Promise<string> =>
  realpath(path).catch(async () => join(await realpath(dirname(path)), basename(path)));

/** Whether a file exists. @throws ConfigError if it is not a regular file, has a second name, or is writable for everyone */
async function isThere(path: string): Promise<boolean> {
  const stats = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (stats === undefined) return false;
  const { mode, nlink } = stats;
  // If everyone may write to the folder, the mode of the file protects nothing. Volumes without modes look like this.
  const isShared = ((await stat(dirname(path))).mode & 0o1002) === 0o002;
  const isOpen = platform() !== "win32" && (mode & 0o002) !== 0 && !isShared;
  const why =
    (!stats.isFile() && "it is not a regular file. Name a file in receipts_file") ||
    (nlink > 1 && "it has a second name (a hard link), and runs would not see each other. Remove one name") ||
    (isOpen && "everyone may write to it. If it is yours, run chmod 600 on it");
  if (why !== false) throw unusable(path, why);
  return true;
}

const shared = (path: string): TransientError =>
  new TransientError(
    `Cannot continue with the receipts "${path}": another run writes to the same file. Give each run its own file, or mount ` +
      "the folder of the file, because the lock is in the folder",
  );

const unusable = (path: string, why: string, cause?: unknown): ConfigError =>
  new ConfigError(`Cannot use the receipts "${path}": ${why}`, { cause });

async function attempt<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof ConfigError || cause instanceof TransientError) throw cause;
    const why = `${reasonOf(cause)}. Receipts prevent that an item is bought twice`;
    throw unusable(path, `${why}. Make the file writable, or name another file in receipts_file`, cause);
  }
}
