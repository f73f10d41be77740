import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { JobSetting } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { ConfigError } from "../errors.ts";
import { Lock, type LockRuntime } from "../files/lock.ts";
import { codeOf, reasonOf } from "../files/reason.ts";
import { replaceFile } from "../files/replace.ts";
import { isObject, type JsonObject } from "../json.ts";
import { isDigest, newDigests } from "./digest.ts";
import { NORMALIZATION } from "./items.ts";
import type { Job } from "./job.ts";
import { parseFields, toFields } from "./state.ts";
import { DAYS_KEPT } from "./store.ts";

const FORMAT = 1;
const DAY_MS = 86_400_000;
/** Bytes above which the file is compacted when it is opened, and then again whenever it has doubled. */
const COMPACTED_ABOVE = 64 * 1024 * 1024;
const GROWTH = 2;

/** One submission as the receipts know it. `sealed`: the response of a verification. */
export type Receipt = {
  readonly setting: JobSetting;
  readonly key: string;
  readonly job: Job;
  readonly sealed: string | null;
};

/** Where receipts are kept. `isNamed`: the config says so. Null: nowhere. */
export type ReceiptsPath = { readonly path: string; readonly isNamed: boolean } | null;

/** Says whether a submission (epoch ms) is news, so that what is known need not be held in memory. */
export type IsNews = (setting: JobSetting, key: string, at: number) => boolean;

/** Where the receipts of a config are, as a path. A service on this machine has none unless the config names them. */
export function receiptsPathOf(config: Config, environment: Environment): ReceiptsPath {
  const { receiptsFile, externalApi, baseUrl, apiKey } = config;
  if (receiptsFile === "") return null;
  if (receiptsFile !== null) return { path: receiptsFile, isNamed: true };
  const { url, key } =
    externalApi === null
      ? { url: baseUrl, key: apiKey }
      : { url: externalApi.apiUrl, key: externalApi.apiKey };
  if (LOOPBACK.test(url.hostname)) return null;
  const keyId = key.includes("_") ? key.slice(0, key.lastIndexOf("_")) : key;
  const digest = createHash("sha256").update(`${url.href}\n${keyId}`).digest("hex").slice(0, 16);
  const { XDG_STATE_HOME: folder = "" } = environment;
  const states = folder === "" ? join(environment["HOME"] ?? homedir(), ".local", "state") : folder;
  return { path: join(states, "source-contact-intelligence", `receipts-${digest}.jsonl`), isNamed: false };
}

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * The file that remembers what was bought when a platform forgets its state. One line leaves before each request and one
 * after its answer, each on the disk before anything else happens. Holds digests, never items.
 */
export class Receipts {
  readonly salt: string;
  /** The submissions that nothing else knows of, the oldest first. */
  readonly news: readonly Receipt[];
  readonly #path: string;
  readonly #lock: Lock;
  readonly #file: FileHandle;
  #writing: Promise<void> = Promise.resolve();

  private constructor(path: string, lock: Lock, file: FileHandle, salt: string, news: readonly Receipt[]) {
    this.#path = path;
    this.#lock = lock;
    this.#file = file;
    this.salt = salt;
    this.news = news;
  }

  /**
   * Opens the receipts for this run alone. Throws TransientError while another run has them, ConfigError for a file that
   * cannot be read or written.
   * @param salt of the state, for receipts that begin
   * @param compactedAbove bytes; fewer than usual only in tests
   */
  static async open(
    path: string,
    runtime: LockRuntime,
    notify: (text: string) => void,
    salt: string | undefined,
    isNews: IsNews,
    compactedAbove: number = COMPACTED_ABOVE,
  ): Promise<Receipts> {
    await attempt(path, () => mkdir(dirname(path), { recursive: true, mode: 0o700 }));
    const lock = await Lock.acquire(path, runtime, notify);
    try {
      const size = await attempt(path, () => sizeOf(path));
      if (size === undefined)
        await attempt(path, () => replaceFile(path, header(salt ?? newDigests().salt ?? "")));
      const content = await attempt(path, () => read(path, isNews));
      const isLarge = (size ?? 0) > Math.max(compactedAbove, GROWTH * content.compactedTo);
      if (isLarge) await attempt(path, () => replaceFile(path, compacted(path, content.salt)));
      const file = await attempt(path, () => open(path, "a", 0o600));
      const receipts = new Receipts(path, lock, file, content.salt, content.news);
      if (content.isTorn && !isLarge) await receipts.#append("\n");
      return receipts;
    } catch (error) {
      await lock.release();
      throw error;
    }
  }

