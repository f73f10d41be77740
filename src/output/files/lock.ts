import { randomBytes } from "node:crypto";
import { readFileSync, unlinkSync } from "node:fs";
import { type FileHandle, link, lstat, open, readFile, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { ConfigError, TransientError } from "../../base/errors.ts";
import { type JsonObject, objectOf, tryParseJson } from "../../base/json.ts";
import type { Processes } from "./processes.ts";
import { cannotMake, codeOf, reasonOf } from "./reason.ts";
import { syncHandle } from "./replace.ts";

/** How often (ms) the holder of a lock renews it. */
export const RENEW_MS = 10_000;

/** How long (ms) an observer must see a lock unchanged before it takes it for left behind. */
export const STALE_MS = 60_000;

/** How often (ms) an observer looks. */
const LOOK_MS = 1_000;

/** How long (ms) a holder waits before it looks a second time for a lock that is gone. */
const LOOK_AGAIN_MS = 100;

/** The parts of the process that a lock uses. */
export type LockRuntime = {
  readonly clock: {
    /** Epoch ms; only shown to people. */
    now(): number;
    /** Ms that only grow. */
    monotonic(): number;
    /** Resolves after `ms`, or rejects as soon as the signal aborts. */
    sleep(ms: number, signal?: AbortSignal): Promise<void>;
  };
  readonly signal: AbortSignal;
  /** Only shown to people: in a container it has no meaning. */
  readonly pid: number;
  /** Tells whether a process of this machine still runs. Without it, only watching tells. */
  readonly processes?: Processes | undefined;
  /** Takes what must be done when the process is ended by force. */
  readonly atEnd?: (act: () => void) => void;
  /** Takes a sentence about a lock that is watched. */
  readonly notify?: (text: string) => void;
};

/**
 * Keeps other runs from a file: `<file>.lock` has a random token and changes every 10 seconds.
 *
 * On one machine the system tells whether the other run still runs. Elsewhere a run watches the lock: if it changes, the other
 * run is alive, and this run fails. If it stays the same for 60 seconds, the other run was killed, and this run takes over.
 *
 * The owner checks the token before each commit, because it may have been stopped for a minute. It writes through its own file
 * handle, so it never renews the lock of another run.
 */
export class Lock {
  readonly #file: string;
  readonly #token: string;
  readonly #handle: FileHandle;
  readonly #clock: LockRuntime["clock"];
  readonly #ended = new AbortController();

  private constructor(file: string, token: string, handle: FileHandle, clock: LockRuntime["clock"]) {
    this.#file = file;
    this.#token = token;
    this.#handle = handle;
    this.#clock = clock;
  }

  /** Takes the lock of a file. Throws TransientError while another run has it, ConfigError, and the signal's reason. */
  static async acquire(file: string, runtime: LockRuntime): Promise<Lock> {
    const { clock, pid, processes } = runtime;
    const token = randomBytes(16).toString("hex");
    const started = new Date(clock.now()).toISOString();
    const text = (renewals: number): string =>
      `${JSON.stringify({ token, started, host: hostname(), pid, process: processes?.ownName, renewals: String(renewals).padStart(12, "0") })}\n`;
    for (;;) {
      const handle = await create(file, text(0));
      if (handle !== undefined) {
        const lock = new Lock(file, token, handle, clock);
        runtime.atEnd?.(() => lock.#releaseNow());
        void lock.#renew(text);
        return lock;
      }
      await waitUntilReleased(file, runtime);
    }
  }

  /** Throws TransientError if another run has taken the lock. Call it right before anything is committed. */
  async check(): Promise<void> {
    if (await this.#isOurs()) return;
    // An observer that moved the lock away by mistake puts it back at once.
    await this.#clock.sleep(LOOK_AGAIN_MS);
    if (await this.#isOurs()) return;
    throw new TransientError(
      `Cannot continue with "${this.#file}": its lock "${lockOf(this.#file)}" is gone. Another run took it over, or a person removed it. All that was saved is kept. Run again when no other run uses it`,
    );
  }

  /** Gives the lock back. May be called twice. */
  async release(): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    const ours = await this.#isOurs().catch(() => false);
    await this.#handle.close();
    if (ours) await rm(lockOf(this.#file), { force: true });
  }

  /** Gives the lock back when the process ends this very moment. */
  #releaseNow(): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    try {
      if (fieldsOf(readFileSync(lockOf(this.#file), "utf8"))["token"] === this.#token)
        unlinkSync(lockOf(this.#file));
    } catch {
      // The next run takes the lock over.
    }
    void this.#handle.close().catch(() => undefined);
  }

  async #isOurs(): Promise<boolean> {
    const text = await lockContent(lockOf(this.#file));
    return text !== undefined && fieldsOf(text)["token"] === this.#token;
  }

  /** A renewal that fails is not the holder's end: the check before each commit decides. */
  async #renew(text: (renewals: number) => string): Promise<void> {
    for (let renewals = 1; !this.#ended.signal.aborted; renewals += 1) {
      await this.#clock.sleep(RENEW_MS, this.#ended.signal).catch(() => undefined);
      if (this.#ended.signal.aborted) return;
      await writeLock(this.#handle, text(renewals)).catch(() => undefined);
    }
  }
}

const lockOf = (file: string): string => `${file}.lock`;

/** Undefined: there is a lock already. */
async function create(file: string, text: string): Promise<FileHandle | undefined> {
  const path = lockOf(file);
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, "wx", 0o600);
    await writeLock(handle, text);
    return handle;
  } catch (cause) {
    await handle?.close();
    if (handle !== undefined) await rm(path, { force: true });
    if (codeOf(cause) === "EEXIST") return undefined;
    const why = codeOf(cause) === "ENOENT" ? `there is no folder "${dirname(path)}"` : undefined;
    throw cannotMake(`lock "${file}"`, cause, why);
  }
}

/** Each text of a lock has the same length, and so has a mixture of two texts. */
async function writeLock(handle: FileHandle, text: string): Promise<void> {
  await handle.write(text, 0, "utf8");
  await syncHandle(handle);
}

/** Returns when the lock of a file is gone, or was left behind and is removed. Throws TransientError for a living one. */
async function waitUntilReleased(file: string, runtime: LockRuntime): Promise<void> {
  const { clock, signal, processes, notify } = runtime;
  const path = lockOf(file);
  const first = await lockContent(path);
  if (first === undefined) return;
  const name = fieldsOf(first)["process"];
  const state = typeof name === "string" ? processes?.stateOf(name) : "unknown";
  if (state === "running") throw inUse(file, first);
  if (state === "ended") {
    await discard(file, first);
    return;
  }
  notify?.(
    `Found the lock "${path}"${holderOf(first)}. If it does not change within ${STALE_MS / 1000} s, its run was killed, and this run takes over`,
  );
  let unchanged = 0;
  let last = clock.monotonic();
  while (unchanged < STALE_MS) {
    await clock.sleep(LOOK_MS, signal);
    const text = await lockContent(path);
    if (text === undefined) return;
    if (text !== first) throw inUse(file, text);
    const now = clock.monotonic();
    // A machine that slept did not watch.
    unchanged += Math.min(now - last, 2 * LOOK_MS);
    last = now;
  }
  await discard(file, first);
}

/** Removes the lock that was watched. Another observer may have been quicker: its new lock is put back. */
async function discard(file: string, watched: string): Promise<void> {
  const path = lockOf(file);
  const moved = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await rename(path, moved);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return;
    throw new ConfigError(`Cannot take over the lock "${path}": ${reasonOf(cause)}`, { cause });
  }
  const text = await lockContent(moved);
  const living = text !== undefined && text !== watched;
  if (living) await link(moved, path).catch(() => undefined);
  await rm(moved, { force: true });
  if (living) throw inUse(file, text);
}

async function lockContent(path: string): Promise<string | undefined> {
  try {
    // A pipe would be waited for without end, and so would a link that leads nowhere.
    const stats = await lstat(path);
    if (!(stats.isFile() || stats.isDirectory())) throw new Error("it is not a regular file. Remove it");
    return await readFile(path, "utf8");
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return undefined;
    throw new ConfigError(`Cannot read the lock "${path}": ${reasonOf(cause)}`, { cause });
  }
}

const fieldsOf = (text: string): JsonObject => objectOf(tryParseJson(text));

const inUse = (file: string, text: string): TransientError =>
  new TransientError(
    `Cannot use "${file}": another run is using it${holderOf(text)}, and keeps its lock "${lockOf(file)}" alive. Wait until that run has ended`,
  );

/** The holder of a lock, if its text names one. Anyone may have written that text. */
function holderOf(text: string): string {
  const { started, host, pid } = fieldsOf(text);
  const isPlain = typeof started === "string" && /^[\d:.TZ-]{20,27}$/.test(started);
  if (!isPlain || typeof host !== "string" || !/^[\w.-]{1,255}$/.test(host) || !Number.isInteger(pid))
    return "";
  return ` (started ${started} on ${host}, process ${String(pid)})`;
}
