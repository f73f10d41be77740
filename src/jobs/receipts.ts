import { readSync } from "node:fs";
import { type FileHandle, mkdir, open, readlink, realpath, stat } from "node:fs/promises";
import { platform } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError } from "../base/errors.ts";
import { isObject, type JsonObject, objectOf, tryParseJson } from "../base/json.ts";
import type { JobSetting } from "../catalog/streams.ts";
import { Lock, type LockRuntime } from "../output/files/lock.ts";
import { codeOf, reasonOf } from "../output/files/reason.ts";
import { replaceFile } from "../output/files/replace.ts";
import type { Book } from "./book.ts";
import { type Digesting, isSameDigesting, newDigests } from "./identity.ts";
import type { Delta, Handle } from "./lattice.ts";
import { OlderReceipts } from "./older.ts";
import {
  digestsIn,
  isAmount,
  isSetting,
  listOf,
  moneyIn,
  NONE,
  NotOurs,
  parseEntry,
  parsePacked,
  short,
  toCount,
  toEntry,
} from "./parse.ts";

const FORMAT = 2;
/** Bytes above which the file is compacted when it is opened, and then again whenever it has doubled. */
const COMPACTED_ABOVE = 64 * 1024 * 1024;
const COMPACT_AT = 2;
const PIECE = 1024 * 1024;
const LINE_BREAK = 10;

export type Books = ReadonlyMap<JobSetting, Book>;

/**
 * The file that remembers what was bought when a platform forgets its state: a header, then one change a line. A change is
 * on the disk before the request, and its outcome before anything else happens. Holds digests, never items.
 */
