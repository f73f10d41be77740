import { createHook } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import type { LockRuntime } from "../../../src/output/files/lock.ts";

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

/** The file operations that are under way. What Node says of its active resources leaves out readFile() since Node 26. */
const underWay = new Set<number>();
const ended = (id: number): void => void underWay.delete(id);
const init = (id: number, type: string): void => {
  if (/^FSREQ|CLOSEREQ/.test(type)) underWay.add(id);
};
createHook({ init, before: ended, destroy: ended }).enable();

/** Returns when no file operation is under way. */
async function quiet(): Promise<void> {
  for (let turns = 0; turns < 3; turns = underWay.size > 0 ? 0 : turns + 1) await setImmediate();
}
