import { onTestFinished, vi } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { PEOPLE } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { Session } from "../../src/run/session.ts";
import type { Notice } from "../../src/sync/event.ts";
import { fastClock } from "../lab/faultlab/read-once.ts";

export const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";

export type Opened = ReturnType<typeof openSession>;

type Options = Partial<Pick<Runtime, "clock" | "random">> & { readonly idle?: number };

/** A run's dealings with the service at an address, until the test ends. @param idle seconds of silence that it bears: a few only in a test of silence */
export function openSession(url: string, { idle = 30, ...given }: Options = {}) {
  const settings = { base_url: url, api_key: KEY, requests_per_minute: 6000, allow_insecure_http: true };
  const config = { ...parseConfig(settings, {}), idleTimeoutSeconds: idle };
  const abort = new AbortController();
  const notices: Notice[] = [];
  const runtime = { clock: fastClock(), signal: abort.signal, environment: {}, random: () => 0, ...given };
  const session = new Session(config, runtime, (notice) => void notices.push(notice));
  onTestFinished(() => session.close());
  /** Of people. */
  const api = session.streamApi(PEOPLE, { cursor: "discoveredAt", schema: null });
  return { session, client: session.client, api, notices, abort };
}

/** What a promise is rejected with; throws if it is not. */
export async function errorOf(work: Promise<unknown>): Promise<Error> {
  const error = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Error) return error;
  throw new Error("It did not fail");
}

/** The class of an error, and whether it concerns all requests at the address. */
export const nameOf = ({ name, scope }: Error & { readonly scope?: unknown }): string =>
  scope === "service" ? `${name} for all` : name;

/** Until the test ends, intervals and `performance` go by what it tells vi.advanceTimersByTime(). */
export function holdTimers(): void {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

export type SleepyClock = Clock & { time: number };

/** A clock on which time passes when somebody sleeps, and then at once, and by `step` ms with each look at it. */
export function sleepyClock(step = 0): SleepyClock {
  const clock: SleepyClock = {
    time: 0,
    now: () => clock.time,
    monotonic: () => (clock.time += step),
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      clock.time += ms;
    },
  };
  return clock;
}