  /** Whether there are receipts, or may be. */
  static async exist(path: string): Promise<boolean> {
    return await sizeOf(path).then(
      (size) => size !== undefined,
      (error: unknown) => codeOf(error) !== "ENOTDIR",
    );
  }

  /** Throws TransientError if another run has taken the receipts. */
  async check(): Promise<void> {
    await this.#lock.check();
  }

  /** Writes what is known of jobs now. Returns when that is on the disk. `sealed`: the response of a verification. */
  async write(
    setting: JobSetting,
    jobs: readonly (readonly [string, Job])[],
    sealed: string | null = null,
  ): Promise<void> {
    if (jobs.length === 0) return;
    await this.#append(jobs.map(([key, job]) => lineOf(setting, key, { ...toFields(job), sealed })).join(""));
  }

  /** The service did not take a submission. */
  async void(setting: JobSetting, key: string, at: number): Promise<void> {
    await this.#append(lineOf(setting, key, { at: new Date(at).toISOString(), step: "void" }));
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close();
    await this.#lock.release();
  }

  /** One write after the other. What fails once fails for good: a file with a hole in it proves nothing. */
  #append(text: string): Promise<void> {
    this.#writing = this.#writing.then(() =>
      attempt(this.#path, async () => {
        await this.#file.appendFile(text);
        await this.#file.datasync();
      }),
    );
    this.#writing.catch(() => undefined);
    return this.#writing;
  }
}

/** Reads receipts without a lock; undefined if there are none. */
export async function readReceipts(
  path: string,
  isNews: IsNews,
): Promise<Pick<Receipts, "salt" | "news"> | undefined> {
  return (await attempt(path, () => sizeOf(path))) === undefined
    ? undefined
    : await attempt(path, () => read(path, isNews));
}

const header = (salt: string): string => `${JSON.stringify({ receipts: FORMAT, salt })}\n`;

/** What is not said is as it usually is, so that lines stay short. */
function lineOf(setting: JobSetting, key: string, fields: JsonObject): string {
  const said = Object.entries(fields).filter(([, value]) => !isUsual(value));
  return `${JSON.stringify({ for: setting, item: key, normalization: NORMALIZATION, ...Object.fromEntries(said) })}\n`;
}

const isUsual = (value: unknown): boolean =>
  value === null || value === false || value === 0 || (Array.isArray(value) && value.length === 0);

type Content = {
  readonly salt: string;
  readonly news: readonly Receipt[];
  readonly isTorn: boolean;
  /** How many bytes were left when the file was last compacted. */
  readonly compactedTo: number;
};

/** A line that is no JSON is one that a crash tore: its request never left. */
async function read(path: string, isNews: IsNews): Promise<Content> {
  const submissions = new Map<string, JsonObject>();
  let salt: string | undefined;
  let compactedTo = 0;
  for await (const line of linesOf(path)) {
    const value = parse(line);
    if (!isObject(value)) continue;
    if (salt === undefined) {
      salt = saltOf(path, value);
      continue;
    }
    if (typeof value["compacted"] === "number") compactedTo = value["compacted"];
    const submission = submissionIn(value);
    if (submission === undefined) continue;
    const { setting, item, at, name, isVoid } = submission;
    if (!isNews(setting, item, Date.parse(at))) continue;
    if (isVoid) submissions.delete(name);
    else submissions.set(name, value);
  }
  if (salt === undefined) throw damaged(path);
  const news = [...submissions.values()].flatMap(toReceipt).sort((a, b) => a.job.at - b.job.at);
  return { salt, news, isTorn: !(await endsWithNewline(path)), compactedTo };
}

