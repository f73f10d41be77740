import { setImmediate } from "node:timers/promises";
import type { LockRuntime } from "../../src/files/lock.ts";

type Sleeper = { readonly at: number; readonly wake: () => void };

/**
 * A clock whose time passes as soon as everyone sleeps and all file operations have ended.
 * A sleeper can be frozen, as a process is by SIGSTOP or by the end of its life.
 */
export class SimulatedClock {
  #now = 0;
  #sleepers: Sleeper[] = [];
  #running = true;

  constructor() {
    void this.#run();
  }

  /** The clock as one process sees it. */
  of(process: { frozen: boolean } = { frozen: false }): LockRuntime["clock"] {
    return {
      now: () => Date.UTC(2026, 2, 20) + this.#now,
      monotonic: () => this.#now,
      sleep: (ms, signal) => this.#sleep(ms, process, signal),
    };
  }

  get now(): number {
    return this.#now;
  }

  stop(): void {
    this.#running = false;
  }

  #sleep(ms: number, process: { frozen: boolean }, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) reject(signal.reason);
      const abort = (): void => reject(signal?.reason);
      signal?.addEventListener("abort", abort, { once: true });
      const wake = (): void => {
        if (process.frozen) return;
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      this.#sleepers.push({ at: this.#now + ms, wake });
    });
  }

  async #run(): Promise<void> {
    while (this.#running) {
      await quiet();
      this.#sleepers.sort((a, b) => a.at - b.at);
      const next = this.#sleepers.shift();
      if (next === undefined) continue;
      this.#now = Math.max(this.#now, next.at);
      next.wake();
    }
  }
}

/** Returns when no file operation is under way. */
async function quiet(): Promise<void> {
  let turns = 0;
  while (turns < 3) {
    await setImmediate();
    turns = process.getActiveResourcesInfo().some((name) => /^FS|^CloseReq/.test(name)) ? 0 : turns + 1;
  }
}
