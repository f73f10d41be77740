import { randomBytes } from "node:crypto";
import { readFileSync, unlinkSync } from "node:fs";
import { type FileHandle, link, lstat, open, readFile, rename, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { ConfigError, TransientError } from "../../base/errors.ts";
import { type JsonObject, objectOf, tryParseJson } from "../../base/json.ts";
import type { Processes } from "./processes.ts";
import { cannotMake, codeOf, reasonOf } from "./reason.ts";
import { syncHandle } from "./replace.ts";

/** The time (ms) between two renewals of a lock by its owner. */
export const RENEW_MS = 10_000;
/** After this time (ms) without a change, an observer takes a lock over. */
export const STALE_MS = 60_000;
/** The time (ms) between two looks of an observer at a lock. */
const LOOK_MS = 1_000;
/** The time (ms) after which an owner looks again for a lock that is gone. */
const LOOK_AGAIN_MS = 100;

export type LockRuntime = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** For messages only, because the number has no meaning outside its container. */
  readonly pid: number;
  /** Finds out whether a process of this machine still runs. If absent, a run watches the lock instead. */
  readonly processes?: Processes | undefined;
  /** Registers a last action for a process that is ended by force. */
  readonly atEnd?: (act: () => void) => void;
  /** Shows a sentence about a lock that this run watches. */
  readonly notify?: (text: string) => void;
};

/**
 * Keeps other runs away from a file: `<file>.lock` contains a random token, and changes every 10 seconds.
 *
 * On one machine, the system says whether the other run is alive. Elsewhere a run watches the lock. If the lock changes, the
 * other run is alive, and this run fails. Without a change for 60 seconds, the other run was killed, and this run takes over.
 *
 * The owner checks the token before each commit, because its process may have paused for a minute. The owner writes through
 * its own file handle, so it never renews the lock of another run.
 */
export class Lock {
  readonly #file: string;
  readonly #token: string;
  readonly #handle: FileHandle;
  readonly #clock: Clock;
  readonly #ended = new AbortController();

  private constructor(file: string, token: string, handle: FileHandle, clock: Clock) {
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

  /** Throws TransientError if another run has taken the lock. Each commit calls it first. */
  async check(): Promise<void> {
    if (await this.#isOurs()) return;
    // An observer that moved the lock by mistake returns it at once.
    await this.#clock.sleep(LOOK_AGAIN_MS);
    if (await this.#isOurs()) return;
    throw new TransientError(
      `Cannot continue with "${this.#file}": its lock "${lockOf(this.#file)}" is gone. Another run took it over, or a person removed it. All that was saved is kept. Run again when no other run uses it`,
    );
  }

  /** Removes the lock. A second call does nothing. */
  async release(): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    const ours = await this.#isOurs().catch(() => false);
    await this.#handle.close();
    if (ours) await rm(lockOf(this.#file), { force: true });
  }

  /** Removes the lock without waiting, because the process ends now. */
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

  /** Ignores a renewal that fails, because each commit checks the lock. */
  async #renew(text: (renewals: number) => string): Promise<void> {
    for (let renewals = 1; !this.#ended.signal.aborted; renewals += 1) {
      await this.#clock.sleep(RENEW_MS, this.#ended.signal).catch(() => undefined);
      if (this.#ended.signal.aborted) return;
      await writeLock(this.#handle, text(renewals)).catch(() => undefined);
    }
  }
}

const lockOf = (file: string): string => `${file}.lock`;

/** Makes a lock; undefined: there is a lock already. */
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

/** Replaces the whole text, because all texts of a lock have one length. */
async function writeLock(handle: FileHandle, text: string): Promise<void> {
  await handle.write(text, 0, "utf8");
  await syncHandle(handle);
}

/** Returns when the lock of a file is gone. Removes the lock of a killed run. Throws TransientError if its run is alive. */
async function waitUntilReleased(file: string, runtime: LockRuntime): Promise<void> {
  const { clock, signal, processes, notify } = runtime;
  const path = lockOf(file);
  const first = await lockContent(path);
  if (first === undefined) return;
  const name = fieldsOf(first)["process"];
  const state = typeof name === "string" ? processes?.stateOf(name) : "unknown";
  if (state === "running") throw inUse(file, first);
  if (state === "ended") return await discard(file, first);
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
    // While the machine sleeps, the program does not watch the lock. So a long step counts as 2 seconds.
    unchanged += Math.min(now - last, 2 * LOOK_MS);
    last = now;
  }
  await discard(file, first);
}

/** Removes the watched lock. If another observer already made a new lock, restores the new lock and throws TransientError. */
async function discard(file: string, watched: string): Promise<void> {
  const path = lockOf(file);
  const moved = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  await rename(path, moved).catch((cause: unknown) => {
    if (codeOf(cause) !== "ENOENT")
      throw new ConfigError(`Cannot take over the lock "${path}": ${reasonOf(cause)}`, { cause });
  });
  const text = await lockContent(moved);
  const isNew = text !== undefined && text !== watched;
  if (isNew) await link(moved, path).catch(() => undefined);
  await rm(moved, { force: true });
  if (isNew) throw inUse(file, text);
}

async function lockContent(path: string): Promise<string | undefined> {
  try {
    // Reading a pipe would never end. A link to a missing file would never become free.
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

/** The owner of a lock, if the text is valid. Any program may have written the text. */
function holderOf(text: string): string {
  const { started, host, pid } = fieldsOf(text);
  const isPlain = typeof started === "string" && typeof host === "string" && Number.isInteger(pid);
  const owner = isPlain ? `${started} on ${host}, process ${pid}` : "";
  return /^[\d:.TZ-]{20,27} on [\w.-]{1,255}, process/.test(owner) ? ` (started ${owner})` : "";
}
