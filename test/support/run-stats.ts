import { noUsage } from "../../src/api/usage.ts";
import { RunStats } from "../../src/run/stats.ts";

/** The stats of a run, and a way to let seconds pass, of which each takes two requests of half a second and a retry. */
export function runOf(): { readonly stats: RunStats; readonly pass: (seconds: number) => void } {
  let now = 0;
  const stats = new RunStats({ now: () => now, monotonic: () => now });
  const took = () => ({ requests: now / 500, retries: now / 1000, requestMs: now });
  stats.measure(() => ({ ...noUsage(), ...took(), bytesReceived: now, waitedMs: now / 2 }));
  const pass = (seconds: number): void => {
    now += seconds * 1000;
  };
  return { stats, pass };
}
