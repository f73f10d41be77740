import { onTestFinished, vi } from "vitest";
import type { Client } from "../../src/api/client.ts";
import type { Clock } from "../../src/api/clock.ts";
import { STREAMS } from "../../src/catalog/streams.ts";
import { parseConfig } from "../../src/config/config.ts";
import type { Runtime } from "../../src/run/runtime.ts";
import { Session } from "../../src/run/session.ts";
import type { Notice } from "../../src/streams/event.ts";
import type { StreamApi } from "../../src/streams/stream-api.ts";
import { fastClock } from "../lab/faultlab/read-once.ts";

export const KEY = "svc_0a1b2c3d_00112233445566778899aabbccddeeff";

export type Opened = {
  readonly session: Session;
  readonly client: Client;
  /** Of people. */
  readonly api: StreamApi;
  readonly notices: readonly Notice[];
  readonly abort: AbortController;
};

type Options = Partial<Pick<Runtime, "clock" | "environment" | "random">> & {
  readonly idle?: number;
  readonly verify?: boolean;
};

/** A run's dealings with the service at an address, until the test ends. @param idle seconds of silence that it bears: a few only in a test of silence */
export function openSession(url: string, { idle = 30, verify = true, ...given }: Options = {}): Opened {
  const parsed = parseConfig(
    {
      ...{ base_url: url, api_key: KEY, requests_per_minute: 6000 },
      ...{ allow_insecure_http: true, verify_counts: verify },
    },
    {},
  );
  const abort = new AbortController();
  const notices: Notice[] = [];
  const runtime = { clock: fastClock(), signal: abort.signal, environment: {}, random: () => 0, ...given };
  const session = new Session(
    { ...parsed, idleTimeoutSeconds: idle },
    runtime,
    (notice) => void notices.push(notice),
  );
  onTestFinished(() => session.close());
  const api = session.streamApi(STREAMS[0], { cursor: "discoveredAt", schema: null });
  return { session, client: session.client, api, notices, abort };
}

/** What a promise is rejected with; throws if it is not. */
export async function errorOf(work: Promise<unknown>): Promise<Error> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error("It did not fail");
  return error;
}

/** Until the test ends, intervals and `performance` go by what it tells vi.advanceTimersByTime(). */
export function holdTimers(): void {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
}

export type SleepyClock = Clock & { time: number };

/** A clock on which time passes when somebody sleeps, and then at once, and by `step` ms with each look at it. */
export function sleepyClock(step = 0): SleepyClock {
  const clock = {
    time: 0,
    now: () => clock.time,
    monotonic: () => (clock.time += step),
    sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
      signal?.throwIfAborted();
      clock.time += ms;
    },
  };
  return clock;
}
