import { setTimeout } from "node:timers/promises";

/** The clock of the machine. Tests pass another clock. */
export type Clock = {
  /** Epoch ms. A person or a time server may change this clock. */
  now(): number;
  /** Ms since an unknown moment. They never decrease. */
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