export class Receipts {
  readonly digests: Digesting;
  /** The addresses of the services, by setting, that the receipts are about. */
  readonly services: Map<string, string>;
  readonly #path: string;
  #format: number;
  readonly #lock: Lock | undefined;
  #file: FileHandle;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, lock: Lock | undefined, file: FileHandle, header: Header) {
    this.#path = path;
    this.#lock = lock;
    this.#file = file;
    this.#format = header.format;
    this.digests = header.digests;
    this.services = header.services;
  }

  /**
   * Opens the receipts for this run alone, and begins them if there are none. Throws TransientError while another run has
   * them, ConfigError for a file that cannot be read or written.
   * @param salt of the state, for receipts that begin
   * @param services the addresses that they are about then; those of format 1 did not say
   */
  static async open(
    given: string,
    runtime: LockRuntime,
    notify: (text: string) => void,
    salt: string | undefined,
    services: ReadonlyMap<string, string> = new Map(),
  ): Promise<Receipts> {
    const path = await attempt(given, async () => {
      await mkdir(dirname(given), { recursive: true, mode: 0o700 });
      return await resolved(given);
    });
    const lock = await Lock.acquire(path, runtime, notify);
    try {
      return await attempt(path, async () => {
        if (!(await isThere(path))) await replaceFile(path, headerOf(newDigests(salt), services));
        const receipts = await Receipts.#opened(path, "a+", lock);
        if (receipts.#format === FORMAT) return receipts;
        for (const [setting, service] of services) receipts.services.set(setting, service);
        notify(
          `The receipts "${path}" did not name a service. From now on they are about the one of this config.`,
        );
        return receipts;
      });
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Opens receipts to read them, without a lock; undefined if there are none. */
  static async look(path: string): Promise<Receipts | undefined> {
    return await attempt(path, async () =>
      (await isThere(path)) ? await Receipts.#opened(path, "r") : undefined,
    );
  }

  static async #opened(path: string, flags: string, lock?: Lock): Promise<Receipts> {
    const file = await open(path, flags, 0o600);
    try {
      return new Receipts(path, lock, file, await headerIn(path, file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Whether there are receipts, or may be. */
  static async exist(path: string): Promise<boolean> {
    return await isThere(path).catch((error: unknown) => codeOf(error) !== "ENOTDIR");
  }

  /**
   * Tells the books what is known. With a lock it also mends the file: what a crash tore behind the last line break goes,
   * a large file is compacted, an older format is written anew. Throws ConfigError for receipts that are damaged; what
   * stands before the damage is told.
   */
  async read(books: Books, compactedAbove: number = COMPACTED_ABOVE): Promise<void> {
    await attempt(this.#path, async () => {
      let [size, compactedTo] = [0, 0];
      const older = new OlderReceipts();
      for await (const lines of linesOf(this.#file))
        for (const { text, place, end } of lines) {
          const { fields, news } = this.#understood(text, place, older);
          if (news !== null) books.get(news.setting)?.add(news.delta, place);
          for (const [setting, service] of servicesIn(fields)) this.services.set(setting, service);
          if (isAmount(fields["compacted"])) compactedTo = fields["compacted"];
          size = end;
        }
      if (this.#lock === undefined) return;
      const isLarge = size > Math.max(compactedAbove, COMPACT_AT * compactedTo);
      if (this.#format === FORMAT && !isLarge) return await this.#file.truncate(size);
      await replaceFile(this.#path, this.#compacted(books));
      await this.#file.close();
      this.#file = await open(this.#path, "a+", 0o600);
      this.#format = FORMAT;
    });
  }

  /** The handle of an item in the line at a place; null if it is not there. */
  handleAt(place: number, key: string): Handle | null {
    let line = Buffer.alloc(0);
    while (!line.includes(LINE_BREAK)) {
      const piece = Buffer.alloc(4096);
      const length = readSync(this.#file.fd, piece, 0, piece.length, place - 1 + line.length);
      if (length === 0) return null;
      line = Buffer.concat([line, piece.subarray(0, length)]);
    }
    const text = line.toString("utf8", 0, line.indexOf(LINE_BREAK));
    const { items = [] } = this.#understood(text, place, new OlderReceipts()).news?.delta ?? {};
    return items.find(([of]) => of === key)?.[1].handle ?? null;
  }

  /** Throws TransientError if another run has taken the receipts. */
  async check(): Promise<void> {
    await this.#lock?.check();
  }

  /** Writes changes. Returns when they are on the disk. */
  async write(setting: JobSetting, deltas: readonly Delta[]): Promise<void> {
    if (deltas.length > 0) await this.#append(deltas, (delta) => this.#line(setting, delta));
  }

  /** The receipts are about these services from now on. */
  async bind(services: ReadonlyMap<string, string>): Promise<void> {
    for (const [setting, service] of services) this.services.set(setting, service);
    if (services.size > 0)
      await this.#append([{ service: Object.fromEntries(services) }], (line) => `${JSON.stringify(line)}\n`);
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close();
    await this.#lock?.release();
  }

  /** One write after the other. What fails once fails for good: a file with a hole in it proves nothing. */
  #append<Part>(parts: readonly Part[], toLine: (part: Part) => string): Promise<void> {
    this.#writing = this.#writing.then(() =>
      attempt(this.#path, async () => {
        for (const part of parts) await this.#file.appendFile(toLine(part));
        await this.#file.datasync();
      }),
    );
    this.#writing.catch(() => undefined);
    return this.#writing;
  }

  /** Omits what is empty, and how keys were made if it is how the header says. */
  #line(setting: JobSetting, { digests, items = [], ...lists }: Delta): string {
    const made = isSameDigesting(digests, this.digests) ? {} : digests;
    return `${JSON.stringify({ for: setting, ...made, ...short({ items: items.map(toEntry), ...lists }) })}\n`;
  }

  /** A line, and what it says of purchases. Throws ConfigError for what is none of ours. */
  #understood(text: string, place: number, older: OlderReceipts): Understood {
    const fields = tryParseJson(text);
    try {
      if (!isObject(fields)) throw new NotOurs("it is no JSON object");
      const news = newsIn(this.#format === FORMAT ? fields : older.upgrade(fields), this.digests);
      return { fields, news };
    } catch (error) {
      if (!(error instanceof NotOurs)) throw error;
      // Of format 1 a line that is none of ours is one that a crash tore: its request never left.
      if (this.#format !== FORMAT) return { fields: objectOf(fields), news: null };
      throw damaged(
        this.#path,
        `what stands at byte ${place - 1} is not what this connector writes: ${error.message}`,
      );
    }
  }

  /** The file anew: answers as their lines have them, all else as the books have it. The books learn the new places. */
  async *#compacted(books: Books): AsyncGenerator<string> {
    let bytes = 0;
    const counted = (text: string): string => {
      bytes += Buffer.byteLength(text);
      return text;
    };
    yield counted(headerOf(this.digests, this.services));
    for (const [setting, book] of books)
      for (const delta of book.toReceipts()) yield counted(this.#line(setting, delta));
    const older = new OlderReceipts();
    for await (const lines of linesOf(this.#file)) {
      let piece = "";
      for (const { text, place } of lines) {
        const { news } = this.#understood(text, place, older);
        for (const [key, item] of news?.delta.items ?? []) {
          if (news === null || books.get(news.setting)?.move(key, place, bytes + 1) !== true) continue;
          const { digests } = news.delta;
          piece += counted(this.#line(news.setting, { digests, items: [[key, { ...item, subs: {} }]] }));
        }
      }
      yield piece;
    }
    yield `${JSON.stringify({ compacted: bytes })}\n`;
  }
}

type Header = Pick<Receipts, "digests" | "services"> & { readonly format: number };

type Understood = {
  readonly fields: JsonObject;
  /** What was bought; null: nothing. */
  readonly news: { readonly setting: JobSetting; readonly delta: Delta } | null;
};

const headerOf = ({ salt, normalization }: Digesting, services: ReadonlyMap<string, string>): string =>
  `${JSON.stringify({ receipts: FORMAT, service: Object.fromEntries(services), salt, normalization })}\n`;

async function headerIn(path: string, file: FileHandle): Promise<Header> {
  for await (const [first = { text: "" }] of linesOf(file)) {
    const fields: JsonObject = { normalization: 1, ...objectOf(tryParseJson(first.text)) };
    const format = toCount(fields["receipts"]);
    if (format > FORMAT) throw damaged(path, "a newer version of this program wrote it");
    if (format === 0) break;
    try {
      return { format, digests: digestsIn(fields), services: new Map(servicesIn(fields)) };
    } catch (error) {
      throw error instanceof NotOurs ? damaged(path, error.message) : error;
    }
  }
  throw damaged(path, "its first line is not what this connector writes");
}

/** What a line says of purchases. What it lacks is empty. Throws NotOurs. */
function newsIn(fields: JsonObject, header: Digesting): Understood["news"] {
  const { for: setting, salt, normalization, items = NONE, days = NONE } = fields;
  if (setting === undefined) return null;
  if (!isSetting(setting)) throw new NotOurs('its "for" is no setting');
  const isAsHeader = salt === undefined && normalization === undefined;
  const delta = {
    digests: isAsHeader ? header : digestsIn({ ...header, ...fields }),
    items: listOf(items, "items", parseEntry),
    days: listOf(days, "days", parsePacked),
    ...moneyIn(fields, NONE),
  };
  return { setting, delta };
}

const servicesIn = ({ service }: JsonObject): [string, string][] =>
  Object.entries(objectOf(service)).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );

/** `place`: the byte at which it begins plus 1. `end`: the byte behind its line break. */
type Line = { readonly text: string; readonly place: number; readonly end: number };

/** The lines of a file up to its last line break, in pieces. A piece has to be read before the next one comes. */
async function* linesOf(file: FileHandle): AsyncGenerator<Iterable<Line>> {
  let bytes = Buffer.alloc(PIECE);
  for (let [start, held] = [0, 0]; ; ) {
    const { bytesRead } = await file.read(bytes, held, bytes.length - held, start + held);
    if (bytesRead === 0) return;
    held += bytesRead;
    const end = bytes.lastIndexOf(LINE_BREAK, held - 1) + 1;
    if (end > 0) yield linesIn(bytes.subarray(0, end), start);
    bytes.copyWithin(0, end, held);
    [start, held] = [start + end, held - end];
    if (held === bytes.length) bytes = Buffer.concat([bytes], 2 * held);
  }
}

function* linesIn(bytes: Buffer, start: number): Generator<Line> {
  for (let from = 0; from < bytes.length; ) {
    const to = bytes.indexOf(LINE_BREAK, from);
    yield { text: bytes.toString("utf8", from, to), place: start + from + 1, end: start + to + 1 };
    from = to + 1;
  }
}

/** The file that a path leads to, through links, whether it is there or not. */
const resolved = (path: string): Promise<string> =>
  realpath(path).catch(async (error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
    const folder = await realpath(dirname(path));
    const target = await readlink(path).catch(() => undefined);
    return target === undefined ? join(folder, basename(path)) : await resolved(resolve(folder, target));
  });

/** Whether there is a file. Throws ConfigError for one that is not regular, has another name, or that anyone may write. */
async function isThere(path: string): Promise<boolean> {
  const stats = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (stats === undefined) return false;
  const { mode, nlink } = stats;
  const isOpen = platform() !== "win32" && (mode & 0o002) !== 0;
  const why =
    (!stats.isFile() && "it is no regular file. Name one in receipts_file") ||
    (nlink > 1 &&
      "it has another name too (a hard link), under which another run would not see this one. Remove one") ||
    (isOpen && "anyone may write to it. Look whether it is yours, then run chmod 600 on it");
  if (why !== false) throw new ConfigError(`Cannot use the receipts "${path}": ${why}`);
  return true;
}

const damaged = (path: string, why: string): ConfigError =>
  new ConfigError(
    `Cannot use the receipts "${path}": ${why}. It knows what was paid for: ` +
      "restore it, or move it away to go on by the state alone",
  );

async function attempt<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(
      `Cannot use the receipts "${path}": ${reasonOf(cause)}. They keep anything from being bought twice: make the file ` +
        "writable, or name another in receipts_file",
      { cause },
    );
  }
}
