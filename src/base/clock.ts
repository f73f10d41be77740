import { setTimeout } from "node:timers/promises";

/** Time as the edge sees it; tests give their own. */
export type Clock = {
  /** Epoch ms by this machine, which may jump. */
  now(): number;
  /** Ms that only grow. */
  monotonic(): number;
  /** Resolves after `ms`, or rejects as soon as the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    await setTimeout(ms, undefined, signal === undefined ? {} : { signal });
  },
};