/** The file without what later lines replace, in pieces: of each item its newest submission, and what caps still count. */
async function* compacted(path: string, salt: string): AsyncGenerator<string> {
  const voided = new Set<string>();
  let last = 0;
  for await (const { name, at, isVoid } of submissionsIn(path)) {
    if (isVoid) voided.add(name);
    else voided.delete(name);
    last = Math.max(last, Date.parse(at));
  }
  const newest = new Map<string, { at: string; place: number }>();
  for await (const { setting, item, at, name, place } of submissionsIn(path)) {
    const known = newest.get(`${setting} ${item}`);
    if (!voided.has(name) && (known === undefined || at >= known.at))
      newest.set(`${setting} ${item}`, { at, place });
  }
  let bytes = 0;
  const counted = (text: string): string => {
    bytes += Buffer.byteLength(text);
    return text;
  };
  yield counted(header(salt));
  for await (const { setting, item, at, name, place, isVoid, line } of submissionsIn(path)) {
    const known = newest.get(`${setting} ${item}`);
    const isNewest = known?.at === at;
    const isCharged = last - Date.parse(at) <= DAYS_KEPT * DAY_MS;
    if (isVoid || voided.has(name) || !(isNewest ? known.place === place : isCharged)) continue;
    yield counted(`${line}\n`);
  }
  yield `${JSON.stringify({ compacted: bytes })}\n`;
}

/** What a line says of a submission. */
type Submission = {
  readonly setting: JobSetting;
  readonly item: string;
  readonly at: string;
  readonly name: string;
  readonly isVoid: boolean;
};

function submissionIn(value: unknown): Submission | undefined {
  const { for: setting, item, at, step } = isObject(value) ? value : {};
  if (!isSetting(setting) || !isDigest(item) || typeof at !== "string") return undefined;
  return { setting, item, at, name: `${setting} ${item} ${at}`, isVoid: step === "void" };
}

async function* submissionsIn(
  path: string,
): AsyncGenerator<Submission & { readonly place: number; readonly line: string }> {
  let place = 0;
  for await (const line of linesOf(path)) {
    place += 1;
    const submission = submissionIn(parse(line));
    if (submission !== undefined) yield { ...submission, place, line };
  }
}

const linesOf = (path: string): AsyncIterable<string> =>
  createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });

function toReceipt(value: JsonObject): Receipt[] {
  const { for: setting, item, sealed, normalization } = value;
  if (typeof normalization === "number" && normalization > NORMALIZATION) throw tooNew();
  const job = parseFields(value);
  if (job === undefined || !isSetting(setting)) return [];
  return [{ setting, key: String(item), job, sealed: typeof sealed === "string" ? sealed : null }];
}

function saltOf(path: string, { receipts, salt }: JsonObject): string {
  if (typeof receipts === "number" && receipts > FORMAT) throw tooNew();
  if (receipts !== FORMAT || typeof salt !== "string") throw damaged(path);
  return salt;
}

const isSetting = (value: unknown): value is JobSetting =>
  value === "companyLookup" || value === "emailCheck" || value === "emailVerification";

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function endsWithNewline(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    return bytesRead === 0 || buffer[0] === 10;
  } finally {
    await file.close();
  }
}

const damaged = (path: string): ConfigError =>
  new ConfigError(
    `Cannot use the receipts "${path}": its first line is not what this connector writes. It knows what was paid for: ` +
      "restore it, or move it away to go on by the state alone",
  );

const tooNew = (): ConfigError =>
  new ConfigError("Cannot use the receipts: a newer version of this program wrote them. Use that version");

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
