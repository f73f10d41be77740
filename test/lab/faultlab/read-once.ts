import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../../sandbox/server.ts";
import type { Clock } from "../../../src/base/clock.ts";
import { ConnectorError } from "../../../src/base/errors.ts";
import { incremental } from "../../../src/catalog/airbyte.ts";
import { ROW_STREAMS } from "../../../src/catalog/streams.ts";
import { type Config, parseConfig } from "../../../src/config/config.ts";
import { Privacy } from "../../../src/privacy/privacy.ts";
import { RowReader } from "../../../src/run/row-reader.ts";
import { syncStreams } from "../../../src/run/run.ts";
import { Session } from "../../../src/run/session.ts";
import type { Event, StreamState } from "../../../src/sync/event.ts";
import { testProcess } from "../../support/terminal.ts";

/** A clock on which nobody waits: a sleep ends at once and has taken its time all the same. `skew`: how wrong it is. */
export function fastClock(skew = 0): Clock {
  let slept = 0;
  return {
    now: () => Date.now() + skew + slept,
    monotonic: () => performance.now() + slept,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept += ms;
      await turn();
    },
  };
}

/** A clock on which nobody waits, and whose time passes at a sandbox as well. */
export function sharedClock(sandbox: Sandbox): Clock {
  const clock = fastClock();
  const sleep: Clock["sleep"] = (ms, signal) => {
    sandbox.advance(ms);
    return clock.sleep(ms, signal);
  };
  return { ...clock, sleep };
}

type RunSettings = {
  readonly config: Config;
  /** Default: people. */
  readonly stream?: "people" | "companies" | undefined;
  /** The stream's state, as the last run left it. */
  readonly state: StreamState | null;
  readonly clock?: Clock;
  /** Ends the run after this many events, as a kill would. */
  readonly stopAfter?: number;
  /** Spreads the retries: 0 lets none wait. */
  readonly random?: () => number;
};

/** One record as a destination sees it. `id`: its key, whatever that is called. */
export type Delivered = {
  readonly id: string;
  readonly discoveredAt: string | null;
  /** All of a record without a date, which is known by its content alone. */
  readonly content?: string;
};

/** What tells a record from another. */
function toDelivered(line: string): Delivered {
  const row = JSON.parse(line) as { id?: string; domain?: string; discoveredAt?: string | number | null };
  const id = row.id ?? row.domain ?? "";
  const discoveredAt = toIso(row.discoveredAt ?? null);
  return discoveredAt === null ? { id, discoveredAt, content: line } : { id, discoveredAt };
}

/** A date in the sandbox's own spelling, whichever of its spellings (the fault `dates`) it came in. */
function toIso(date: string | number | null): string | null {
  if (date === null || /^on /.test(String(date))) return null;
  if (typeof date === "number") return new Date(date < 1e11 ? date * 1000 : date).toISOString();
  const text = date
    .toUpperCase()
    .replace(" ", "T")
    .replace(",", ".")
    .replace(/\+00$| UTC$|Z\[ETC\/UTC\]$/, "Z");
  return text.endsWith("Z") ? text : new Date(text).toISOString();
}

/** A checkpoint, and how many records went out before it. */
type Checkpoint = { readonly state: StreamState; readonly after: number };

export type Outcome = {
  readonly records: readonly Delivered[];
  readonly checkpoints: readonly Checkpoint[];
  readonly complete: boolean;
  readonly error: unknown;
};

/** Lends a sandbox, and closes it whatever happens. */
export async function withSandbox<Value>(
  options: SandboxOptions,
  use: (sandbox: Sandbox) => Promise<Value>,
): Promise<Value> {
  const sandbox = await startSandbox(options);
  return await use(sandbox).finally(() => sandbox.close());
}

const SILENT = new Set("stall stall-headers early-hints endless drip export-limit".split(" "));

/** How many seconds without a new row a run bears: few where a fault falls silent, else more than a busy machine needs. */
export const patienceFor = (faults: readonly string[]): number =>
  faults.some((fault) => SILENT.has(fault.split(/[=:]/)[0] ?? "")) ? 0.4 : 10;

/** The config of a lab run: small windows, and a rate that never waits. */
export function labConfig(sandbox: Sandbox, overrides: Partial<Config> = {}): Config {
  const config = parseConfig(
    { base_url: sandbox.url, api_key: sandbox.key, requests_per_minute: 6000, lookback_window_days: 1 },
    {},
  );
  return { ...config, maxWindowRows: 60, idleTimeoutSeconds: patienceFor([]), ...overrides };
}

/** Ends a run that is to be stopped. */
const STOPPED = new Error("stopped");

/** A run that does not end. Most end within a second; the slowest wait for silence on a real clock. */
const HUNG_MS = 150_000;

/** Reads a stream once, in this process, from a socket to the events. */
export async function readOnce(settings: RunSettings): Promise<Outcome> {
  const { config, state, clock = fastClock(), stopAfter, random = () => 0 } = settings;
  const out = new PassThrough().resume();
  const signal = AbortSignal.timeout(HUNG_MS);
  const runtime = testProcess({ clock, signal, random, stdout: out, stderr: out });
  const session = new Session(config, runtime, () => undefined);
  const records: Delivered[] = [];
  const checkpoints: Checkpoint[] = [];
  let [events, complete] = [0, false];
  let error: unknown;
  const emit = async (event: Event): Promise<void> => {
    if (events === stopAfter) throw STOPPED;
    events += 1;
    if (event.kind === "records") records.push(...event.lines.map(toDelivered));
    if (event.kind === "checkpoint")
      checkpoints.push({ state: JSON.parse(JSON.stringify(event.state)), after: records.length });
    if (event.kind === "close") ({ complete, error } = { error: undefined, ...event });
  };
  const configured = incremental(settings.stream ?? "people");
  const states = new Map(state ? [[configured.name, state]] : []);
  try {
    const readers = ROW_STREAMS.map((spec) => new RowReader(spec, session));
    await syncStreams({ session, readers, privacy: new Privacy(config), emit }, [{ configured }], states);
  } catch (thrown) {
    if (thrown instanceof ConnectorError && thrown.scope === "service") error = thrown;
    else if (thrown !== STOPPED) throw thrown;
  } finally {
    await session.close();
  }
  return { records, checkpoints, complete, error };
}
