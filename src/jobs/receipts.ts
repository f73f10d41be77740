import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { JobSetting } from "../catalog/streams.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { Lock, type LockWorld } from "../files/lock.ts";
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
/** Bytes above which the file is compacted when it is opened. */
export const COMPACTED_ABOVE = 64 * 1024 * 1024;

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

type Environment = Readonly<Record<string, string | undefined>>;

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
   */
  static async open(
    path: string,
    world: LockWorld,
    notify: (text: string) => void,
    salt: string | undefined,
    isNews: IsNews,
  ): Promise<Receipts> {
    await attempt(path, () => mkdir(dirname(path), { recursive: true, mode: 0o700 }));
    const lock = await Lock.acquire(path, world, notify);
    try {
      const size = await attempt(path, () => sizeOf(path));
      if (size === undefined)
        await attempt(path, () => replaceFile(path, header(salt ?? newDigests().salt ?? "")));
      const content = await attempt(path, () =>
        read(path, isNews, size !== undefined && size > COMPACTED_ABOVE),
      );
      if (content.compacted !== undefined)
        await attempt(path, () => replaceFile(path, content.compacted ?? ""));
      const file = await attempt(path, () => open(path, "a", 0o600));
      const receipts = new Receipts(path, lock, file, content.salt, content.news);
      if (content.isTorn) await receipts.#append("\n");
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
    : await attempt(path, () => read(path, isNews, false));
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
  /** The file without what later lines replace. */
  readonly compacted: string | undefined;
};

/** A line that is no JSON is one that a crash tore: its request never left. */
async function read(path: string, isNews: IsNews, compacts: boolean): Promise<Content> {
  const submissions = new Map<string, JsonObject>();
  let salt: string | undefined;
  for await (const line of createInterface({
    input: createReadStream(path, "utf8"),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    const value = parse(line);
    if (!isObject(value)) continue;
    if (salt === undefined) {
      salt = saltOf(path, value);
      continue;
    }
    const { for: setting, item, at, step } = value;
    if (!isSetting(setting) || !isDigest(item) || typeof at !== "string") continue;
    if (!compacts && !isNews(setting, item, Date.parse(at))) continue;
    const name = `${setting} ${item} ${at}`;
    if (step === "void") submissions.delete(name);
    else submissions.set(name, value);
  }
  if (salt === undefined) throw damaged(path);
  const isTorn = !(await endsWithNewline(path));
  const receipts = [...submissions.values()].flatMap(toReceipt).sort((a, b) => a.job.at - b.job.at);
  return {
    salt,
    isTorn: isTorn && !compacts,
    news: receipts.filter(({ setting, key, job }) => isNews(setting, key, job.at)),
    compacted: compacts ? header(salt) + compact(receipts) : undefined,
  };
}

/** Only an item's newest submission matters, and what the caps still count. */
function compact(receipts: readonly Receipt[]): string {
  const newest = new Map(receipts.map((receipt) => [`${receipt.setting} ${receipt.key}`, receipt]));
  const last = receipts.reduce((at, { job }) => Math.max(at, job.at), 0);
  const kept = receipts.filter(
    (receipt) =>
      newest.get(`${receipt.setting} ${receipt.key}`) === receipt ||
      last - receipt.job.at <= DAYS_KEPT * DAY_MS,
  );
  return kept
    .map(({ setting, key, job, sealed }) => lineOf(setting, key, { ...toFields(job), sealed }))
    .join("");
}

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
